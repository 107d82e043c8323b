"""`lmclient chat` with one prompt, not on a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from lmclient.testing.fault import TEXT

BEGINNING = b"The quick brown"  # what arrives before the provider falls silent
USAGE = {"input_tokens": 25, "cached_input_tokens": 5, "output_tokens": 10}


def test_the_answer_is_printed_and_nothing_else(run, fault):
    fault("ok")
    done = run("chat", "-p", "ok", "Hi")
    assert (done.exit_code, done.stdout, done.stderr) == (0, TEXT + "\n", "")


def test_a_category_names_the_profile(run, fault, monkeypatch):
    fault("ok")
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "ok")
    assert run("chat", "Hi").stdout == TEXT + "\n"
    assert json.loads(run("chat", "-c", "m", "Hi", "--json").stdout)["category"] == "m"


def test_a_profile_is_meant_where_a_category_has_its_name(run, fault, write_profile, faults):
    fault("unauthorized")
    write_profile("s", faults.url("ok"), 'category = "m"')
    assert json.loads(run("chat", "-p", "s", "Hi", "--json").stdout)["profile"] == "s"


def test_json_is_one_object_for_programs(run, fault):
    fault("ok")
    answer = json.loads(run("chat", "-p", "ok", "Hi", "--json").stdout)
    assert {name: answer["usage"][name] for name in USAGE} == USAGE
    assert answer.pop("duration") >= answer.pop("time_to_first_token") > 0
    assert answer.pop("id").startswith("chatcmpl-ok-")
    del answer["usage"]
    assert answer == {
        "text": TEXT,
        "reasoning": "",
        "tool_calls": [],
        "finish_reason": "stop",
        "cost": "0.000045",
        "currency": "USD",
        "cost_source": "profile",
        "model": "mock",
        "profile": "ok",
        "category": None,
        "requests": 1,
    }


def test_json_holds_the_tool_calls(run, fault):
    fault("tool_call_stream")
    calls = json.loads(run("chat", "-p", "tool_call_stream", "Hi", "--json").stdout)["tool_calls"]
    assert [
        (call["name"], call["arguments"]["unit" if i == 0 else "zone"]) for i, call in enumerate(calls)
    ] == [
        ("get_weather", "celsius"),
        ("get_time", "Europe/Zurich"),
    ]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ((), {"stream": True}),
        (("--max-tokens", "7"), {"max_tokens": 7}),
        (("--temperature", "0"), {"temperature": 0.0}),
        (
            ("-s", "Be brief."),
            {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
        ),
    ],
)
def test_options_reach_the_provider(run, replayed, arguments, sent):
    provider = replayed(
        'data: {"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    assert run("chat", "-p", "replayed", "Hi", *arguments).stdout == "Yes\n"
    assert provider.requests["said"][-1]["body"].items() >= sent.items()


def test_no_stream_asks_for_one_piece(run, fault):
    fault("ok")
    answer = json.loads(run("chat", "-p", "ok", "Hi", "--json", "--no-stream").stdout)
    assert (answer["text"], answer["time_to_first_token"]) == (TEXT, None)


@pytest.mark.parametrize(
    ("arguments", "piped", "asked"),
    [
        ((), "Hi", "Hi"),
        (("Summarize",), "one\ntwo\n", "Summarize\n\none\ntwo\n"),
        (("Hi",), "", "Hi"),
        (("Hi",), " \n", "Hi"),
        ((), "\ufeffZürich", "Zürich"),
    ],
)
def test_text_piped_in_follows_the_prompt(run, replayed, arguments, piped, asked):
    provider = replayed(
        'data: {"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    run("chat", "-p", "replayed", *arguments, input=piped)
    assert provider.requests["said"][-1]["body"]["messages"] == [{"role": "user", "content": asked}]


def test_reasoning_is_left_out_of_a_pipe(run, replayed):
    replayed(
        'data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}\n\n'
        'data: {"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    assert run("chat", "-p", "replayed", "Hi").stdout == "Yes\n"
    assert json.loads(run("chat", "-p", "replayed", "Hi", "--json").stdout)["reasoning"] == "Hm."


@pytest.mark.parametrize(
    ("arguments", "piped", "problem"),
    [
        (("",), "", "the prompt is empty"),
        ((), "", "the prompt is empty"),
        (("Hi", "-p", "ok", "-c", "m"), "", "a category or a profile, not both"),
        (("Hi", "--max-tokens", "-1"), "", "greater than or equal to 0"),
        ((), b"\xff", "not UTF-8"),
    ],
)
def test_wrong_usage_is_explained(run, arguments, piped, problem):
    done = run("chat", *arguments, input=piped)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ("unauthorized", "401"),
        ("bad_request", "400"),
        ("not_found_model", "404"),
        ("bad_gateway_html", "502"),
        ("error_in_200", "unavailable|error|overloaded"),
    ],
)
def test_an_error_of_the_provider_is_one_line(run, fault, monkeypatch, scenario, problem):
    monkeypatch.setenv("LMCLIENT_RETRY__ATTEMPTS", "1")
    fault(scenario)
    done = run("chat", "-p", scenario, "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: ")
    assert any(one in done.stderr for one in problem.split("|"))


def test_an_answer_that_breaks_off_is_shown_before_the_error(run, fault):
    fault("truncated_stream")
    done = run("chat", "-p", "truncated_stream", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "The quick brown\n", 1)


def test_an_unknown_profile_is_one_line(run):
    done = run("chat", "-p", "nope", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "There is no profile 'nope'" in done.stderr


def test_debug_shows_the_traceback(run, fault):
    fault("unauthorized")
    for arguments in (("--debug", "chat"), ("chat", "--debug")):
        done = run(*arguments, "-p", "unauthorized", "Hi")
        assert done.exit_code == 1
        assert "Traceback (most recent call last)" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("Error: ")


def test_an_unexpected_error_is_one_line(run, fault, monkeypatch):
    fault("ok")
    monkeypatch.setattr("lmclient.cli.answer.print_json", lambda completion: 1 / 0)
    done = run("chat", "-p", "ok", "Hi", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "Error: ZeroDivisionError: division by zero (unexpected; --debug shows where)\n"


def test_ctrl_c_ends_the_process_and_the_request(fault, close_seen):
    fault("hang_mid_stream")
    command = [sys.executable, "-m", "lmclient", "chat", "-p", "hang_mid_stream", "Hi"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.read(len(BEGINNING)) == BEGINNING
        process.send_signal(signal.SIGINT)
        rest, problems = process.communicate(timeout=10)
    close_seen()
    assert (process.returncode, rest, problems) == (130, b"\n", b"")
    assert fault("hang_mid_stream")["aborted"] == 1


def test_a_reader_that_leaves_ends_the_request_quietly(fault, close_seen):
    fault("slow_stream")
    command = [sys.executable, "-m", "lmclient", "chat", "-p", "slow_stream", "Hi"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert os.read(process.stdout.fileno(), 3) == b"The"
        process.stdout.close()
        process.wait(timeout=10)
        assert process.stderr.read() == b""
    close_seen()
    assert fault("slow_stream")["aborted"] == 1


def test_an_interceptor_in_the_working_directory_is_found(home, run, fault):
    (home / "guarding.py").write_text(
        "import lmclient\n"
        "class Guard(lmclient.Hooks):\n"
        "    def before(self, request):\n"
        "        raise lmclient.BadRequestError('The guard refuses this.')\n"
    )
    (home / "lmclient.toml").write_text('interceptors = ["guarding:Guard"]\n')
    fault("ok")
    result = run("chat", "-p", "ok", "Hi")
    assert result.exit_code == 1
    assert "The guard refuses this." in result.stderr
