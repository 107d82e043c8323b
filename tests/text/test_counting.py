"""`count_tokens`: what a call will cost."""

from __future__ import annotations

from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    Client,
    Conversation,
    ModelProfile,
    Settings,
    Tool,
    register_tokenizer,
    tokens,
)
from lmclient.core.request import CompletionRequest, Options
from lmclient.providers.counting import count_request, tokenizer_of

TALK = Conversation.create("Name a colour.", system="Be brief.")
WEATHER = Tool(name="weather", description="Tells the weather.", parameters={"type": "object"})


def chat(**values: Any) -> ModelProfile:
    return ModelProfile(
        **{"provider": "openai-chat", "model": "gpt-4o", "url": "http://127.0.0.1:9", **values}
    )


async def test_a_str_is_counted_as_a_text(client: AsyncClient) -> None:
    assert await client.count_tokens(chat(), "Name a colour.") == 4


async def test_control_tokens_in_a_text_are_text(client: AsyncClient) -> None:
    assert await client.count_tokens(chat(), "<|endoftext|>") > 1


async def test_chat_counts_the_frames_of_messages(client: AsyncClient) -> None:
    texts = [await client.count_tokens(chat(), turn.text) for turn in TALK.turns]
    assert await client.count_tokens(chat(), TALK) == sum(texts) + 2 * 4 + 3


async def test_message_dicts_count_like_their_conversation(client: AsyncClient) -> None:
    assert await client.count_tokens(chat(), TALK.to_messages()) == await client.count_tokens(chat(), TALK)


async def test_tools_count(client: AsyncClient) -> None:
    profile = chat()
    provider = client._providers.provider(profile)
    bare = CompletionRequest(profile=profile, conversation=TALK)
    request = CompletionRequest(profile=profile, conversation=TALK, options=Options(tools=[WEATHER]))
    assert await count_request(provider, request) > await count_request(provider, bare)


def test_the_sync_client_counts_alike(settings: Settings) -> None:
    with Client(settings) as client:
        assert client.count_tokens(chat(), TALK) == 18


async def test_counting_needs_no_server_where_the_tokenizer_needs_none(
    client: AsyncClient, llama: Any
) -> None:
    await client.count_tokens(llama.profile(tokenizer="tiktoken"), TALK)
    await client.count_tokens(llama.profile(tokenizer="fallback"), TALK)
    assert not llama.seen


async def test_control_tokens_of_a_prompt_count_as_one_each(client: AsyncClient, llama: Any) -> None:
    profile = llama.profile(tokenizer="tiktoken")
    pieces = ["user\nHi", "\n", "assistant\n"]
    plain = sum([await client.count_tokens(profile, piece) for piece in pieces])
    assert await client.count_tokens(profile, Conversation.create("Hi")) == plain + 3


async def test_bos_that_the_server_adds_counts(client: AsyncClient, llama: Any) -> None:
    profile = llama.profile(tokenizer="tiktoken", prompt_format="llama3")
    pieces = ["user", "\n\nHi", "assistant", "\n\n"]
    plain = sum([await client.count_tokens(profile, piece) for piece in pieces])
    assert await client.count_tokens(profile, Conversation.create("Hi")) == plain + 6


async def test_a_llama_server_counts_the_prompt_with_what_it_adds(client: AsyncClient, llama: Any) -> None:
    llama.adds_bos = True
    assert await client.count_tokens(llama.profile(tokenizer="llama-server"), TALK) == 9
    [(path, body)] = llama.seen
    assert path == "/tokenize"
    assert (body["parse_special"], body["add_special"]) == (True, True)
    assert body["content"].startswith("<|im_start|>system\nBe brief.")


async def test_a_llama_server_counts_a_text_as_text(client: AsyncClient, llama: Any) -> None:
    llama.adds_bos = True
    assert await client.count_tokens(llama.profile(tokenizer="llama-server"), "one two") == 2
    assert llama.seen[0][1]["parse_special"] is False


async def test_a_llama_server_applies_its_template_to_a_chat(client: AsyncClient, llama: Any) -> None:
    profile = llama.profile(provider="openai-chat", prompt_format="", tokenizer="llama-server")
    assert await client.count_tokens(profile, TALK) == 2 + 5
    assert llama.paths() == ["/apply-template", "/tokenize"]


async def test_the_servers_own_template_is_counted_by_the_server(client: AsyncClient, llama: Any) -> None:
    assert await client.count_tokens(llama.profile(prompt_format="auto"), TALK) == 8
    assert llama.paths()[-1] == "/tokenize"


async def test_a_registered_tokenizer_counts(client: AsyncClient) -> None:
    class Letters:
        def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
            return [ord(letter) for letter in text]

        def detokenize(self, tokens: Any) -> str:
            return "".join(map(chr, tokens))

        def count(self, text: str, *, parse_special: bool = False) -> int:
            return len(text)

    def letters(*, encoding: str, url: str | None, send: tokens.Send | None) -> tokens.Tokenizer:
        return Letters()

    register_tokenizer("letters", letters)
    assert await client.count_tokens(chat(tokenizer="letters"), "12345") == 5


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ({}, ("tiktoken", "o200k_base")),
        ({"model": "gpt-4"}, ("tiktoken", "cl100k_base")),
        ({"model": "x", "token_encoding": "cl100k_base"}, ("tiktoken", "cl100k_base")),
        ({"tokenizer": "fallback"}, ("fallback", "o200k_base")),
        ({"model": "gpt-4", "token_encoding": ""}, ("tiktoken", "cl100k_base")),
        ({"provider": "llama-cpp"}, ("llama-server", "o200k_base")),
        ({"provider": "openai-text", "prompt_format": "auto"}, ("llama-server", "o200k_base")),
    ],
)
def test_the_profile_names_the_tokenizer_or_its_model_does(
    values: dict[str, str], chosen: tuple[str, str]
) -> None:
    assert tokenizer_of(chat(**values)) == chosen
