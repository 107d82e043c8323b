from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmclient.profiles.checking import KnownNames, Problem, check
from lmclient.profiles.directory import shipped_directory
from lmclient.settings import Settings

KNOWN = KnownNames(
    provider=[
        *("openai-chat", "openai-text", "openai-responses", "azure-openai", "azure-ai"),
        *("openrouter", "ollama", "anthropic", "gemini", "llama-cpp"),
    ],
    prompt_format=["chatml", "llama3"],
    tokenizer=["tiktoken", "llama-server", "fallback"],
    token_encoding=["cl100k_base", "o200k_base"],
)


def problems(**settings: Any) -> list[Problem]:
    return check(Settings(**settings), KNOWN)


def test_a_fresh_machine_has_no_problems() -> None:
    assert problems() == []


def test_the_shipped_profiles_may_be_the_working_directorys() -> None:
    assert problems(profiles_dir=shipped_directory()) == []


def test_a_category_makes_the_variables_of_a_shipped_profile_needed() -> None:
    (problem,) = problems(categories={"m": "gpt-5-mini"})
    assert problem.key == "api_key"
    assert "OPENAI_API_KEY" in problem.expected


@pytest.mark.parametrize(
    ("line", "key", "expected"),
    [
        ("", "provider", "a value"),
        ("provider = 'openai-chat'\nmax_tokens = 'many'", "max_tokens", "a whole number"),
        ("provider = 'openai-chat'\ncost.input = -1", "cost.input", "a number of at least 0"),
        ("provider = 'openai-cat'", "provider", "one of openai-chat, "),
        ("provider = 'ollama'\napi_key = '${NOPE}'", "api_key", "the variable NOPE"),
        ("provider = 'openai-text'\nprompt_format = 'lama3'", "prompt_format", "one of llama3"),
        ("provider = 'ollama'\ntokenizer = 'tictoken'", "tokenizer", "one of tiktoken"),
        ("provider = 'ollama'\ntoken_encoding = 'o200k'", "token_encoding", "one of o200k_base"),
        ("provider = 'ollama'\nmodle = 'x'", "modle", "one of model"),
        ("provider = ", None, "TOML"),
    ],
)
def test_each_kind_of_problem_names_file_key_and_what_was_expected(
    project: Path, line: str, key: str | None, expected: str
) -> None:
    (project / "profiles" / "a.toml").write_text(line)
    (problem,) = problems()
    assert (problem.file, problem.key) == ("profiles/a.toml", key)
    assert problem.expected.startswith(expected)
    assert "profiles/a.toml" in problem.message
    assert "\n" not in problem.message


@pytest.mark.parametrize(
    "line",
    [
        "provider = 'openai-text'\nprompt_format = 'own.jinja'",
        "provider = 'ollama'\ntokenizer = 'fallback'\ntoken_encoding = 'its own'",
    ],
)
def test_a_template_file_and_the_encoding_of_another_tokenizer_are_no_unknown_names(
    project: Path, line: str
) -> None:
    (project / "profiles" / "a.toml").write_text(line)
    assert problems() == []


def test_all_problems_of_all_profiles_are_found(project: Path) -> None:
    (project / "profiles" / "a.toml").write_text("temperature = 3\napi_key = '${NOPE}'\nprovider = 'x'")
    (project / "profiles" / "b.properties").write_text("modelProvider=OLLAMA\ntopP=2")
    found = [(problem.file, problem.key) for problem in problems()]
    assert found == [
        ("profiles/a.toml", "api_key"),
        ("profiles/a.toml", "temperature"),
        ("profiles/a.toml", "provider"),
        ("profiles/b.properties", "topP"),
    ]


def test_a_category_without_its_profile_is_a_problem() -> None:
    (problem,) = problems(categories={"m": ["local", "gone"]})
    assert (problem.file, problem.key) == ("settings", "categories.m")


def test_no_message_shows_a_key(project: Path) -> None:
    (project / "profiles" / "a.toml").write_text("provider = 'ollama'\nmax_tokens = 'sk-planted'")
    assert "sk-planted" not in repr(problems())
