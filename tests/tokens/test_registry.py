"""Tokenizers by name, and the one that fits a model."""

from importlib.metadata import EntryPoint

import pytest

from lmclient.errors import ConfigurationError
from lmclient.tokens import get, names, pick, register_tokenizer, registry


class Words:
    """A tokenizer from outside: one token per word."""

    def tokenize(self, text, *, parse_special=False):
        return list(range(len(text.split())))

    def detokenize(self, tokens):
        return " ".join(map(str, tokens))

    def count(self, text, *, parse_special=False):
        return len(text.split())


def make_words(*, encoding, url, send):
    return Words()


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_installed", {})


def test_the_built_in_names_are_listed():
    assert names() == ["fallback", "llama-server", "tiktoken"]


def test_a_registered_tokenizer_is_found():
    register_tokenizer("words", make_words)

    assert get("words").count("one two three") == 3
    assert "words" in names()


def test_a_registered_tokenizer_replaces_a_built_in_one():
    register_tokenizer("fallback", make_words)

    assert get("fallback").count("one two three") == 3


def test_a_tokenizer_of_an_installed_package_is_found(monkeypatch):
    entry = EntryPoint("words", f"{__name__}:make_words", registry.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda self: make_words)
    monkeypatch.setattr(registry, "entry_points", lambda *, group, name="words": [entry] * (name == "words"))

    assert get("words").count("one two three") == 3
    assert "words" in names()


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"'jtokkit'; known are fallback, llama-server, tiktoken"):
        get("jtokkit")


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("ft:gpt-3.5-turbo:org::id", "cl100k_base"),
        ("gpt-4o", "o200k_base"),
        ("openai/gpt-4o-mini", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("gpt-5.4-mini", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("o4-mini", "o200k_base"),
        ("openai/gpt-oss-120b", "o200k_harmony"),
        ("openai.gpt-oss-safeguard-20b", "o200k_harmony"),
        ("claude-sonnet-4-5", "o200k_base"),
        ("", "o200k_base"),
    ],
)
def test_each_model_gets_its_encoding(model, encoding):
    assert pick(model, "openai-chat") == ("tiktoken", encoding)


def test_the_local_server_tokenizes_itself():
    assert pick("smollm2", "llama-cpp")[0] == "llama-server"
