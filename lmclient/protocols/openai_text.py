"""OpenAI's text completions: a raw prompt in, the raw answer out.

https://platform.openai.com/docs/api-reference/completions, as spoken by llama.cpp
(https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, "POST /v1/completions") and
vLLM. A prompt format makes the prompt of a conversation and splits the reasoning out of the answer.

The wire has no reasoning effort. It goes into prompts that show it (gpt-oss), and "none" asks for the
format's variant without thinking; any other value leaves the format's own default. Without
`max_tokens` the server's own limit holds, which is 16 tokens at OpenAI and vLLM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from lmclient.core.alternating import alternating
from lmclient.core.completion import Chunk
from lmclient.core.conversation import Conversation, TextPart
from lmclient.core.request import CompletionRequest
from lmclient.errors import UnsupportedOptionError
from lmclient.prompts.format import PromptFormat
from lmclient.protocols.answer import Splitter
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai import OpenAIProtocol
from lmclient.protocols.openai_chat import Choice, Json, OpenAIChatDecoder, add_sampling

if TYPE_CHECKING:
    from lmclient.profiles.model import ModelProfile

_PROMPT_END = 200
"""Characters of the prompt's end that a parser is shown; the longest of the formats' openings has 30."""


class ServedFormat(NamedTuple):
    """A prompt format on a server; `adds_bos` is None where only the dialect tells."""

    format: PromptFormat
    adds_bos: bool | None = None

    def puts_bos(self, dialect: Dialect) -> bool:
        """Whether the server puts the BOS token in front, so that the prompt comes without."""
        adds = dialect.adds_bos if self.adds_bos is None else self.adds_bos
        return adds and bool(self.format.bos)


FormatOf = Callable[["ModelProfile"], ServedFormat | None]
"""The format of a profile, or None where only the server can tell."""


class OpenAIText(OpenAIProtocol):
    """The protocol `/completions`.

    Where `format_of` does not know a format, a request shows the messages in place of the prompt.
    """

    name = "openai-text"
    endpoints = ("/completions",)

    def __init__(self, format_of: FormatOf) -> None:
        self._format_of = format_of

    def body(self, request: CompletionRequest, dialect: Dialect) -> Json:
        return encode_body(request, dialect, self._format_of(request.profile))

    def decoder(self, request: CompletionRequest, dialect: Dialect) -> OpenAITextDecoder:
        served = self._format_of(request.profile)
        return OpenAITextDecoder(None if served is None else splitter(request, dialect, served))


def encode_body(request: CompletionRequest, dialect: Dialect, served: ServedFormat | None) -> Json:
    """The JSON body of a call. Raises `UnsupportedOptionError` for what text cannot carry."""
    profile, options = request.profile, request.options
    refuse_unsupported(request)
    body: Json = {"model": profile.model}
    if served is None:
        body["messages"] = request.conversation.to_messages()
    else:
        body["prompt"] = prompt_of(request, dialect, served)
    if request.stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    spelling = msgspec.structs.replace(dialect, max_tokens_field="max_tokens", effort="")
    add_sampling(body, request, spelling)
    if served is not None and served.format.stop:
        body["stop"] = list(dict.fromkeys((*served.format.stop, *options.stop)))
    if served is not None and dialect.shows_control_tokens and (markers := _marker_tokens(served.format)):
        body["preserved_tokens"] = markers  # llama.cpp: leaves these in the answer
        body["skip_special_tokens"] = False  # vLLM: leaves all of them there
    return {**body, **profile.extra_body, **options.extra_body}


def _marker_tokens(format: PromptFormat) -> list[str]:
    """The control tokens that the format's parser has to see, such as gpt-oss's `<|channel|>`."""
    if format.answer_parser is not None:
        return [token for token in format.special_tokens if token not in format.stop]
    if format.reasoning_markers is None:
        return []
    markers = "\0".join(format.reasoning_markers)
    return [token for token in format.special_tokens if token in markers]


def refuse_unsupported(request: CompletionRequest) -> None:
    """Raises `UnsupportedOptionError` for tools, a response format, and parts that are no text."""
    options = request.options
    given = {
        "tools": bool(options.tools),
        "parallel_tool_calls": options.parallel_tool_calls is not None,
        "response_format": options.response_format is not None,
    }
    for option, is_given in given.items():
        if is_given:
            hint = ' (llama.cpp takes extra_body={"json_schema": …})' if option == "response_format" else ""
            raise UnsupportedOptionError(
                f"Profile {request.profile.name!r}: text completion has no `{option}`{hint}; "
                "use a chat provider such as openai-chat."
            )
    for number, turn in enumerate(request.conversation.turns):
        if type(turn.content) is not str:
            for part in turn.content:
                if not isinstance(part, TextPart):
                    raise UnsupportedOptionError(
                        f"Profile {request.profile.name!r}: turn {number} ({turn.role.value}) has an "
                        f"{type(part).__name__}, and text completion carries text only; "
                        "use a chat provider such as openai-chat."
                    )


def prompt_of(request: CompletionRequest, dialect: Dialect, served: ServedFormat) -> str:
    """The prompt as it is sent: without BOS if the server puts it in front.

    Raises `BadRequestError` for a conversation that the format cannot carry.
    """
    profile = request.profile
    effort = request.options.reasoning_effort or profile.reasoning_effort
    off = effort == "none"
    conversation = request.conversation
    if profile.roles == "alternating":
        conversation = Conversation(alternating(conversation.turns))
    prompt = served.format.render(
        conversation,
        thinking=False if off else None,
        special_tokens=profile.special_tokens,
        reasoning_effort=None if off else effort,
    )
    return prompt.removeprefix(served.format.bos) if served.puts_bos(dialect) else prompt


def splitter(request: CompletionRequest, dialect: Dialect, served: ServedFormat) -> Splitter | None:
    """What splits the reasoning out of the answer and cuts it at a stop string; None if nothing is to do.

    The profile's `reasoning_tags` replace the markers of the format.
    """
    format, tag, stop = served.format, request.profile.reasoning_tags, request.options.stop
    if tag:
        format = dataclasses.replace(format, reasoning_markers=(f"<{tag}>", f"</{tag}>"), answer_parser=None)
    if stop:
        format = dataclasses.replace(format, stop=(*format.stop, *stop))
    if format.reasoning_markers is None and format.answer_parser is None:
        return format.parser() if format.stop else None
    return format.parser(prompt_end=prompt_of(request, dialect, served)[-_PROMPT_END:])


class OpenAITextDecoder(OpenAIChatDecoder):
    """Reads a text completion, streamed or not."""

    def _read_choice(self, choice: Choice) -> Chunk | None:
        if choice.finish_reason:
            self._read_finish(choice)
        if choice.logprobs is not None:
            self._read_logprobs(choice.logprobs)
        return self.answer.add(choice.text) if type(choice.text) is str and choice.text else None
