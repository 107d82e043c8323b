"""The prompts and answers of the model makers' own templates, byte for byte.

`cases/` holds one file per format: conversations with the exact prompt, raw answers with their text
and reasoning.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from lmclient import prompts

TODAY = datetime.date(2026, 1, 15)
FILES = sorted((Path(__file__).parent / "cases").glob("*.json"))
SPECS: list[dict[str, Any]] = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]


def cases(*kinds: str) -> list[Any]:
    return [
        pytest.param(spec["strategy"], case, id=f"{spec['strategy']}-{kind}-{case['name']}")
        for spec in SPECS
        for kind in kinds
        for case in spec.get(kind, [])
    ]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["strategy"])
def test_facts_are_those_of_the_tokenizer(spec: dict[str, Any]) -> None:
    format = prompts.get(spec["strategy"])
    assert format.name == spec["strategy"]
    assert format.bos == spec["bos"]
    assert list(format.stop) == spec["stop"]
    assert set(format.special_tokens) == set(spec["special_tokens"])
    assert list(format.turn_markers) == spec.get("turn_markers", [])
    assert list(format.reasoning_markers or ()) == spec.get("reasoning_markers", [])
    assert format.opens_reasoning == spec["rules"].get("prompt_opens_reasoning", False)


def test_every_built_in_format_has_cases() -> None:
    assert prompts.names() == sorted(spec["strategy"] for spec in SPECS)


@pytest.mark.parametrize(("name", "case"), cases("cases", "option_cases"))
def test_prompt_is_the_official_one(name: str, case: dict[str, Any]) -> None:
    rendered = prompts.get(name).render(case["messages"], today=TODAY, **case.get("options", {}))
    assert rendered == case["prompt"]


@pytest.mark.parametrize(("name", "case"), cases("cases"))
def test_prompt_ends_as_the_rules_say(name: str, case: dict[str, Any]) -> None:
    rules = next(spec["rules"] for spec in SPECS if spec["strategy"] == name)
    assert prompts.get(name).render(case["messages"]).endswith(rules["assistant_prefix"])


@pytest.mark.parametrize(("name", "case"), cases("reasoning_cases", "option_reasoning_cases"))
def test_answer_is_split_alike_at_every_position(name: str, case: dict[str, Any]) -> None:
    raw, prompt_end = case["raw_output"], case.get("prompt_end", "")
    expected = (case["text"], case["reasoning"])
    for cut in range(len(raw) + 1):
        assert split(name, [raw[:cut], raw[cut:]], prompt_end) == expected, cut
    assert split(name, list(raw), prompt_end) == expected
    whole = prompts.get(name).parse(raw, prompt_end=prompt_end)
    assert (whole.text, whole.reasoning) == expected


def split(name: str, pieces: list[str], prompt_end: str) -> tuple[str, str]:
    parser = prompts.get(name).parser(prompt_end=prompt_end)
    chunks = [*map(parser.feed, pieces), parser.finish()]
    return "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)


def test_cases_are_those_of_the_shared_folder() -> None:
    shared = Path(__file__).parents[3] / "shared" / "prompt_formats"
    if not shared.is_dir():
        pytest.skip("no shared folder beside the repository")
    assert {file.name: file.read_bytes() for file in shared.glob("*.json")} == {
        file.name: file.read_bytes() for file in FILES
    }
