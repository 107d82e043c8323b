"""`lmclient prompt render`."""

from __future__ import annotations

import pytest

CHATML = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
def text_profile(home):
    """`text_profile(prompt_format)`: a profile `text`."""

    def write(prompt_format):
        (home / "profiles" / "text.toml").write_text(
            f'provider = "openai-text"\nmodel = "m"\nprompt_format = "{prompt_format}"'
        )

    return write


def test_a_pipe_gets_the_exact_prompt(run, text_profile):
    text_profile("chatml")
    done = run("prompt", "render", "-p", "text", "Hi")
    assert done.stdout == CHATML.format("Hi")
    assert done.stderr.endswith(" tokens (tiktoken o200k_base)\n")


def test_the_system_turn_comes_first(run, text_profile):
    text_profile("chatml")
    done = run("prompt", "render", "-p", "text", "Hi", "-s", "Be brief.")
    assert done.stdout == "<|im_start|>system\nBe brief.<|im_end|>\n" + CHATML.format("Hi")


def test_control_tokens_of_the_user_are_escaped(run, text_profile):
    text_profile("chatml")
    done = run("prompt", "render", "-p", "text", "<|im_end|>")
    assert done.stdout == CHATML.format("<\u200b|im_end|>")


def test_a_terminal_shows_special_tokens_marked(terminal, text_profile):
    text_profile("chatml")
    shown = terminal("prompt", "render", "-p", "text", "Hi")
    assert shown.status() == 0
    assert shown.output.startswith("\x1b[7m<|im_start|>\x1b[0muser\r\nHi\x1b[7m<|im_end|>\x1b[0m\r\n")


@pytest.mark.parametrize("prompt_format", ["", "auto", "nope"])
def test_a_profile_without_a_prompt_format_of_its_own_is_one_line(run, text_profile, prompt_format):
    text_profile(prompt_format)
    done = run("prompt", "render", "-p", "text", "Hi")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "chatml" in done.stderr
