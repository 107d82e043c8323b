"""Answers of Gemini: one JSON body, a stream of events, or (without `alt=sse`) a JSON list.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse. Each event is a response
of its own with the parts that are new; there is no event that ends the stream.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lmclient.core.completion import Chunk, FinishReason
from lmclient.core.usage import Usage
from lmclient.errors import ProtocolError
from lmclient.protocols.answer import Splitter
from lmclient.protocols.base import SSEDecoder, as_count, as_dict, as_int, as_str, decode_json
from lmclient.protocols.gemini_errors import error_of
from lmclient.protocols.stated_usage import StatedUsage, read_cost, take_usage, whole_counts

Json = dict[str, Any]

FINISH_REASONS = {
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "SAFETY": FinishReason.CONTENT_FILTER,
    "RECITATION": FinishReason.CONTENT_FILTER,
    "PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "BLOCKLIST": FinishReason.CONTENT_FILTER,
    "SPII": FinishReason.CONTENT_FILTER,
    "MODEL_ARMOR": FinishReason.CONTENT_FILTER,
    "IMAGE_SAFETY": FinishReason.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "IMAGE_RECITATION": FinishReason.CONTENT_FILTER,
    "FINISH_REASON_UNSPECIFIED": FinishReason.UNKNOWN,
}
"""All others (malformed calls, an unsupported language, …) mean that the answer is of no use."""

_COUNTS = frozenset(
    {
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "cachedContentTokenCount",
        "thoughtsTokenCount",
    }
)
_PLAIN = frozenset({"text", "thought"})
_decoder = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class GeminiDecoder(SSEDecoder):
    """Reads a response of generateContent or streamGenerateContent."""

    def __init__(self, splitter: Splitter | None = None) -> None:
        super().__init__(splitter)
        self._parts: list[Json] = []
        self._call_ids: set[str] = set()
        self._calls = 0

    def read_event(self, name: bytes, data: bytes) -> Chunk | None:
        if data == b"[DONE]":  # gateways add it
            return None
        return self._read(decode_json(_decoder, data, "an event"))

    def read_body(self, data: bytes) -> Chunk | None:
        body = decode_json(_decoder, data, "an answer")
        responses = body if isinstance(body, list) else [body]
        if not any(_is_response(response) for response in responses):
            raise ProtocolError(f"The server's answer has no candidates: {data[:80]!r}")
        text = reasoning = ""
        for response in responses:
            chunk = self._read(response)
            if chunk is not None:
                text, reasoning = text + chunk.text, reasoning + chunk.reasoning
        self.ended = True
        return Chunk(text, reasoning) if text or reasoning else None

    def complete(self) -> bool:
        return self.answer.finish_reason is not None

    def _read(self, response: object) -> Chunk | None:
        if not isinstance(response, dict):
            raise ProtocolError(f"The server sent an event that is no response: {response!r:.80}")
        if response.get("error") is not None:
            raise error_of(response["error"])
        answer = self.answer
        answer.id = answer.id or as_str(response.get("responseId"))
        answer.model = answer.model or as_str(response.get("modelVersion"))
        if counts := as_dict(response.get("usageMetadata")):
            take_usage(answer, read_usage(counts), read_cost(counts))
            answer.keep("service_tier", counts.get("serviceTier"))
        feedback = as_dict(response.get("promptFeedback"))
        if feedback.get("blockReason"):
            answer.finish_reason = FinishReason.CONTENT_FILTER
            answer.metadata["block_reason"] = feedback["blockReason"]
            if said := as_str(feedback.get("blockReasonMessage")):
                answer.metadata["block_message"] = said
        candidates = response.get("candidates")
        for candidate in map(as_dict, candidates if isinstance(candidates, list) else ()):
            if not candidate.get("index"):  # 0, or not given
                return self._read_candidate(candidate)
        return None

    def _read_candidate(self, candidate: Json) -> Chunk | None:
        parts = as_dict(candidate.get("content")).get("parts")
        text: list[str] = []
        reasoning: list[str] = []
        for part in map(as_dict, parts if isinstance(parts, list) else ()):
            said = as_str(part.get("text"))
            (reasoning if part.get("thought") else text).append(said)
            if "functionCall" in part and not self._read_call(as_dict(part["functionCall"])):
                continue
            self._keep_part(part)
        if candidate.get("finishReason"):
            self._read_finish(candidate)
        return self.answer.add("".join(text), "".join(reasoning))

    def _read_call(self, call: Json) -> bool:
        """Takes a call, which always comes whole; False for one that an event repeats."""
        id = as_str(call.get("id"))
        if id in self._call_ids:
            return False
        if id:
            self._call_ids.add(id)
        arguments = call.get("args")
        raw = "" if arguments is None else _encode(arguments).decode()
        self.answer.calls.add(self._calls, id, as_str(call.get("name")), raw)
        self._calls += 1
        return True

    def _keep_part(self, part: Json) -> None:
        """Keeps the part for the next turn; the pieces of one text become one part again."""
        last = self._parts[-1] if self._parts else None
        if (
            last is not None
            and _PLAIN.issuperset(part)
            and _PLAIN.issuperset(last)
            and bool(part.get("thought")) == bool(last.get("thought"))
        ):
            last["text"] = as_str(last.get("text")) + as_str(part.get("text"))
        elif part and part != {"text": ""}:
            self._parts.append(dict(part))
        if self._parts and not _PLAIN.issuperset(self._parts[-1]):
            self.answer.provider_items = self._parts  # plain text needs nothing else to go back

    def _read_finish(self, candidate: Json) -> None:
        said = as_str(candidate["finishReason"])
        reason = FINISH_REASONS.get(said, FinishReason.ERROR)
        self.answer.finish_reason = reason
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            return
        self.answer.metadata["finish_reason"] = candidate["finishReason"]
        if message := as_str(candidate.get("finishMessage")):
            self.answer.metadata["finish_message"] = message


def _is_response(value: object) -> bool:
    known = ("candidates", "promptFeedback", "usageMetadata", "error")
    return isinstance(value, dict) and any(name in value for name in known)


def read_usage(usage: Json) -> StatedUsage | None:
    """The usage, None where nothing was counted.

    Thoughts stand beside the candidates here, and what tools read beside the prompt.
    """
    prompt, candidates = as_count(usage.get("promptTokenCount")), as_count(usage.get("candidatesTokenCount"))
    thoughts = as_int(usage.get("thoughtsTokenCount"))
    if prompt is not None:
        prompt += as_int(usage.get("toolUsePromptTokenCount"))
    if candidates is not None:
        candidates += thoughts
    prompt, output = whole_counts(
        prompt, candidates, as_count(usage.get("totalTokenCount")), has_hidden_thoughts=True
    )
    if prompt is None and output is None:
        return None
    counted = Usage(
        input_tokens=prompt or 0,
        cached_input_tokens=as_int(usage.get("cachedContentTokenCount")),
        output_tokens=thoughts if output is None else output,
        reasoning_tokens=thoughts,
        details={name: value for name, value in usage.items() if name not in _COUNTS and value is not None},
    )
    return StatedUsage(counted, prompt is not None, output is not None)
