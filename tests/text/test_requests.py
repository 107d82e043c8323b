"""Text completion: what is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    BadRequestError,
    Conversation,
    ImagePart,
    ProfileError,
    TextPart,
    Tool,
    Turn,
    UnsupportedOptionError,
)
from lmclient.core.conversation import Part
from lmclient.core.request import CompletionRequest
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai_text import OpenAIText, ServedFormat
from lmclient.providers.dialects import dialect_for

ASKED = "<|im_start|>user\nName a colour.<|im_end|>\n<|im_start|>assistant\n"
WEATHER = Tool(name="weather", description="", parameters={"type": "object"})


async def test_the_prompt_format_makes_the_prompt(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(), Conversation.create("Name a colour.", system="Be brief."))
    [(path, body)] = llama.seen
    assert path == "/v1/completions"
    assert body == {
        "model": "m",
        "prompt": "<|im_start|>system\nBe brief.<|im_end|>\n" + ASKED,
        "stop": ["<|im_end|>"],
    }
    assert llama.keys == ["bearer sk-test-0123456789"]


async def test_sampling_options_and_stops_of_call_and_format_are_sent(
    client: AsyncClient, llama: Any
) -> None:
    profile = llama.profile(max_tokens=50, temperature=0, top_p=0.5, extra_body={"top_k": 3})
    options: Any = {"stop": ["END", "<|im_end|>"], "seed": 4, "max_tokens": 9, "extra_body": {"min_p": 0.1}}
    await client.complete(profile, "Name a colour.", **options)
    [body] = llama.bodies
    assert body.pop("prompt") == ASKED
    assert body == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0,
        "top_p": 0.5,
        "seed": 4,
        "stop": ["<|im_end|>", "END"],
        "top_k": 3,
        "min_p": 0.1,
    }


async def test_a_stream_asks_for_its_usage(client: AsyncClient, llama: Any) -> None:
    async with client.stream(llama.profile(), "Name a colour.") as stream:
        await stream.wait()
    [body] = llama.bodies
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_max_tokens_of_zero_is_not_sent(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(max_tokens=0), "Name a colour.")
    assert "max_tokens" not in llama.bodies[0]


async def test_openai_itself_gets_max_tokens_under_its_name_in_text_completions(client: AsyncClient) -> None:
    profile = {"provider": "openai-text", "model": "gpt-3.5-turbo-instruct", "prompt_format": "no"}
    http = client.preview(_profile(**profile, max_tokens=5), "Once")
    assert http.url == "https://api.openai.com/v1/completions"
    assert json.loads(http.body) == {"model": "gpt-3.5-turbo-instruct", "prompt": "Once", "max_tokens": 5}


async def test_the_format_no_sends_the_texts_as_they_are(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(prompt_format="no"), "Once <|im_end|>")
    [body] = llama.bodies
    assert body == {"model": "m", "prompt": "Once <|im_end|>"}


async def test_a_server_that_adds_bos_gets_the_prompt_without(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(prompt_format="llama3"), "Hi")
    assert llama.bodies[0]["prompt"].startswith("<|start_header_id|>user")


def test_a_server_that_adds_none_gets_the_prompt_with_bos() -> None:
    from lmclient import prompts

    protocol = OpenAIText(lambda profile: ServedFormat(prompts.get("llama3")))
    http = protocol.encode(_request(), Dialect(url="http://h", adds_bos=False))
    assert json.loads(http.body)["prompt"].startswith("<|begin_of_text|><|start_header_id|>user")


@pytest.mark.parametrize(
    ("treatment", "prompt"),
    [
        ("escape", ASKED.replace("Name a colour.", "<\u200b|im_end|>")),
        ("allow", ASKED.replace("Name a colour.", "<|im_end|>")),
    ],
)
async def test_control_tokens_of_users_are_treated_as_the_profile_says(
    client: AsyncClient, llama: Any, treatment: str, prompt: str
) -> None:
    await client.complete(llama.profile(special_tokens=treatment), "<|im_end|>")
    assert llama.bodies[0]["prompt"] == prompt


async def test_control_tokens_can_be_refused(client: AsyncClient, llama: Any) -> None:
    with pytest.raises(BadRequestError, match="control token"):
        await client.complete(llama.profile(special_tokens="reject"), "<|im_end|>")
    assert not llama.seen


async def test_reasoning_effort_none_renders_the_variant_without_thinking(
    client: AsyncClient, llama: Any
) -> None:
    await client.complete(llama.profile(prompt_format="qwen3"), "Hi", reasoning_effort="none")
    assert llama.bodies[0]["prompt"].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert "reasoning_effort" not in llama.bodies[0]


async def test_reasoning_effort_stands_in_the_prompts_that_show_it(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(prompt_format="gpt-oss", reasoning_effort="high"), "Hi")
    assert "Reasoning: high" in llama.bodies[0]["prompt"]


async def test_control_tokens_that_mark_reasoning_are_asked_for(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(prompt_format="gpt-oss"), "Hi")
    [body] = llama.bodies
    assert {"<|channel|>", "<|message|>", "<|end|>"} <= set(body["preserved_tokens"])
    assert body["skip_special_tokens"] is False


def test_openai_is_not_asked_for_control_tokens() -> None:
    assert not dialect_for("openai-text", "").shows_control_tokens


@pytest.mark.parametrize(
    "option",
    [{"tools": [WEATHER]}, {"parallel_tool_calls": True}, {"response_format": {"type": "json_object"}}],
    ids=lambda option: next(iter(option)),
)
async def test_what_text_completion_lacks_is_refused_before_sending(
    client: AsyncClient, llama: Any, option: dict[str, Any]
) -> None:
    with pytest.raises(UnsupportedOptionError, match=next(iter(option))):
        await client.complete(llama.profile(), "Hi", **option)
    assert not llama.seen


async def test_images_are_refused_before_sending(client: AsyncClient, llama: Any) -> None:
    content: list[Part] = [TextPart("What is this?"), ImagePart(url="https://example.com/a.png")]
    with pytest.raises(UnsupportedOptionError, match="ImagePart"):
        await client.complete(llama.profile(), Conversation.create(content))
    assert not llama.seen


@pytest.mark.parametrize("name", ["", "chatlm"])
async def test_a_wrong_format_names_the_profile_and_the_known_ones(
    client: AsyncClient, llama: Any, name: str
) -> None:
    with pytest.raises(ProfileError, match=r"'writer'.*chatml.*\.jinja.*auto") as caught:
        await client.complete(llama.profile(name="writer", prompt_format=name), "Hi")
    assert caught.value.key == "prompt_format"


async def test_alternating_roles_make_any_order_fit_a_strict_format(client: AsyncClient, llama: Any) -> None:
    """J02"""
    talk = Conversation([Turn("user", "Hello."), Turn("system", "Be brief."), Turn("user", "Name a colour.")])
    gemma = llama.profile(prompt_format="gemma")
    with pytest.raises(BadRequestError, match='roles = "alternating"'):
        await client.complete(gemma, talk)
    await client.complete(gemma.model_copy(update={"roles": "alternating"}), talk)
    [body] = llama.bodies
    assert "user\nBe brief.\n\nHello.\n\nName a colour.<end_of_turn>" in body["prompt"]


async def test_a_template_file_makes_the_prompt(client: AsyncClient, llama: Any, tmp_path: Path) -> None:
    file = tmp_path / "own.jinja"
    file.write_text("{% for message in messages %}[{{ message.content }}]{% endfor %}")
    await client.complete(llama.profile(prompt_format=str(file)), "Hi")
    assert llama.bodies[0]["prompt"] == "[Hi]"


async def test_a_missing_template_file_is_named(client: AsyncClient, llama: Any) -> None:
    with pytest.raises(ProfileError, match=r"'writer'.*absent\.jinja"):
        await client.complete(llama.profile(name="writer", prompt_format="absent.jinja"), "Hi")


async def test_an_empty_model_is_the_servers_first(client: AsyncClient, llama: Any) -> None:
    await client.complete(llama.profile(model=""), "Hi")
    assert llama.bodies[0]["model"] == "first"


async def test_text_completion_has_no_tools(client: AsyncClient, llama: Any) -> None:
    assert not await client.supports_tools(llama.profile())


def _profile(**values: Any) -> Any:
    from lmclient import ModelProfile

    return ModelProfile(**values)


def _request() -> CompletionRequest:
    profile = _profile(provider="openai-text", model="m", prompt_format="llama3")
    return CompletionRequest(profile=profile, conversation=Conversation.create("Hi"))
