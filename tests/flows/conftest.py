"""A scripted model behind a real client, and shorthands for what flows look like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from lmclient import AsyncClient
from lmclient.flows import Agent, AgentContext, FlowExecutor
from lmclient.testing import ScriptedModel

Walk = Callable[..., object]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(cost={"input": "1", "output": "2"}) as scripted:
        yield scripted


@pytest.fixture
async def client(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(model.settings(tmp_path)) as opened:
        yield opened


@pytest.fixture
def executor(client: AsyncClient) -> FlowExecutor:
    return FlowExecutor(client)


@pytest.fixture
def context() -> Callable[..., AgentContext]:
    """`context(*agents, key=value, other=[...])`: a list is the values of its key."""

    def make(*agents: Agent, **values: object) -> AgentContext:
        made = AgentContext(agents)
        for key, value in values.items():
            if isinstance(value, list):
                made.set_all(key, value)
            else:
                made.set(key, value)
        return made

    return make


@pytest.fixture
def prompts(model: ScriptedModel) -> Callable[[], list[list[tuple[str, str]]]]:
    """What the model was sent: for each request its turns, as pairs of role and text."""

    def sent() -> list[list[tuple[str, str]]]:
        return [
            [(turn.role.value, turn.text) for turn in request.conversation.turns]
            for request in model.requests
        ]

    return sent
