"""POST /v1/completions, with OpenAI's own client against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from lmclient import Settings, Usage
from lmclient.testing import FaultProvider, ScriptedModel
from lmclient.testing.fault import TEXT


def test_a_chat_profile_gets_the_prompt_as_a_users_turn(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("and they lived")
    answer = client.completions.create(model="m", prompt="Once upon a time", max_tokens=9)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("and they lived", "stop")
    (turn,) = model.requests[0].conversation.turns
    assert (turn.role, turn.text, model.requests[0].options.max_tokens) == ("user", "Once upon a time", 9)


def test_a_stream_ends_with_usage_if_asked(client: openai.OpenAI, model: ScriptedModel) -> None:
    model.reply("and they lived", usage=Usage(input_tokens=1, output_tokens=2))
    chunks = list(
        client.completions.create(
            model="m", prompt="Once", stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == "and they lived"
    assert (chunks[-2].choices[0].finish_reason, chunks[-1].usage.total_tokens) == ("stop", 3)


@pytest.mark.parametrize("wrong", [{"n": 2}, {"echo": True}, {"suffix": "x"}, {"prompt": ["a", "b"]}])
def test_what_the_gateway_cannot_do_is_refused(client: openai.OpenAI, wrong: dict[str, Any]) -> None:
    body: dict[str, Any] = {"prompt": "Once", **wrong}
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="m", **body)


def test_a_text_profile_gets_the_prompt_as_it_is(
    serve: Callable[[Settings], str], fault: FaultProvider, tmp_path: Path
) -> None:
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    upstream = fault.url("ok", key="raw-prompt")
    (profiles / "text.toml").write_text(
        f'provider = "openai-text"\nmodel = "mock"\nprompt_format = "llama3"\nurl = "{upstream}"\n'
    )
    url = serve(Settings(profiles_dir=profiles, data_dir=tmp_path / "data"))
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        assert client.completions.create(model="text", prompt="<|eot_id|>Once").choices[0].text == TEXT


def test_a_raw_prompt_has_no_prompt_format(tmp_path: Path) -> None:
    from lmclient import AsyncClient, ModelProfile
    from lmclient.server.access import ANYBODY
    from lmclient.server.calling import Calling
    from lmclient.server.completions import parse_completions

    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "text.toml").write_text(
        'provider = "openai-text"\nmodel = "mock"\nprompt_format = "llama3"\nurl = "http://127.0.0.1:9/v1"\n'
    )
    client = AsyncClient(Settings(profiles_dir=profiles, data_dir=tmp_path / "data"))
    call = parse_completions(json.dumps({"model": "text", "prompt": "<|eot_id|>Once"}).encode())
    target = Calling(client).target(call, Calling(client).profile("text", ANYBODY))
    assert isinstance(target, ModelProfile)
    body = json.loads(client.preview(target, call.conversation).body)
    assert body["prompt"] == "<|eot_id|>Once"
