"""The documentation is complete: every public name, key, setting and command stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import lmclient
from lmclient import ModelProfile, Settings, errors
from lmclient.profiles.model import Cost, CostTier, Limits, Timeouts
from lmclient.profiles.properties import KEYS
from lmclient.settings import (
    Budget,
    CacheSettings,
    RateLimitSettings,
    RetrySettings,
    ServerSettings,
    ServerToken,
    SpendSettings,
)

from .conftest import ROOT
from .markdown import blocks_of

DOCS = ROOT / "docs"
REFERENCE = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
TABLES = {
    "spend": SpendSettings,
    "cache": CacheSettings,
    "retry": RetrySettings,
    "rate_limit": RateLimitSettings,
    "server": ServerSettings,
}
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def rows(page: str) -> dict[str, str]:
    """The defaults by key, as the page's tables of four columns tell."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {
        key: default for cells, _, default, _ in ROW.findall(text) for key in re.findall(r"`([\w.]+)`", cells)
    }


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a table, with their defaults."""
    for name, field in model.model_fields.items():
        yield prefix + name, field.get_default(call_default_factory=False)


@pytest.mark.parametrize("name", lmclient.__all__)
def test_a_public_name_is_in_the_reference(name):
    value = getattr(lmclient, name)
    module = lmclient._MODULE_OF[name]
    listed = re.findall(rf"^::: (lmclient\.{module}[\w.]*)$", REFERENCE, re.MULTILINE)
    assert (
        module == "errors"
        or any(line.endswith(f".{name}") for line in listed)
        or (f".{value.__name__}\n" in REFERENCE)
    )


@pytest.mark.parametrize(
    "model", [ModelProfile, Cost, CostTier, Limits, Timeouts], ids=lambda model: model.__name__
)
def test_every_key_of_a_profile_is_told(model):
    text = (DOCS / "profiles.md").read_text(encoding="utf-8")
    untold = {key for key, _ in fields(model) if f"`{key}`" not in text and f"[{key}]" not in text}
    assert untold - {"name"} == set()


def test_every_setting_is_told():
    told = rows("settings.md")
    expected = {key for key, _ in fields(Settings)} - {*TABLES}
    for table, model in TABLES.items():
        expected |= {key for key, _ in fields(model, f"{table}.")}
    assert expected - set(told) == set()
    assert {key for table in (Budget, ServerToken) for key, _ in fields(table)} - set(told) == set()


def test_the_defaults_of_numbers_are_those_of_the_code():
    told = rows("settings.md") | rows("profiles.md")
    numbers = dict(fields(Timeouts))
    for table, model in TABLES.items():
        numbers |= dict(fields(model, f"{table}."))
    numbers = {key: value for key, value in numbers.items() if isinstance(value, float | int)}
    assert {key: told[key] for key in numbers} == {key: _shown(value) for key, value in numbers.items()}


def _shown(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.15g}"


def test_every_property_of_lm_lib_is_told():
    text = (DOCS / "profiles.md").read_text(encoding="utf-8")
    assert [name for name in KEYS if f"`{name}`" not in text] == []


def test_every_option_of_a_call_is_told():
    from lmclient.client import CallOptions

    text = (DOCS / "clients.md").read_text(encoding="utf-8")
    assert [name for name in CallOptions.__annotations__ if f"`{name}`" not in text] == []


def test_every_shipped_profile_is_told():
    text = (DOCS / "providers.md").read_text(encoding="utf-8")
    assert [file.stem for file in (ROOT / "profiles").glob("*.toml") if f"`{file.stem}`" not in text] == []


def test_every_provider_and_prompt_format_is_told():
    from lmclient import prompts
    from lmclient.providers.registry import FACTORIES, PROTOCOLS

    providers, formats = (
        (DOCS / page).read_text(encoding="utf-8") for page in ("providers.md", "text-completion.md")
    )
    assert [name for name in (*PROTOCOLS, *FACTORIES) if f"`{name}`" not in providers] == []
    assert [format.name for format in prompts.registry.FORMATS if f"`{format.name}`" not in formats] == []


def test_every_command_is_told():
    from typer.main import get_command

    from lmclient.cli import app

    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in get_command(app).commands if f"`lmclient {name}" not in text] == []


def test_the_tree_of_errors_is_that_of_the_code():
    tree = next(block for block in blocks_of(DOCS / "errors.md") if block.code.startswith("LMClientError"))
    documented = [line.strip() for line in (errors.__doc__ or "").splitlines()]
    assert [line for line in map(str.strip, tree.code.splitlines()) if line not in documented] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []
