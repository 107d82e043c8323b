"""What servers of OpenAI's chat completions really sent, through the whole client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmclient import Client, Settings

from .exchange import MISSING, OWN, RECORDED, RecordedExchange, check, exchanges, play

ENDPOINT = "/chat/completions"
ALL = [*exchanges(OWN / "openai_chat"), *exchanges(RECORDED, "openai-chat.*.json")]
STREAMED = [exchange for exchange in ALL if exchange.stream]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory = tmp_path_factory.mktemp("client")
    with Client(Settings(data_dir=directory, profiles_dir=directory), interceptors=[]) as opened:
        yield opened


def test_the_recorded_exchanges_are_all_there() -> None:
    if not RECORDED.is_dir():
        pytest.skip(MISSING)
    assert len(exchanges(RECORDED, "openai-chat.*.json")) >= 137


@pytest.mark.parametrize("exchange", ALL, ids=str)
def test_an_answer_is_read_as_it_was_meant(client: Client, exchange: RecordedExchange) -> None:
    check(exchange, play(client, exchange, ENDPOINT, provider="openai-chat"))


@pytest.mark.parametrize("split", [1, 7])
@pytest.mark.parametrize("exchange", STREAMED, ids=str)
def test_a_stream_means_the_same_however_it_is_cut(
    client: Client, exchange: RecordedExchange, split: int
) -> None:
    check(exchange, play(client, exchange, ENDPOINT, split=split, provider="openai-chat"), whole=False)
