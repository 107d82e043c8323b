"""Interceptors that the settings name by their import path."""

from __future__ import annotations

import importlib
from typing import cast

from lmclient.errors import ConfigurationError, LMClientError
from lmclient.interceptors.base import Interceptor


def load_interceptor(path: str) -> Interceptor:
    """The interceptor at `package.module:name`; a class is called without arguments.

    Raises `ConfigurationError` if there is none.
    """
    module, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        found: object = getattr(importlib.import_module(module), name)
        if isinstance(found, type):
            found = found()
    except LMClientError:
        raise
    except Exception as error:  # the user's module may fail in any way; the settings brought us there
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"Settings: interceptors: {path!r} cannot be loaded ({reason}).") from error
    try:
        return check_interceptor(found)
    except ConfigurationError as error:
        raise ConfigurationError(f"Settings: interceptors: {path!r}: {error}") from None


def check_interceptor(found: object) -> Interceptor:
    """The same, if it may be an interceptor. Raises `ConfigurationError` if it is none."""
    if isinstance(found, type):
        raise ConfigurationError(
            f"The class {found.__name__} is no interceptor; give an instance: {found.__name__}()."
        )
    if not callable(found):
        raise ConfigurationError(
            f"{found!r:.80} is no interceptor; see lmclient.Interceptor and lmclient.Hooks."
        )
    return cast(Interceptor, found)
