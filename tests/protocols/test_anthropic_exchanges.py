"""What Anthropic really sent, read whole and cut anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmclient.core.completion import FinishReason
from lmclient.core.conversation import Conversation
from lmclient.core.request import CompletionRequest
from lmclient.errors import ProviderError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.anthropic import Anthropic
from lmclient.providers.finishing import completion_of

Json = dict[str, Any]
OWN = sorted((Path(__file__).parent / "exchanges" / "anthropic").glob("*.json"))
SHARED = Path(__file__).parents[2].parent / "shared" / "exchanges"
RECORDED = sorted(SHARED.glob("anthropic-messages.*.json"))


def check_exchange(exchange: Json, split: int) -> None:
    """Reads the response in pieces of `split` bytes (0: whole) and compares it with `expected`."""
    expected, response = exchange["expected"], exchange["response"]
    profile = ModelProfile(provider="anthropic", model="asked")
    request = CompletionRequest(
        profile=profile, conversation=Conversation.create("?"), stream=exchange["stream"]
    )
    body = response["body"].encode()
    decoder = Anthropic().decoder(request, None)  # type: ignore[arg-type]  # no dialect is needed to read
    error: Exception | None = None
    chunks = []
    if response["status"] >= 300:
        error = Anthropic().error(response["status"], {}, body)
    else:
        step = split or len(body)
        for start in range(0, len(body), step):
            chunks += decoder.feed(body[start : start + step])
        chunks += decoder.finish()
        error = decoder.failure
    completion = completion_of(decoder.answer, request)
    assert completion.text == expected["text"]
    assert completion.reasoning == expected["reasoning"]
    assert "".join(chunk.text for chunk in chunks) == expected["text"]
    assert "".join(chunk.reasoning for chunk in chunks) == expected["reasoning"]
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in completion.tool_calls]
    said = [{key: call[key] for key in ("id", "name", "arguments")} for call in expected["tool_calls"]]
    assert calls == said
    assert decoder.answer.model == (expected["model"] or "")
    assert _finish(decoder.answer.finish_reason) == expected["finish_reason"]
    assert _usage(decoder.answer.usage) == expected["usage"]
    if expected["error"] is None:
        assert error is None
        assert decoder.ended
    else:
        assert isinstance(error, ProviderError)
        assert error.status == expected["error"]["status"]
        assert expected["error"]["message"] in str(error)
    if "chunks" in expected and not split:
        assert len([chunk for chunk in chunks if chunk.text or chunk.reasoning]) == expected["chunks"]


def _finish(reason: FinishReason | None) -> str | None:
    return None if reason in (None, FinishReason.UNKNOWN) else reason.value


def _usage(usage: Any) -> Json | None:
    if usage is None:
        return None
    names = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return {name: getattr(usage, name) for name in names}


def test_recorded_exchanges_are_there() -> None:
    if not SHARED.is_dir():
        pytest.skip("the recorded exchanges are not part of the repository")
    assert len(RECORDED) >= 90


@pytest.mark.parametrize("split", [0, 1, 7])
@pytest.mark.parametrize("path", [*OWN, *RECORDED], ids=lambda path: path.stem)
def test_an_exchange_is_read_as_expected(path: Path, split: int) -> None:
    check_exchange(json.loads(path.read_text(encoding="utf-8")), split)
