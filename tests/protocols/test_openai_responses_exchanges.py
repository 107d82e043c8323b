"""What real servers of the Responses API answered, read whole and cut into pieces."""

import json
from pathlib import Path

import pytest

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation
from lmclient.core.request import CompletionRequest
from lmclient.core.usage import Usage
from lmclient.errors import ProviderError
from lmclient.profiles.model import ModelProfile
from lmclient.protocols.openai_responses import OpenAIResponses
from lmclient.protocols.openai_responses_decoder import reasoning_parts
from lmclient.providers.dialects import OPENAI

RECORDED = Path(__file__).parents[2].parent / "shared" / "exchanges"
OWN = Path(__file__).parent / "exchanges" / "openai_responses"
FILES = [*sorted(RECORDED.glob("openai-responses.*.json")), *sorted(OWN.glob("*.json"))]
USAGE = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


def completion_of(answer):
    """What has been read, as the client hands it out."""
    return Completion(
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls(),
        finish_reason=answer.outcome(),
        usage=answer.usage or Usage(),
        provider_items=tuple(answer.provider_items),
        metadata=answer.metadata,
    )


def read(exchange, size):
    """The outcome of an exchange whose body arrives in pieces of `size` bytes, and its chunks."""
    response = exchange["response"]
    body = response["body"].encode()
    if response["status"] >= 300:
        return OpenAIResponses().error(response["status"], {}, body), []
    request = CompletionRequest(
        profile=ModelProfile(provider="openai-responses", model="asked"),
        conversation=Conversation.create("x"),
        stream=exchange["stream"],
    )
    decoder = OpenAIResponses().decoder(request, OPENAI)
    chunks = []
    for start in range(0, len(body), size or len(body)):
        chunks += decoder.feed(body[start : start + (size or len(body))])
    chunks += decoder.finish()
    return (decoder, completion_of(decoder.answer)), chunks


def check_error(error, expected):
    assert isinstance(error, ProviderError)
    assert error.status == expected["status"]
    assert " ".join(expected["message"].split()) in str(error)


def check(exchange, size):
    expected = exchange["expected"]
    outcome, chunks = read(exchange, size)
    if isinstance(outcome, ProviderError):
        check_error(outcome, expected["error"])
        return
    decoder, completion = outcome
    if expected["error"] is None:
        assert decoder.failure is None
    else:
        check_error(decoder.failure, expected["error"])
    items = [item for item in completion.provider_items if item["type"] == "reasoning"]
    assert [text for item in items for text in reasoning_parts(item)] == expected["reasoning_parts"]
    calls = [(call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]]
    assert completion.text == expected["text"]
    assert completion.reasoning == expected["reasoning"]
    assert [(c.name, c.arguments) for c in completion.tool_calls] == [call[1:] for call in calls]
    ids = [(call[0], given.id) for call, given in zip(calls, completion.tool_calls, strict=True)]
    assert all(given and said in (None, given) for said, given in ids)
    assert completion.finish_reason == (expected["finish_reason"] or "unknown")
    usage = decoder.answer.usage
    assert (usage and {name: getattr(usage, name) for name in USAGE}) == expected["usage"]
    assert (decoder.answer.model or None) == expected["model"]
    if "chunks" in expected:
        assert sum(bool(chunk.text or chunk.reasoning) for chunk in chunks) == expected["chunks"]
    if expected["error"] is None:
        assert "".join(chunk.text for chunk in chunks) == completion.text
        assert "".join(chunk.reasoning for chunk in chunks) == completion.reasoning
        assert sum((chunk.tool_calls for chunk in chunks), ()) == completion.tool_calls


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded exchanges are not part of a clone")
def test_recorded_exchanges_are_there():
    assert len(FILES) > len(list(OWN.glob("*.json")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exchange_is_read_whole(path):
    check(json.loads(path.read_text()), None)


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exchange_is_read_in_pieces(path, size):
    check(json.loads(path.read_text()), size)
