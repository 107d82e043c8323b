"""pytest fixtures: the test servers and the scripted model of `lmclient.testing`.

pytest finds this module by itself where lmclient is installed. It is imported at every start of
pytest, so each fixture loads its server only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from lmclient.testing.exchange import Exchanges
    from lmclient.testing.fault import FaultProvider
    from lmclient.testing.mock import MockProvider
    from lmclient.testing.replay import ReplayProvider
    from lmclient.testing.scripted import ScriptedModel


class StartReplay(Protocol):
    """What the fixture `replay_provider` gives."""

    def __call__(self, exchanges: Exchanges, *, split: int | None = None) -> ReplayProvider:
        """A running provider of these exchanges; it stops at the end of the test."""


@pytest.fixture(scope="session")
def fault_provider() -> Iterator[FaultProvider]:
    """A provider that misbehaves on purpose, in a thread; give each test a key of its own."""
    from lmclient.testing.fault import FaultProvider

    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture(scope="session")
def mock_provider() -> Iterator[MockProvider]:
    """A very fast provider, in a thread."""
    from lmclient.testing.mock import MockProvider

    with MockProvider.running() as provider:
        yield provider


@pytest.fixture
def replay_provider() -> Iterator[StartReplay]:
    """Starts providers of recorded exchanges, each in a thread: `replay_provider(directory, split=7)`."""
    from lmclient.testing.replay import ReplayProvider

    with ExitStack() as stack:

        def start(exchanges: Exchanges, *, split: int | None = None) -> ReplayProvider:
            return stack.enter_context(ReplayProvider.running(exchanges, split=split))

        yield start


@pytest.fixture
def scripted_model() -> Iterator[ScriptedModel]:
    """A model that says what the test tells it to, without any server."""
    from lmclient.testing.scripted import ScriptedModel

    with ScriptedModel() as model:
        yield model
