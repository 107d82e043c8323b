"""What one vendor does differently on a wire that it shares with others, as declared facts."""

from __future__ import annotations

from typing import Literal

import msgspec

Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key"]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a protocol asks about the vendor behind it."""

    url: str = ""
    """Where the vendor is, for a profile that says nothing else."""

    auth: Auth = "bearer"
    """The header that carries the key; `bearer` is `Authorization: Bearer KEY`."""

    max_tokens_field: str = "max_tokens"
    """How the limit of output tokens is called."""

    stream_options: bool = True
    """Whether `stream_options: {"include_usage": true}` is accepted."""

    fixed_sampling_models: str = ""
    """A regular expression for models that refuse `temperature` and `top_p`."""

    effort: Literal["reasoning_effort", "reasoning.effort", ""] = "reasoning_effort"
    """How reasoning effort is spelt; "" where it cannot be said."""

    replay_reasoning: Literal["reasoning_content", "reasoning", ""] = ""
    """The field in which an assistant turn's reasoning goes back during tool rounds."""

    json_schema: bool = True
    """Whether `response_format` of type `json_schema` is understood."""

    schemaless_models: str = ""
    """A regular expression for models that understand no JSON schema where others of the vendor do."""

    seed_field: str = "seed"
    """How the sampling seed is called."""

    tools: bool = True
    """Whether tools are understood."""

    adds_bos: bool = True
    """Whether a text prompt gets the model's BOS token from the server, as at llama.cpp and vLLM."""

    shows_control_tokens: bool = False
    """Whether `preserved_tokens` (llama.cpp) and `skip_special_tokens` (vLLM) may be sent: without them
    those servers leave control tokens out of a text answer, also those that mark its reasoning."""
