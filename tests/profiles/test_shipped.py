from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from lmclient.profiles import Cost, ModelProfile
from lmclient.profiles.directory import shipped_directory
from lmclient.profiles.reading import ProfileFile
from lmclient.profiles.variables import Variables

FILES = sorted(shipped_directory().glob("*.toml"))
_VARIABLE = re.compile(r"\$\{(\w+)")


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelProfile:
    for name in _VARIABLE.findall(path.read_text()):
        monkeypatch.setenv(name, "http://localhost:1" if name.endswith(("URL", "ENDPOINT")) else "value")
    return ProfileFile(path.stem, path, shipped=True).load(Variables())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_loads_and_its_first_line_names_its_variables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(path, monkeypatch).name == path.stem
    first = path.read_text().splitlines()[0]
    assert first.startswith("# ")
    for name in _VARIABLE.findall(path.read_text()):
        assert name in first


@pytest.mark.parametrize(
    "provider",
    ["openai-chat", "openai-text", "azure-openai", "azure-ai", "openrouter", "anthropic", "gemini", "ollama"],
)
def test_there_is_a_profile_for_each_provider(provider: str) -> None:
    assert any(f'provider = "{provider}"' in path.read_text() for path in FILES)


def test_the_local_model_needs_nothing_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    local = loaded(shipped_directory() / "local.toml", monkeypatch)
    assert (local.provider, local.model) == ("llama-cpp", "smollm2")
    assert local.cost == Cost(input=Decimal(0), output=Decimal(0))
    # The context length in the weights' own metadata.
    assert local.max_context_length == 8192
