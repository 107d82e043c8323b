"""Prompt formats by name."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

from lmclient import prompts
from lmclient.errors import ConfigurationError
from lmclient.prompts import registry
from lmclient.prompts.format import Options, PromptFormat, Said


def shout(said: list[Said], options: Options) -> str:
    return "".join(f"{turn.role.upper()}! {turn.text}\n" for turn in said)


SHOUT = PromptFormat(name="shout", write=shout, stop=("\n",))


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_formats", {})


@pytest.mark.usefixtures("fresh_registry")
def test_registered_format_is_found_beside_the_built_in_ones() -> None:
    prompts.register_prompt_format(SHOUT)
    assert prompts.get("shout").render("Hi") == "USER! Hi\n"
    assert {"shout", "chatml"} <= set(prompts.names())


@pytest.mark.usefixtures("fresh_registry")
def test_entry_point_adds_a_format_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("shout", "decimal:ROUND_UP", registry.ENTRY_POINTS)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: SHOUT)
    assert prompts.get("shout") is SHOUT


@pytest.mark.usefixtures("fresh_registry")
@pytest.mark.parametrize("value", ["decimal:ROUND_UP", "no_such_module_here:x", "decimal:no_such_name"])
def test_entry_point_that_is_no_format_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = importlib.metadata.EntryPoint("odd", value, registry.ENTRY_POINTS)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    with pytest.raises(ConfigurationError, match="odd"):
        prompts.get("chatml")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no prompt format 'llama9'.*llama3"):
        prompts.get("llama9")


def test_jinja_is_loaded_only_for_templates() -> None:
    code = (
        "import sys; from lmclient import prompts; prompts.get('qwen3').render('a'); "
        "assert 'jinja2' not in sys.modules; prompts.from_template('a'); assert 'jinja2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
