"""What the rules say about conversations that the official cases do not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmclient import prompts
from lmclient.core.conversation import Conversation, ImagePart, TextPart, Turn
from lmclient.core.tools import ToolCall
from lmclient.errors import BadRequestError

SPECS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "cases").glob("*.json"))
}
ALTERNATING = ["command-r", "gemma", "mistral", "mistral-small"]
SYSTEM_FIRST = [*ALTERNATING, "alpaca", "qwen3.5", "vicuna"]


def rule(name: str) -> list[str]:
    """The formats whose rules have `name`."""
    return [format for format, spec in SPECS.items() if name in spec["rules"]]


def conversation(*said: tuple[str, str]) -> Conversation:
    return Conversation([Turn(role, text) for role, text in said])


@pytest.mark.parametrize("name", rule("trimmed"))
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_whitespace_around_a_text_is_trimmed_only_for_the_roles_named(name: str, role: str) -> None:
    talk = [("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V")]
    padded = [(r, f" \n{t}\t " if r == role and t != "V" else t) for r, t in talk]
    prompt = prompts.get(name).render(conversation(*padded))
    kept = f" \n{role[0].upper()}\t " in prompt
    assert kept == (role not in SPECS[name]["rules"]["trimmed"])


@pytest.mark.parametrize("name", rule("empty_system"))
def test_empty_system_turn_does_what_the_rules_say(name: str) -> None:
    format = prompts.get(name)
    empty = format.render(conversation(("system", ""), ("user", "Hello")))
    without = format.render(conversation(("user", "Hello")))
    assert (empty == without) == (SPECS[name]["rules"]["empty_system"] == "as without a system message")


def test_empty_system_turn_keeps_its_separator_where_it_is_joined_to_a_user_turn() -> None:
    talk = conversation(("system", ""), ("user", "Hi"))
    assert prompts.get("gemma").render(talk).startswith("<bos><start_of_turn>user\n\n\nHi<end_of_turn>")
    assert prompts.get("mistral").render(talk) == "<s>[INST]\n\nHi[/INST]"
    assert prompts.get("mistral-small").render(talk) == "<s>[SYSTEM_PROMPT][/SYSTEM_PROMPT][INST]Hi[/INST]"


def test_empty_system_turn_switches_a_default_off() -> None:
    talk = conversation(("system", ""), ("user", "Hi"))
    assert prompts.get("qwen2.5").render(talk).startswith("<|im_start|>system\n<|im_end|>\n")


@pytest.mark.parametrize("name", [name for name in SPECS if name not in ALTERNATING])
def test_neighbouring_user_turns_stand_side_by_side(name: str) -> None:
    prompt = prompts.get(name).render(conversation(("user", "first"), ("user", "second")))
    assert prompt.index("first") < prompt.index("second")


@pytest.mark.parametrize("name", ALTERNATING)
@pytest.mark.parametrize(
    "said",
    [
        [("user", "a"), ("user", "b")],
        [("assistant", "a"), ("user", "b")],
        [("system", "s"), ("user", "a"), ("assistant", "b"), ("assistant", "c")],
        [("system", "s")],
    ],
)
def test_roles_that_do_not_alternate_are_refused(name: str, said: list[tuple[str, str]]) -> None:
    with pytest.raises(BadRequestError, match=f"prompt format '{name}'|Prompt format '{name}'"):
        prompts.get(name).render(conversation(*said))


@pytest.mark.parametrize("name", SYSTEM_FIRST)
def test_system_turn_in_the_middle_is_refused_by_its_position(name: str) -> None:
    talk = conversation(("user", "a"), ("system", "s"), ("user", "b"))
    with pytest.raises(BadRequestError, match=r"Turn 1 \(system\)"):
        prompts.get(name).render(talk)


@pytest.mark.parametrize("name", [name for name in SPECS if name not in SYSTEM_FIRST])
def test_system_turn_in_the_middle_is_kept(name: str) -> None:
    prompt = prompts.get(name).render(conversation(("user", "a"), ("system", "Rule."), ("user", "b")))
    assert "Rule." in prompt


@pytest.mark.parametrize("name", list(SPECS))
def test_tool_turns_and_images_are_refused(name: str) -> None:
    call = Turn("assistant", "", tool_calls=(ToolCall("1", "f", {}),))
    image = Turn("user", [TextPart("See"), ImagePart(url="https://example.org/a.png")])
    for turn in (call, Turn("tool", "42", tool_call_id="1"), image):
        with pytest.raises(BadRequestError, match="Turn 1"):
            prompts.get(name).render(Conversation([Turn("user", "a"), turn]))


@pytest.mark.parametrize("name", list(SPECS))
def test_text_parts_are_joined(name: str) -> None:
    parts = Conversation([Turn("user", [TextPart("Hel"), TextPart("lo")])])
    assert prompts.get(name).render(parts) == prompts.get(name).render("Hello")


@pytest.mark.parametrize("name", list(SPECS))
def test_bos_is_written_once(name: str) -> None:
    format = prompts.get(name)
    prompt = format.render(conversation(("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")))
    if format.bos:
        assert prompt.startswith(format.bos)
        assert prompt.count(format.bos) == 1


def test_qwen3_keeps_the_reasoning_of_an_answer_after_the_last_question() -> None:
    talk = Conversation([Turn("user", "2 + 2?"), Turn("assistant", "4", reasoning="A sum.")])
    expected = "<|im_start|>assistant\n<think>\nA sum.\n</think>\n\n4<|im_end|>\n"
    assert expected in prompts.get("qwen3").render(talk)
    assert expected in prompts.get("qwen3.5").render(talk)


def test_qwen35_refuses_a_conversation_without_a_question() -> None:
    with pytest.raises(BadRequestError, match="needs a user turn"):
        prompts.get("qwen3.5").render(conversation(("system", "s")))


def test_raw_reasoning_of_past_answers_goes_as_each_template_takes_it() -> None:
    inline = "<think>\nA\n</think>\n\nB </think>\nC"
    talk = conversation(("user", "q"), ("assistant", inline), ("user", "r"))
    assert "assistant\nC<|im_end|>" in prompts.get("qwen3").render(talk)
    assert "<｜Assistant｜>\nC<｜end" in prompts.get("deepseek-r1").render(talk)
    assert "</think>\n\nB </think>\nC<｜end" in prompts.get("deepseek-v3.1").render(talk)


def test_gemma4_takes_every_thought_channel_out() -> None:
    talk = conversation(
        ("user", "q"),
        ("assistant", "A<|channel>thought\nx<channel|> B <|channel>thought\ny<channel|>C "),
        ("user", "r"),
    )
    assert "<|turn>model\nA B C<turn|>" in prompts.get("gemma4").render(talk)


def test_mistral_puts_the_system_text_into_the_last_user_turn_also_before_an_answer() -> None:
    talk = conversation(("system", "S"), ("user", "a"), ("assistant", "b"))
    assert prompts.get("mistral").render(talk) == "<s>[INST]S\n\na[/INST]b</s>"


@pytest.mark.parametrize("name", list(SPECS))
def test_thinking_can_be_asked_of_every_format(name: str) -> None:
    prompt = prompts.get(name).render("Hi", thinking=True)
    assert "Hi" in prompt


@pytest.mark.parametrize("name", list(SPECS))
def test_empty_conversation_is_refused(name: str) -> None:
    with pytest.raises(BadRequestError, match="empty"):
        prompts.get(name).render(Conversation())


@pytest.mark.parametrize("name", list(SPECS))
def test_texts_reach_the_prompt_unchanged(name: str) -> None:
    text = "Grüße 🙂\u2028 {{ 7 * 7 }} {% raw %} <b>&amp;</b> 你好 \\n %s {0}"
    assert text in prompts.get(name).render(text)
