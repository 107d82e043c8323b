"""`lmclient profiles`."""

from __future__ import annotations

import json
import tomllib

import pytest

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def write(home):
    """`write(file, text)`: a profile file."""

    def to(file, text):
        (home / "profiles" / file).write_text(text)

    return to


@pytest.fixture
def rows(run):
    """`rows()`: the list of profiles by name, each a dict by column."""

    def listed():
        header, *lines = run("profiles", "list").stdout.splitlines()
        columns = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
        return {row["PROFILE"]: row for row in columns}

    return listed


def test_list_names_what_stands_behind_a_profile(rows, write_profile, home, monkeypatch):
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "mini")
    monkeypatch.setenv("LMCLIENT_CATEGORIES__FAST", "mini")
    write_profile("mini", f"{URL}?sig=abc123")
    assert rows()["mini"] == {
        "PROFILE": "mini",
        "PROVIDER": "openai-chat",
        "MODEL": "mock",
        "URL": f"{URL}?sig=***",
        "CATEGORIES": "m fast",
        "USABLE": "yes",
        "FILE": str(home / "profiles" / "mini.toml"),
    }


def test_list_says_why_a_profile_is_not_usable(rows, write):
    write("broken.toml", "provider =")
    write("wrong.toml", 'provider = "openai-chat"\ntemperature = 9')
    write("nobody.toml", 'provider = "openai-cat"')
    listed = rows()
    assert listed["gpt-5-mini"]["USABLE"] == "no: api_key: OPENAI_API_KEY is not set"
    assert listed["broken"]["USABLE"] == "no: cannot be read"
    assert listed["wrong"]["USABLE"].startswith("no: temperature: ")
    assert listed["nobody"]["USABLE"].startswith("no: provider: expected one of openai-chat, ")


def test_list_is_a_table_on_a_terminal(terminal, write_profile):
    write_profile("mini", URL)
    listing = terminal("profiles", "list")
    assert listing.status() == 0
    assert "PROFILE" in listing.output
    assert "\t" not in listing.output


def test_show_prints_every_key_as_toml(run, write_profile):
    write_profile(
        "mini", URL, 'headers = {x-team = "blue", x-api-key = "hush"}\nextra_body = {auth = {token = "hush"}}'
    )
    done = run("profiles", "show", "mini")
    values = tomllib.loads(done.stdout)
    assert (values["model"], values["api_key"], values["cost"]["input"]) == ("mock", "***", "1")
    assert values["headers"] == {"x-team": "blue", "x-api-key": "***"}
    assert values["extra_body"] == {"auth": "***"}
    assert "# temperature is not set\n" in done.stdout
    assert "hush" not in done.stdout


def test_show_takes_a_category(run, write_profile, monkeypatch):
    write_profile("mini", URL)
    monkeypatch.setenv("LMCLIENT_CATEGORIES__L", "mini")
    assert run("profiles", "show", "l").stdout.startswith("# mini, from ")


def test_show_and_explain_need_no_key(run):
    for command in ("show", "explain"):
        done = run("profiles", command, "gpt-5-mini")
        assert done.exit_code == 0
        assert "OPENAI_API_KEY is not set" in done.stdout


def test_explain_shows_the_request_and_its_price(run, write_profile):
    write_profile("mini", URL, "max_tokens = 1000\ntemperature = 0.2")
    lines = run("profiles", "explain", "mini", "Hi").stdout.splitlines()
    assert lines[2] == f"POST {URL}/chat/completions"
    assert "authorization: ***" in lines
    body = json.loads("\n".join(lines[lines.index("{") : lines.index("}") + 1]))
    assert body == {
        "model": "mock",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1000,
        "temperature": 0.2,
    }
    assert lines[-3:] == [
        "Input: 8 tokens (tiktoken o200k_base)",
        "Output: at most 1000 tokens",
        "Price: 0.000008 USD for the input, at most 0.002 USD for the output",
    ]


def test_explain_prices_an_output_that_is_all_reasoning(run, write):
    head = f'provider = "openai-chat"\nmodel = "m"\nurl = "{URL}"\nmax_tokens = 1000\n'
    write("thinking.toml", f'{head}[cost]\ninput = "1"\noutput = "8"\nreasoning = "80"')
    assert run("profiles", "explain", "thinking").stdout.endswith("at most 0.08 USD for the output\n")


def test_explain_sends_nothing(run, fault):
    fault("ok")
    assert run("profiles", "explain", "ok", "Hi").exit_code == 0
    assert fault("ok") is None


def test_explain_says_where_a_count_or_a_price_is_not_known(run, write):
    write("served.toml", f'provider = "openai-chat"\nmodel = "m"\nurl = "{URL}"\ntokenizer = "llama-server"')
    lines = run("profiles", "explain", "served").stdout.splitlines()
    assert lines[-3:] == [
        "Input: 8 tokens (about; counted with tiktoken o200k_base, only the server knows exactly)",
        "Output: as many tokens as the server allows",
        "Price: unknown; the profile states none",
    ]


def test_explain_hides_secrets_that_the_profile_puts_elsewhere(run, write):
    write(
        "odd.toml",
        f'provider = "openai-chat"\nmodel = "m"\nurl = "{URL}"\nextra_query = {{sig = "hush/1"}}\n'
        'headers = {x-team-secret = "hush2"}\nextra_body = {user = {api_key = "hush3"}}',
    )
    done = run("profiles", "explain", "odd")
    assert done.exit_code == 0
    assert "hush" not in done.stdout


def test_check_prints_every_problem_and_fails(run, write, home):
    write("wrong.toml", 'provider = "openai-cat"\ntemperature = 9\n[cost]\ninput = -1')
    write("keyless.toml", 'provider = "openai-chat"\napi_key = "${NO_SUCH_VARIABLE}"')
    write("counting.toml", 'provider = "openai-chat"\ntoken_encoding = "o200k"')
    done = run("profiles", "check")
    mine = [line for line in done.stdout.splitlines() if line.startswith(str(home))]
    assert done.exit_code == 1
    for key in (
        "provider: ",
        "temperature: ",
        "cost.input: ",
        "api_key: NO_SUCH_VARIABLE",
        "token_encoding: ",
    ):
        assert sum(key in line for line in mine) == 1
    assert len(mine) == 5


def test_check_is_content_where_nothing_is_wrong(run, monkeypatch, tmp_path, write_profile, write):
    write_profile("local", URL)
    write("served.toml", f'provider = "openai-text"\nurl = "{URL}"\nprompt_format = "auto"')
    monkeypatch.setattr("lmclient.profiles.directory.shipped_directory", lambda: tmp_path / "none")
    done = run("profiles", "check")
    assert (done.exit_code, done.stdout) == (0, "All profiles are fine.\n")


@pytest.mark.parametrize("command", ["show", "explain"])
def test_an_unknown_profile_is_one_line(run, command):
    done = run("profiles", command, "nope")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "There is no category or profile 'nope'" in done.stderr
