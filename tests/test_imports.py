"""Who imports whom, and what importing the package does."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "lmclient"
MODULES = sorted(PACKAGE.rglob("*.py"))

ALLOWED: dict[str, tuple[str, ...]] = {
    "errors": (),
    "core": ("errors",),
    "prompts": ("core", "errors"),
    "tokens": ("core", "errors", "transports", "profiles"),
    "profiles": ("core", "errors", "settings"),
    "settings": ("core", "errors", "profiles"),
    "protocols": ("core", "errors", "prompts", "profiles"),
    "transports": ("core", "errors"),
    "spend": ("core", "errors", "profiles", "settings", "background", "interceptors"),
    "cache": ("core", "errors", "profiles", "settings", "providers.redaction"),
    "limits": ("core", "errors", "profiles", "settings"),
    "ui": ("core", "errors"),
    "server": ("core", "errors", "profiles", "settings", "spend", "client", "ui"),
    "interceptors": (
        "core",
        "errors",
        "profiles",
        "settings",
        "tokens",
        "spend",
        "limits",
        "cache",
        "logging",
        "providers.redaction",
    ),
}
"""By package: what its modules may import of lmclient, besides itself."""

RUN_TIME_ONLY: dict[str, tuple[str, ...]] = {
    "protocols": (
        "asyncio",
        "time",
        "socket",
        "ssl",
        "http",
        "urllib.request",
        "threading",
        "anyio",
        "aiohttp",
    ),
    "interceptors": ("aiohttp", "httpx2", "http", "socket", "ssl", "urllib.request"),
    "core": ("aiohttp", "httpx2", "openai", "socket", "ssl", "pydantic_settings"),
}
"""By package: what none of its modules may import from elsewhere."""


def imports(module: Path, *, typing: bool) -> Iterator[str]:
    """The names that a module imports; those under TYPE_CHECKING only if `typing`."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    skipped = set()
    if not typing:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                skipped |= {id(inner) for part in node.body for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            yield node.module if node.module != "lmclient" else f"lmclient.{node.names[0].name}"


def of_package(package: str) -> list[Path]:
    single = PACKAGE / f"{package}.py"
    return [single] if single.exists() else sorted((PACKAGE / package).rglob("*.py"))


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    allowed = [f"lmclient.{name}" for name in (package, *ALLOWED[package])]
    wrong = [
        (module.relative_to(PACKAGE).as_posix(), name)
        for module in of_package(package)
        for name in imports(module, typing=False)
        if within(name, "lmclient") and not within(name, *allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("package", RUN_TIME_ONLY)
def test_a_package_stays_away_from_what_is_not_its_business(package: str) -> None:
    wrong = [
        (module.relative_to(PACKAGE).as_posix(), name)
        for module in of_package(package)
        for name in imports(module, typing=False)
        if within(name, *RUN_TIME_ONLY[package])
    ]
    assert wrong == []


def test_transports_know_no_model() -> None:
    """Not even for type checkers."""
    forbidden = (
        "lmclient.protocols",
        "lmclient.profiles",
        "lmclient.core.conversation",
        "lmclient.core.request",
    )
    wrong = [
        (module.name, name)
        for module in of_package("transports")
        for name in imports(module, typing=True)
        if within(name, *forbidden)
    ]
    assert wrong == []


def test_interceptors_know_no_http() -> None:
    forbidden = (
        "lmclient.core.http",
        "lmclient.transports",
        "lmclient.protocols",
        "lmclient.providers.http",
        "lmclient.providers.exchange",
    )
    wrong = [
        (module.name, name)
        for module in of_package("interceptors")
        for name in imports(module, typing=True)
        if within(name, *forbidden)
    ]
    assert wrong == []


def test_nothing_below_the_client_imports_it() -> None:
    above = {
        "client",
        "sync",
        "__init__",
        "__main__",
        "default_chain",
        "cli",
        "testing",
        "flows",
        "background",
        "server",
    }
    wrong = [
        (module.relative_to(PACKAGE).as_posix(), name)
        for module in MODULES
        if module.relative_to(PACKAGE).parts[0].removesuffix(".py") not in above
        for name in imports(module, typing=False)
        if within(name, "lmclient.client", "lmclient.sync", "lmclient.cli", "lmclient.default_chain")
        and not is_program(module)
    ]
    assert wrong == []


def test_no_module_is_called_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [
        module for module in MODULES if vague & set(module.relative_to(PACKAGE).with_suffix("").parts)
    ] == []


def test_no_module_is_longer_than_five_hundred_lines() -> None:
    assert [module.name for module in MODULES if len(module.read_text().splitlines()) > 500] == []


# What an import does

WATCHED = """
import json, os, sys, threading
opened = []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        if ".py" not in arguments[0] and not arguments[0].endswith(".so"):
            opened.append(arguments[0])
    elif event in ("socket.connect", "socket.bind", "subprocess.Popen"):
        opened.append(event)

before = dict(os.environ)
sys.addaudithook(watch)
import lmclient
{then}
print(json.dumps({{
    "modules": sorted(sys.modules),
    "opened": opened,
    "environment": {{k: v for k, v in os.environ.items() if before.get(k) != v}},
    "threads": threading.active_count(),
}}))
"""
HEAVY = (
    "openai",
    "azure",
    "httpx2",
    "aiohttp",
    "tiktoken",
    "jinja2",
    "diskcache",
    "rich",
    "typer",
    "redis",
    "psycopg",
)


def imported(directory: Path, then: str = "") -> dict[str, list[str]]:
    """What a fresh interpreter has done after `import lmclient` in this directory."""
    run = subprocess.run(
        [sys.executable, "-I", "-c", WATCHED.format(then=then)],
        cwd=directory,
        env={**os.environ, "LMCLIENT_RETRY__ATTEMPTS": "nonsense"},
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, list[str]] = json.loads(run.stdout)
    assert run.stderr == ""
    return result


@pytest.fixture(scope="module")
def after_import(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    parent = tmp_path_factory.mktemp("parent")
    inner = parent / "inner"
    inner.mkdir()
    for directory in (parent, inner):
        (directory / ".env").write_text("UNRELATED=1\nLMCLIENT_PROXY=nonsense\n")
        (directory / "lmclient.toml").write_text("nonsense")
    return imported(inner)


@pytest.mark.parametrize("package", HEAVY)
def test_the_import_loads_nothing_heavy(after_import: dict[str, list[str]], package: str) -> None:
    assert [name for name in after_import["modules"] if within(name, package)] == []


def test_the_import_reads_no_file_and_opens_no_socket(after_import: dict[str, list[str]]) -> None:
    """H04"""
    assert after_import["opened"] == []


def test_the_import_changes_no_variable(after_import: dict[str, list[str]]) -> None:
    """H04"""
    assert after_import["environment"] == {}


def test_the_import_starts_no_thread(after_import: dict[str, list[str]]) -> None:
    assert after_import["threads"] == 1


def test_the_import_loads_hardly_any_module(after_import: dict[str, list[str]]) -> None:
    assert [name for name in after_import["modules"] if within(name, "lmclient")] == ["lmclient"]


def test_settings_read_env_files_without_touching_the_environment(tmp_path: Path) -> None:
    """H04"""
    (tmp_path / ".env").write_text("UNRELATED=1\nLMCLIENT_DATA_DIR=/somewhere\n")
    done = imported(
        tmp_path,
        "del os.environ['LMCLIENT_RETRY__ATTEMPTS']; before.pop('LMCLIENT_RETRY__ATTEMPTS')\n"
        "assert str(lmclient.Settings().data_dir) == '/somewhere'",
    )
    assert done["environment"] == {}


def test_the_environment_wins_over_env_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H04"""
    from lmclient import Settings

    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("LMCLIENT_DATA_DIR=/from/file\n")
    monkeypatch.setenv("LMCLIENT_DATA_DIR", "/from/environment")
    assert str(Settings().data_dir) == "/from/environment"


def is_program(module: Path) -> bool:
    """The command line, which is loaded when it runs."""
    return module.stem in ("__main__", "cli") or "cli" in module.relative_to(PACKAGE).parts


LIBRARY = [module for module in MODULES if not is_program(module)]


@pytest.mark.parametrize("module", LIBRARY, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_does_nothing_when_it_is_imported(module: Path) -> None:
    """No call stands alone at its top: no thread, no registration; a silent logger is all there may be."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    alone = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    assert [call for call in alone if not call.endswith("addHandler(logging.NullHandler())")] == []
