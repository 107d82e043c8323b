"""Flows: walks over agents that prompt models, read the answers into a context and hand it on.

Each name is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmclient.flows.agent import Agent as Agent
    from lmclient.flows.agent import AgentNext as AgentNext
    from lmclient.flows.agent import AgentType as AgentType
    from lmclient.flows.context import AgentContext as AgentContext
    from lmclient.flows.context import ErrorType as ErrorType
    from lmclient.flows.context import SkipCompletion as SkipCompletion
    from lmclient.flows.csv_handler import CsvHandler as CsvHandler
    from lmclient.flows.csv_handler import CsvRowsHandler as CsvRowsHandler
    from lmclient.flows.executor import FlowExecutor as FlowExecutor
    from lmclient.flows.executor import StepLimitError as StepLimitError
    from lmclient.flows.handler import Handler as Handler
    from lmclient.flows.handlers_text import AccumulateTextHandler as AccumulateTextHandler
    from lmclient.flows.handlers_text import TextHandler as TextHandler
    from lmclient.flows.handlers_tools import ToolCallingHandler as ToolCallingHandler
    from lmclient.flows.json_handler import JsonHandler as JsonHandler
    from lmclient.flows.merging import merge_contexts as merge_contexts
    from lmclient.flows.statistics import FlowStatistics as FlowStatistics
    from lmclient.flows.trace import TraceStep as TraceStep

_MODULES = {
    "agent": "Agent AgentNext AgentType",
    "context": "AgentContext ErrorType SkipCompletion",
    "csv_handler": "CsvHandler CsvRowsHandler",
    "executor": "FlowExecutor StepLimitError",
    "handler": "Handler",
    "handlers_text": "AccumulateTextHandler TextHandler",
    "handlers_tools": "ToolCallingHandler",
    "json_handler": "JsonHandler",
    "merging": "merge_contexts",
    "statistics": "FlowStatistics",
    "trace": "TraceStep",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # the names above


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
