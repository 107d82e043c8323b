"""The same recorded answers, read by OpenAI's own client and by ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from lmclient import Client, ModelProfile, ProviderError, Settings
from lmclient.testing import ReplayProvider

from .exchange import MISSING, RECORDED, RecordedExchange, exchanges

CHAT = exchanges(RECORDED, "openai-chat.*.json")
RESPONSES = exchanges(RECORDED, "openai-responses.*.json")
PLAIN_CHAT = [exchange for exchange in CHAT if not exchange.stream]
PLAIN_RESPONSES = [exchange for exchange in RESPONSES if not exchange.stream]
STREAMED_CHAT = [exchange for exchange in CHAT if exchange.stream]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    directory = tmp_path_factory.mktemp("client")
    with Client(Settings(data_dir=directory, profiles_dir=directory), interceptors=[]) as opened:
        yield opened


class Reader:
    """Both clients on one replayed exchange."""

    def __init__(self, client: Client, exchange: RecordedExchange, endpoint: str, provider: str) -> None:
        self.client, self.exchange = client, exchange
        self.endpoint, self.provider = endpoint, provider

    def __enter__(self) -> Reader:
        recorded = json.loads(self.exchange.file.read_bytes())
        self.server = ReplayProvider.running([recorded])
        url = self.server.__enter__().url(self.exchange.name, *self.exchange.prefix(self.endpoint))
        self.sdk = openai.OpenAI(api_key="sk-test-0123456789", base_url=url, max_retries=0)
        self.profile = ModelProfile(provider=self.provider, model="m", url=url, api_key="sk-test-0123456789")
        return self

    def __exit__(self, *error: object) -> None:
        self.sdk.close()
        self.server.__exit__(None, None, None)


def test_there_are_recorded_answers_to_compare() -> None:
    if not RECORDED.is_dir():
        pytest.skip(MISSING)
    assert len(PLAIN_CHAT) > 100
    assert len(PLAIN_RESPONSES) > 60
    assert len(STREAMED_CHAT) > 10


@pytest.mark.parametrize("exchange", PLAIN_CHAT, ids=str)
def test_a_chat_completion_is_read_alike(client: Client, exchange: RecordedExchange) -> None:
    with Reader(client, exchange, "/chat/completions", "openai-chat") as reader:
        try:
            theirs = reader.sdk.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}]
            )
        except openai.APIStatusError as error:
            with pytest.raises(ProviderError) as raised:
                client.complete(reader.profile, "?")
            assert raised.value.status == error.status_code
            return
        if theirs.choices is None:  # an error object with status 200, which the SDK takes for an answer
            with pytest.raises(ProviderError):
                client.complete(reader.profile, "?")
            return
        ours = client.complete(reader.profile, "?")
    assert (ours.id, ours.model) == (theirs.id or "", theirs.model or "m")
    assert said(theirs) in (None, ours.text)
    assert calls_of(theirs) == [(call.id, call.name, call.raw_arguments) for call in ours.tool_calls]
    if theirs.usage is not None and not ours.usage.estimated:
        counts = (ours.usage.input_tokens, ours.usage.output_tokens)
        assert counts == (theirs.usage.prompt_tokens, theirs.usage.completion_tokens)


@pytest.mark.parametrize("exchange", STREAMED_CHAT, ids=str)
def test_a_streamed_chat_completion_is_read_alike(client: Client, exchange: RecordedExchange) -> None:
    with Reader(client, exchange, "/chat/completions", "openai-chat") as reader:
        text = ""
        try:
            for chunk in reader.sdk.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True
            ):
                text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        except openai.APIError:
            with pytest.raises(ProviderError), client.stream(reader.profile, "?") as stream:
                list(stream)
            return
        with client.stream(reader.profile, "?") as stream:
            assert "".join(chunk.text for chunk in stream) == text


@pytest.mark.parametrize("exchange", PLAIN_RESPONSES, ids=str)
def test_a_response_is_read_alike(client: Client, exchange: RecordedExchange) -> None:
    with Reader(client, exchange, "/responses", "openai-responses") as reader:
        try:
            theirs = reader.sdk.responses.create(model="m", input="?")
        except openai.APIStatusError as error:
            with pytest.raises(ProviderError) as raised:
                client.complete(reader.profile, "?")
            assert raised.value.status == error.status_code
            return
        ours = client.complete(reader.profile, "?")
    assert ours.text == theirs.output_text
    assert [(call.id, call.raw_arguments) for call in ours.tool_calls] == function_calls(theirs)
    if theirs.usage is not None:
        counts = (ours.usage.input_tokens, ours.usage.output_tokens)
        assert counts == (theirs.usage.input_tokens, theirs.usage.output_tokens)
        assert ours.usage.cached_input_tokens == theirs.usage.input_tokens_details.cached_tokens


def said(completion: ChatCompletion) -> str | None:
    """The text, None where the SDK hands out something else: Mistral's parts."""
    if not completion.choices:
        return ""
    content: Any = completion.choices[0].message.content
    refusal = completion.choices[0].message.refusal
    return content if isinstance(content, str) else (refusal or "" if content is None else None)


def calls_of(completion: ChatCompletion) -> list[tuple[str, str, str]]:
    calls: list[Any] = list(completion.choices[0].message.tool_calls or ()) if completion.choices else []
    return [(call.id, call.function.name, call.function.arguments or "") for call in calls]


def function_calls(response: Response) -> list[tuple[str, str]]:
    return [(item.call_id, item.arguments) for item in response.output if item.type == "function_call"]
