from __future__ import annotations

import pytest

from lmclient.profiles.properties import parse, profile_values, property_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a : 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t=  1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("  a=b=c:d", {"a": "b=c:d"}),
        ("# x=1\n ! y=2\n\nz=3", {"z": "3"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a\\=b\\ c=1", {"a=b c": "1"}),
        ("a=\\u00e9\\t\\q", {"a": "é\tq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("url=http://localhost:5001", {"url": "http://localhost:5001"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_java_rules(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


def test_a_malformed_unicode_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse("a=\\u12")


def test_every_key_of_lm_lib_is_translated() -> None:
    text = """
        prompts=llama3
        tokenizer=llamaServer
        tokenEncoding=cl100k_base
        maxTokens=2500
        maxContextLength=16000
        temperature=0.4
        topP=0.9
        modelProvider=OAI_TEXT_COMPLETION
        modelName=Llama-3.3-70B
        url=http://localhost:5001
        apiKey=${KEY}
        cost1MInTokens=0.71
        cost1MCachedInTokens=0.35
        cost1MOutTokens=0.72
        cost1MReasoningOutTokens=0.73
        reasoningEffort=medium
        reasoningSummaryDetails=auto
        category=M
    """
    assert profile_values(text) == {
        "prompt_format": "llama3",
        "tokenizer": "llama-server",
        "token_encoding": "cl100k_base",
        "max_tokens": "2500",
        "max_context_length": "16000",
        "temperature": "0.4",
        "top_p": "0.9",
        "provider": "openai-text",
        "model": "Llama-3.3-70B",
        "url": "http://localhost:5001",
        "api_key": "${KEY}",
        "cost": {"input": "0.71", "cached_input": "0.35", "output": "0.72", "reasoning": "0.73"},
        "reasoning_effort": "medium",
        "reasoning_summary": "auto",
        "category": "m",
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("OAI_CHAT_COMPLETION", "openai-chat"),
        ("OAI_TEXT_COMPLETION", "openai-text"),
        ("OAI_RESPONSES", "openai-responses"),
        ("AZURE_AI", "azure-ai"),
        ("OPENROUTER", "openrouter"),
        ("OLLAMA", "ollama"),
        ("anthropic", "anthropic"),
    ],
)
def test_the_providers_of_lm_lib_are_translated(theirs: str, ours: str) -> None:
    assert profile_values(f"modelProvider={theirs}") == {"provider": ours}


def test_jtokkit_is_tiktoken() -> None:
    assert profile_values("tokenizer=jTokkit") == {"tokenizer": "tiktoken"}


def test_a_key_is_named_as_it_stands_in_the_file() -> None:
    assert property_name("cost.cached_input") == "cost1MCachedInTokens"
