"""What providers really sent, through the whole client: every recorded exchange, none left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lmclient import Client, Settings

from .exchange import MISSING, OWN, RECORDED, Played, RecordedExchange, check, exchanges, play


class Wire(NamedTuple):
    """A wire protocol: how its recorded files and our own begin, and who reads them."""

    recorded: str
    own: str
    provider: str
    endpoint: str
    number: int
    """How many recordings there are at least."""


WIRES = (
    Wire("openai-chat", "openai_chat", "openai-chat", "/chat/completions", 137),
    Wire("openai-responses", "openai_responses", "openai-responses", "/responses", 84),
    Wire("anthropic-messages", "anthropic", "anthropic", "/messages", 95),
    Wire("gemini-generate", "gemini", "gemini", "", 150),
)
ALL = [
    (wire, exchange)
    for wire in WIRES
    for exchange in (*exchanges(OWN / wire.own), *exchanges(RECORDED, f"{wire.recorded}.*.json"))
]
STREAMED = [(wire, exchange) for wire, exchange in ALL if exchange.stream]


def name_of(value: object) -> str | None:
    return value.name if isinstance(value, RecordedExchange) else None


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory = tmp_path_factory.mktemp("client")
    with Client(Settings(data_dir=directory, profiles_dir=directory), interceptors=[]) as opened:
        yield opened


def played(client: Client, wire: Wire, exchange: RecordedExchange, split: int | None = None) -> Played:
    endpoint, model = wire.endpoint, "asked"
    if wire.provider == "gemini":  # which names the model in the path
        _, _, method = exchange.path.rpartition("/models/")
        endpoint, model = f"/models/{method}", method.partition(":")[0]
    return play(client, exchange, endpoint, split=split, provider=wire.provider, model=model)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.recorded)
def test_the_recorded_exchanges_are_all_there(wire: Wire) -> None:
    if not RECORDED.is_dir():
        pytest.skip(MISSING)
    assert len(exchanges(RECORDED, f"{wire.recorded}.*.json")) >= wire.number


@pytest.mark.parametrize(("wire", "exchange"), ALL, ids=name_of)
def test_an_answer_is_read_as_it_was_meant(client: Client, wire: Wire, exchange: RecordedExchange) -> None:
    check(exchange, played(client, wire, exchange))


@pytest.mark.parametrize("split", [1, 7])
@pytest.mark.parametrize(("wire", "exchange"), STREAMED, ids=name_of)
def test_a_stream_means_the_same_however_it_is_cut(
    client: Client, wire: Wire, exchange: RecordedExchange, split: int
) -> None:
    check(exchange, played(client, wire, exchange, split), whole=False)
