"""The vendors: what each does differently from the wire that it shares with others.

To add an OpenAI-compatible vendor, add a row to `BY_HOST` (only if it differs from the plain wire)
and a profile with its URL.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from lmclient.protocols.dialect import Dialect

OPENAI = Dialect(
    url="https://api.openai.com/v1",
    max_tokens_field="max_completion_tokens",
    fixed_sampling_models=r"(o\d|gpt-5)(?!.*chat)",
    adds_bos=False,
)
OPENROUTER = Dialect(url="https://openrouter.ai/api/v1", effort="reasoning.effort")
AZURE_OPENAI = Dialect(
    auth="api-key",
    max_tokens_field=OPENAI.max_tokens_field,
    fixed_sampling_models=OPENAI.fixed_sampling_models,
)
AZURE_AI = Dialect(auth="api-key")
ANTHROPIC = Dialect(
    url="https://api.anthropic.com",
    auth="x-api-key",
    fixed_sampling_models=r"claude-(opus-4-[7-9]|(opus|sonnet|haiku)-[5-9]|fable|mythos)",
    schemaless_models=r"claude-(\d|instant|(opus|sonnet)-4(-[01])?([-@]\d{8}|-latest)?$)",  # up to 4.1
)
GEMINI = Dialect(url="https://generativelanguage.googleapis.com", auth="x-goog-api-key")
OLLAMA = Dialect(url="http://localhost:11434")

BY_PROVIDER: dict[str, Dialect] = {
    "openai-chat": OPENAI,
    "openai-text": OPENAI,
    "openai-responses": OPENAI,
    "gemini": GEMINI,
    "openrouter": OPENROUTER,
    "azure-openai": AZURE_OPENAI,
    "azure-ai": AZURE_AI,
    "anthropic": ANTHROPIC,
    "ollama": OLLAMA,
}
"""For profiles without a URL, and for URLs whose host is in no row below."""

COMPATIBLE = Dialect(replay_reasoning="reasoning_content", shows_control_tokens=True)
"""A server of which nothing more is known than that it speaks OpenAI's chat or text completions."""

BY_HOST: dict[str, Dialect] = {
    "api.openai.com": OPENAI,
    "openrouter.ai": OPENROUTER,
    "api.groq.com": Dialect(max_tokens_field="max_completion_tokens", replay_reasoning="reasoning"),
    "api.mistral.ai": Dialect(stream_options=False, seed_field="random_seed"),
    "api.deepseek.com": Dialect(replay_reasoning="reasoning_content", json_schema=False),
    "api.cerebras.ai": Dialect(max_tokens_field="max_completion_tokens", replay_reasoning="reasoning"),
}
"""By the host of the profile's URL, its subdomains included."""


@lru_cache(maxsize=256)
def dialect_for(provider: str, url: str) -> Dialect:
    """The dialect of a provider at a URL; "" is the provider's own."""
    host = urlsplit(url).hostname or ""
    while host:
        if host in BY_HOST:
            return BY_HOST[host]
        host = host.partition(".")[2]
    if provider in ("openai-chat", "openai-text") and url:
        return COMPATIBLE
    return BY_PROVIDER.get(provider, COMPATIBLE)
