"""Counting tokens: tokenizers by name, and what a conversation costs.

    get("tiktoken", "o200k_base").count("Hello")

A tokenizer inside this process is a `Tokenizer`, one that asks a server a `ServerTokenizer` with the
same methods to be awaited; `count_tokens` hides the difference.
"""

from lmclient.tokens.llama_server import Send, server_root
from lmclient.tokens.messages import count_messages, count_messages_on_server
from lmclient.tokens.picking import pick
from lmclient.tokens.registry import TokenizerFactory, get, names, register_tokenizer
from lmclient.tokens.tokenizer import ServerTokenizer, Tokenizer, count_tokens, is_server_tokenizer

__all__ = [
    "Send",
    "ServerTokenizer",
    "Tokenizer",
    "TokenizerFactory",
    "count_messages",
    "count_messages_on_server",
    "count_tokens",
    "get",
    "is_server_tokenizer",
    "names",
    "pick",
    "register_tokenizer",
    "server_root",
]
