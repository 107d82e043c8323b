"""Which tokenizer counts for a profile where no server is to be asked."""

from __future__ import annotations

from lmclient import tokens
from lmclient.profiles.model import ModelProfile
from lmclient.providers.counting import tokenizer_of


def offline_tokenizer(profile: ModelProfile) -> tuple[tokens.Tokenizer, str]:
    """The profile's tokenizer and a description of it; an approximation where that asks a server."""
    chosen, encoding = tokenizer_of(profile)
    # The one of llama.cpp cannot even be made without its server.
    tokenizer = None if chosen == "llama-server" else tokens.get(chosen, encoding)
    if tokenizer is None or tokens.is_server_tokenizer(tokenizer):
        about = f"about; counted with tiktoken {encoding}, only the server knows exactly"
        return tokens.get("tiktoken", encoding), about
    return tokenizer, f"{chosen} {encoding}" if chosen == "tiktoken" else chosen
