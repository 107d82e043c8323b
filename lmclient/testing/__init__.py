"""For the tests of applications: providers that run on this machine and need no key.

`FaultProvider` misbehaves in every way seen in production, `ReplayProvider` plays recorded
exchanges, `MockProvider` answers as fast as it can. Each is started in the same two ways:

    with FaultProvider.running() as provider:            in a thread of its own
        ...
    async with ReplayProvider.open("exchanges") as provider:     on the running event loop
        ...

`ScriptedModel` says what a test tells it to, without any server; `record` is a transport that records
exchanges for `ReplayProvider`.

`lmclient.testing.pytest_plugin` has them as fixtures, `lmclient testing serve` starts them from
the command line. Nothing is loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmclient.testing.exchange import Exchange
    from lmclient.testing.fault import FaultProvider
    from lmclient.testing.mock import MockProvider
    from lmclient.testing.recording import record
    from lmclient.testing.replay import ReplayProvider
    from lmclient.testing.scripted import ScriptedModel

__all__ = ["Exchange", "FaultProvider", "MockProvider", "ReplayProvider", "ScriptedModel", "record"]

_MODULES = {
    "Exchange": "lmclient.testing.exchange",
    "FaultProvider": "lmclient.testing.fault",
    "MockProvider": "lmclient.testing.mock",
    "ReplayProvider": "lmclient.testing.replay",
    "ScriptedModel": "lmclient.testing.scripted",
    "record": "lmclient.testing.recording",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
