"""The prompt format "auto": the template that a llama.cpp server reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmclient import AsyncClient, ProfileError, ProtocolError
from lmclient.core.conversation import Conversation
from lmclient.core.request import CompletionRequest

PROMPT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


async def test_the_servers_template_makes_the_prompt_and_ends_the_answer(
    client: AsyncClient, llama: Any
) -> None:
    await client.complete(llama.profile(prompt_format="auto"), "Hi")
    [body] = llama.bodies
    assert (body["prompt"], body["stop"]) == (PROMPT, ["<|im_end|>"])


async def test_the_template_is_asked_for_once_at_the_servers_root(client: AsyncClient, llama: Any) -> None:
    for _ in range(3):
        await client.complete(llama.profile(prompt_format="auto"), "Hi")
    assert llama.paths() == ["/props", "/tokenize", *["/v1/completions"] * 3]
    assert set(llama.keys) == {"bearer sk-test-0123456789"}


@pytest.mark.parametrize(("adds_bos", "prompt"), [(True, "Hi"), (False, "<s>Hi")])
async def test_bos_is_left_to_a_server_that_adds_it(
    client: AsyncClient, llama: Any, adds_bos: bool, prompt: str
) -> None:
    llama.props = {"chat_template": "{{ bos_token }}{{ messages[0].content }}", "bos_token": "<s>"}
    llama.adds_bos = adds_bos
    await client.complete(llama.profile(prompt_format="auto"), "Hi")
    assert llama.bodies[0]["prompt"] == prompt


@pytest.mark.parametrize("props", [{}, {"chat_template": ""}], ids=["no /props", "no template"])
async def test_a_server_without_a_template_is_a_mistake_of_the_profile(
    client: AsyncClient, llama: Any, props: dict[str, str]
) -> None:
    llama.props = props
    with pytest.raises(ProfileError, match=r"'writer'.*auto.*chatml"):
        await client.complete(llama.profile(name="writer", prompt_format="auto"), "Hi")


async def test_another_kind_of_server_is_no_llama_cpp(client: AsyncClient, llama: Any) -> None:
    llama.props = ["not", "properties"]
    with pytest.raises(ProtocolError, match="'writer'"):
        await client.complete(llama.profile(name="writer", prompt_format="auto"), "Hi")


async def test_a_profile_without_url_has_no_server_to_ask(client: AsyncClient, llama: Any) -> None:
    with pytest.raises(ProfileError, match="no url"):
        await client.complete(llama.profile(url="", prompt_format="auto"), "Hi")


async def test_a_preview_asks_nobody_and_is_the_same_before_and_after_a_call(
    client: AsyncClient, llama: Any
) -> None:
    profile = llama.profile(prompt_format="auto")
    before = client.preview(profile, "Hi")
    assert json.loads(before.body)["messages"] == [{"role": "user", "content": "Hi"}]
    assert not llama.seen
    await client.complete(profile, "Hi")
    assert client.preview(profile, "Hi") == before


async def test_the_cache_tells_conversations_and_formats_apart(client: AsyncClient, llama: Any) -> None:
    def fingerprint(prompt_format: str, text: str) -> str:
        request = CompletionRequest(
            profile=llama.profile(prompt_format=prompt_format), conversation=Conversation.create(text)
        )
        return client._providers.fingerprint(request)

    pairs = [(name, text) for name in ("auto", "chatml", "no") for text in ("Hi", "Ho")]
    assert len({fingerprint(*pair) for pair in pairs}) == len(pairs)
