from __future__ import annotations

import os
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from pydantic import ValidationError

from lmclient.errors import ConfigurationError
from lmclient.settings import CacheSettings, Settings

PASSWORD = "planted-0123456789"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("LMCLIENT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_: tmp_path / "data")
    return tmp_path


def test_the_defaults_are_those_documented(project: Path) -> None:
    settings = Settings()
    assert settings.profiles_dir == Path("profiles")
    assert settings.data_dir == project / "data"
    assert settings.categories == dict.fromkeys(["s", "m", "l", "xl", "hot", "cold"], "local")
    assert settings.interceptors == ()
    assert (settings.spend.enabled, settings.spend.budgets) == (True, ())
    assert settings.spend.url == f"sqlite:///{project / 'data' / 'ledger.sqlite3'}"
    assert (settings.cache.enabled, settings.cache.backend) == (False, "disk")
    assert (settings.retry.attempts, settings.retry.max_wait) == (4, 30)
    assert settings.rate_limit.storage_url == "memory://"
    assert (settings.proxy, settings.tls_verify, settings.ca_bundle) == (None, True, None)


def test_later_sources_win(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["s", "m", "l", "xl", "hot"]
    (project / "pyproject.toml").write_text(
        "[tool.lmclient.categories]\n" + "".join(f"{name} = 'pyproject'\n" for name in names)
    )
    (project / "lmclient.toml").write_text(
        "[categories]\n" + "".join(f"{name} = 'toml'\n" for name in names[:4])
    )
    (project / ".env").write_text(
        "".join(f"LMCLIENT_CATEGORIES__{name.upper()}=dotenv\n" for name in names[:3])
    )
    monkeypatch.setenv("LMCLIENT_CATEGORIES__S", "environment")
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "environment")
    assert Settings(categories={"s": "argument"}).categories == {
        "s": "argument",
        "m": "environment",
        "l": "dotenv",
        "xl": "toml",
        "hot": "pyproject",
        "cold": "local",
    }


def test_one_variable_switches_the_model_of_a_category(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "gpt-5-mini")
    settings = Settings()
    assert (settings.categories["m"], settings.categories["s"]) == ("gpt-5-mini", "local")
    assert (settings.chose_category("m"), settings.chose_category("s")) == (True, False)


def test_a_variable_may_hold_fallbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", '["a", "b"]')
    assert Settings().categories["m"] == ["a", "b"]


def test_a_variable_changes_a_category_that_a_file_writes_with_capitals(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "lmclient.toml").write_text("[categories]\nFast = 'a'\n")
    monkeypatch.setenv("LMCLIENT_CATEGORIES__FAST", "b")
    assert Settings().categories["Fast"] == "b"
    assert "fast" not in Settings().categories


def test_nested_settings_are_merged_over_the_sources(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "lmclient.toml").write_text("[cache]\nenabled = true\nttl = 60\n")
    monkeypatch.setenv("LMCLIENT_CACHE__TTL", "90")
    cache = Settings(cache={"size_limit": 1000}).cache
    assert (cache.enabled, cache.ttl, cache.size_limit) == (True, 90, 1000)


def test_a_nested_setting_may_be_an_object() -> None:
    assert Settings(cache=CacheSettings(enabled=True)).cache.enabled


def test_budgets_are_exact(project: Path) -> None:
    (project / "lmclient.toml").write_text(
        "[[spend.budgets]]\nname = 'team'\namount = 0.1\nperiod = 'day'\ntags = { user = '*' }\n"
    )
    (budget,) = Settings().spend.budgets
    assert (budget.amount, budget.period, budget.tags, budget.currency) == (
        Decimal("0.1"),
        "day",
        {"user": "*"},
        "USD",
    )


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMCLIENT_PROXY", "")
    assert Settings().proxy is None


def test_dotenv_is_read_without_changing_the_environment(project: Path) -> None:
    (project / ".env").write_text("UNRELATED=1\nLMCLIENT_RETRY__ATTEMPTS=2\nOPENAI_KEY=x\n")
    before = dict(os.environ)
    assert Settings().retry.attempts == 2
    assert dict(os.environ) == before


def test_the_cache_and_the_ledger_follow_the_data_directory(project: Path) -> None:
    settings = Settings(data_dir=project / "elsewhere")
    assert settings.cache.dir == project / "elsewhere" / "cache"
    assert settings.spend.url == f"sqlite:///{project / 'elsewhere' / 'ledger.sqlite3'}"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().proxy = "http://p"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"profile_dir": "x"}, "'profile_dir' is not known; expected one of profiles_dir"),
        ({"retry": {"attempts": 0}}, "retry.attempts: expected a number of more than 0, found 0"),
        ({"cache": {"backend": "tape"}}, "cache.backend: expected one of 'disk' or 'redis'"),
        ({"cache": {"enabled": True, "backend": "redis"}}, "cache: expected a redis_url"),
        ({"spend": {"url": "mysql://h"}}, "spend.url: expected a URL that begins with sqlite://"),
        ({"spend": {"budgets": [{"name": "x"}]}}, "'spend.budgets.0.amount' is missing"),
        ({"proxy": "localhost"}, "proxy: expected a URL that begins with http://"),
        ({"interceptors": ["x"]}, "interceptors.0: expected an import path"),
        ({"categories": {"m": []}}, "categories.m: expected the name of a profile"),
        ({"categories": {"m": [5]}}, "categories.m: expected the name of a profile"),
    ],
)
def test_a_wrong_argument_is_one_readable_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings(**values)
    assert message in str(caught.value)
    assert str(caught.value).endswith("(in the arguments).")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("lmclient.toml", "bogus = 1", r"'bogus' is not known.*\(in lmclient\.toml\)"),
        ("lmclient.toml", "x", r"lmclient\.toml cannot be read"),
        ("pyproject.toml", "[tool.lmclient]\nretry.attempts = 'x'", r"\(in pyproject\.toml\)"),
        ("pyproject.toml", "[tool]\nlmclient = 5", r"lmclient: expected a table \(in pyproject\.toml\)"),
        (".env", "LMCLIENT_RETRY__ATTEMPTS=x", r"retry\.attempts: expected a whole number.*\(in \.env\)"),
        (".env", "LMCLIENT_RETRY=x", r"retry: expected JSON.*\(in \.env\)"),
    ],
)
def test_a_wrong_file_is_named(project: Path, file: str, content: str, message: str) -> None:
    (project / file).write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        Settings()


def test_a_wrong_variable_is_traced_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMCLIENT_CACHE__TTL", "soon")
    with pytest.raises(ConfigurationError, match=r"cache\.ttl: expected a number, .*\(in the environment\)"):
        Settings()


@pytest.mark.parametrize("show", [repr, str, lambda made: repr(vars(made))])
def test_no_password_is_shown(show: Any) -> None:
    settings = Settings(
        proxy=f"http://me:{PASSWORD}@proxy:3128",
        spend={"url": f"postgresql://me:{PASSWORD}@db/ledger"},
        cache={"redis_url": f"redis://:{PASSWORD}@cache:6379/0"},
        rate_limit={"storage_url": f"redis://{PASSWORD}@limits"},
    )
    assert PASSWORD not in show(settings)
    assert settings.proxy == f"http://me:{PASSWORD}@proxy:3128"


def test_an_error_shows_no_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings(spend={"url": f"mysql://me:{PASSWORD}@db"})
    assert PASSWORD not in repr(caught.value) + "".join(traceback.format_exception(caught.value))
