"""lmclient: talk to any language model by category.

Everything public is imported from here. Each name is loaded on first use, so that importing the
package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmclient.client import AsyncClient as AsyncClient
    from lmclient.core.completion import Chunk as Chunk
    from lmclient.core.completion import Completion as Completion
    from lmclient.core.completion import FinishReason as FinishReason
    from lmclient.core.conversation import Conversation as Conversation
    from lmclient.core.conversation import FilePart as FilePart
    from lmclient.core.conversation import ImagePart as ImagePart
    from lmclient.core.conversation import Role as Role
    from lmclient.core.conversation import TextPart as TextPart
    from lmclient.core.conversation import Turn as Turn
    from lmclient.core.request import Attempt as Attempt
    from lmclient.core.request import CompletionRequest as CompletionRequest
    from lmclient.core.request import Options as Options
    from lmclient.core.request import ProviderLimits as ProviderLimits
    from lmclient.core.stream import AsyncCompletionStream as AsyncCompletionStream
    from lmclient.core.tools import Tool as Tool
    from lmclient.core.tools import ToolCall as ToolCall
    from lmclient.core.tools import ToolResult as ToolResult
    from lmclient.core.usage import Usage as Usage
    from lmclient.errors import AuthenticationError as AuthenticationError
    from lmclient.errors import BadRequestError as BadRequestError
    from lmclient.errors import BudgetExceededError as BudgetExceededError
    from lmclient.errors import CircuitOpenError as CircuitOpenError
    from lmclient.errors import ConfigurationError as ConfigurationError
    from lmclient.errors import ConnectError as ConnectError
    from lmclient.errors import ConnectTimeoutError as ConnectTimeoutError
    from lmclient.errors import ContentFilterError as ContentFilterError
    from lmclient.errors import ContextLengthError as ContextLengthError
    from lmclient.errors import ContextOverflowError as ContextOverflowError
    from lmclient.errors import FlowError as FlowError
    from lmclient.errors import LMClientError as LMClientError
    from lmclient.errors import NotFoundError as NotFoundError
    from lmclient.errors import PermissionDeniedError as PermissionDeniedError
    from lmclient.errors import ProfileError as ProfileError
    from lmclient.errors import ProtocolError as ProtocolError
    from lmclient.errors import ProviderError as ProviderError
    from lmclient.errors import QuotaExceededError as QuotaExceededError
    from lmclient.errors import RateLimitError as RateLimitError
    from lmclient.errors import RateLimitTimeoutError as RateLimitTimeoutError
    from lmclient.errors import ServerError as ServerError
    from lmclient.errors import StreamInterruptedError as StreamInterruptedError
    from lmclient.errors import TimeoutError as TimeoutError
    from lmclient.errors import TransportError as TransportError
    from lmclient.errors import UnsupportedOptionError as UnsupportedOptionError
    from lmclient.interceptors.base import CallNext as CallNext
    from lmclient.interceptors.base import Hooks as Hooks
    from lmclient.interceptors.base import Interceptor as Interceptor
    from lmclient.interceptors.budget import BudgetInterceptor as BudgetInterceptor
    from lmclient.interceptors.cache import CacheInterceptor as CacheInterceptor
    from lmclient.interceptors.circuit import CircuitBreakerInterceptor as CircuitBreakerInterceptor
    from lmclient.interceptors.fallback import FallbackInterceptor as FallbackInterceptor
    from lmclient.interceptors.logging import LogInterceptor as LogInterceptor
    from lmclient.interceptors.rate_limit import RateLimitInterceptor as RateLimitInterceptor
    from lmclient.interceptors.retry import RetryInterceptor as RetryInterceptor
    from lmclient.interceptors.spend import SpendInterceptor as SpendInterceptor
    from lmclient.interceptors.telemetry import TelemetryInterceptor as TelemetryInterceptor
    from lmclient.profiles.category import Category as Category
    from lmclient.profiles.model import ModelProfile as ModelProfile
    from lmclient.prompts import register_prompt_format as register_prompt_format
    from lmclient.providers.registry import register_provider as register_provider
    from lmclient.settings import Settings as Settings
    from lmclient.spend.ledger import Ledger as Ledger
    from lmclient.spend.records import SpendRecord as SpendRecord
    from lmclient.spend.reports import SpendRow as SpendRow
    from lmclient.sync import Client as Client
    from lmclient.sync import CompletionStream as CompletionStream
    from lmclient.tokens import register_tokenizer as register_tokenizer

_ERRORS = (
    "AuthenticationError BadRequestError BudgetExceededError CircuitOpenError ConfigurationError "
    "ConnectError ConnectTimeoutError ContentFilterError ContextLengthError ContextOverflowError "
    "FlowError LMClientError NotFoundError PermissionDeniedError ProfileError ProtocolError ProviderError "
    "QuotaExceededError RateLimitError RateLimitTimeoutError ServerError StreamInterruptedError "
    "TimeoutError TransportError UnsupportedOptionError"
)
_MODULES = {
    "client": "AsyncClient",
    "core.completion": "Chunk Completion FinishReason",
    "core.conversation": "Conversation FilePart ImagePart Role TextPart Turn",
    "core.request": "Attempt CompletionRequest Options ProviderLimits",
    "core.stream": "AsyncCompletionStream",
    "core.tools": "Tool ToolCall ToolResult",
    "core.usage": "Usage",
    "errors": _ERRORS,
    "interceptors.base": "CallNext Hooks Interceptor",
    "interceptors.budget": "BudgetInterceptor",
    "interceptors.cache": "CacheInterceptor",
    "interceptors.circuit": "CircuitBreakerInterceptor",
    "interceptors.fallback": "FallbackInterceptor",
    "interceptors.logging": "LogInterceptor",
    "interceptors.rate_limit": "RateLimitInterceptor",
    "interceptors.retry": "RetryInterceptor",
    "interceptors.spend": "SpendInterceptor",
    "interceptors.telemetry": "TelemetryInterceptor",
    "profiles.category": "Category",
    "profiles.model": "ModelProfile",
    "prompts": "register_prompt_format",
    "providers.registry": "register_provider",
    "settings": "Settings",
    "spend.ledger": "Ledger",
    "spend.records": "SpendRecord",
    "spend.reports": "SpendRow",
    "sync": "Client CompletionStream",
    "tokens": "register_tokenizer",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
