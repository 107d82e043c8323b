"""`lmclient chat` on a terminal."""

from __future__ import annotations

import json
from unittest.mock import Mock

from lmclient.cli.chat import typed_prompt
from lmclient.testing.fault import TEXT

DIM, NORMAL = "\x1b[2m", "\x1b[0m"


def said(reasoning: str, *texts: str) -> str:
    deltas = [{"reasoning_content": reasoning}, *({"content": text} for text in texts)]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return "".join(f"data: {json.dumps(event)}\n\n" for event in [*events, end]) + "data: [DONE]\n\n"


def test_the_conversation_is_kept_until_quit(terminal, replayed):
    provider = replayed(said("", "Four", "."))
    chat = terminal("chat", "-p", "replayed", "-s", "Be brief.")
    chat.expect("> ")
    chat.type("\r")
    chat.expect("> ")
    chat.type("2 + 2?\r")
    chat.expect("Four.")
    chat.expect("> ")
    chat.type("Why?\r")
    chat.expect("Four.")
    chat.expect("> ")
    chat.type("/quit\r")
    assert chat.status() == 0
    assert [message["content"] for message in provider.requests["said"][-1]["body"]["messages"]] == [
        "Be brief.",
        "2 + 2?",
        "Four.",
        "Why?",
    ]
    assert len(provider.requests["said"]) == 2


def test_tokens_seconds_and_cost_end_an_answer_and_ctrl_d_the_chat(terminal, fault):
    fault("ok")
    chat = terminal("chat", "-p", "ok")
    chat.expect("> ")
    chat.type("Hi\r")
    chat.expect(TEXT + "\r\n")
    chat.expect("25 tokens in, 10 out · 0.")
    chat.expect(" s · 0.000045 USD")
    chat.expect("> ")
    chat.type("\x04")
    assert chat.status() == 0


def test_ctrl_c_ends_the_answer_but_not_the_chat(terminal, fault, close_seen):
    fault("hang_mid_stream")
    chat = terminal("chat", "-p", "hang_mid_stream")
    chat.expect("> ")
    chat.type("Hi\r")
    chat.expect("The quick brown")
    chat.type("\x03")
    chat.expect("> ")
    close_seen()
    assert fault("hang_mid_stream")["aborted"] == 1
    chat.type("/quit\r")
    assert chat.status() == 0


def test_ctrl_c_and_an_empty_line_at_the_prompt_ask_again(monkeypatch):
    # Not on a terminal: a Ctrl-C between readline's prompt and its wait for keys shows only at the next key.
    monkeypatch.setattr("builtins.input", Mock(side_effect=[KeyboardInterrupt, " ", "Hi"]))
    assert typed_prompt() == "Hi"


def test_an_error_does_not_end_the_chat(terminal, fault):
    fault("unauthorized")
    chat = terminal("chat", "-p", "unauthorized")
    chat.expect("> ")
    chat.type("Hi\r")
    chat.expect("Error: Profile 'unauthorized': The provider answered 401")
    chat.expect("> ")
    chat.type("/quit\r")
    assert chat.status() == 0
    assert "Traceback" not in chat.output


def test_a_terminal_shows_reasoning_dimmed_and_no_escape_sequence_of_the_model(terminal, replayed):
    replayed(said("Hm\x1b[31m.", "Y\x1b[3", "1mes\x1b]0;title\x07", "!"))
    chat = terminal("chat", "-p", "replayed", "Hi")
    assert chat.status() == 0
    assert chat.output.startswith(f"{DIM}Hm.{NORMAL}\r\n\r\nYes!\r\n")


def test_colours_can_be_switched_off(terminal, replayed, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    replayed(said("Hm.", "Yes."))
    chat = terminal("chat", "-p", "replayed", "Hi")
    assert chat.status() == 0
    assert "\x1b" not in chat.output
