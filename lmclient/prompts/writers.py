"""The prompts of formats whose templates do more than put tags around each turn.

Each writer follows the chat template that the model's maker publishes, byte for byte, for
conversations without tools.
"""

from __future__ import annotations

from lmclient.errors import BadRequestError
from lmclient.prompts.format import Options, Said


def llama31(said: list[Said], options: Options) -> str:
    """Llama 3.1 and 3.3: a system turn always stands first and begins with two dates."""
    system, rest = _system(said)
    day = options.date_string or "26 Jul 2024"
    parts = [
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        f"Cutting Knowledge Date: December 2023\nToday Date: {day}\n\n{(system or '').strip()}<|eot_id|>"
    ]
    parts += [
        f"<|start_header_id|>{turn.role}<|end_header_id|>\n\n{turn.text.strip()}<|eot_id|>" for turn in rest
    ]
    parts.append("<|start_header_id|>assistant<|end_header_id|>\n\n")
    return "".join(parts)


def llama4(said: list[Said], options: Options) -> str:
    """Llama 4: of all turns only the system turn at the beginning is trimmed."""
    parts = ["<|begin_of_text|>"]
    for number, turn in enumerate(said):
        text = turn.text.strip() if number == 0 and turn.role == "system" else turn.text
        parts.append(f"<|header_start|>{turn.role}<|header_end|>\n\n{text}<|eot|>")
    parts.append("<|header_start|>assistant<|header_end|>\n\n")
    return "".join(parts)


def gpt_oss(said: list[Said], options: Options) -> str:
    """gpt-oss, in harmony format: the caller's system text is a developer message."""
    parts = [
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        f"Knowledge cutoff: 2024-06\nCurrent date: {options.today.isoformat()}\n\n"
        f"Reasoning: {options.reasoning_effort or 'medium'}\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
    ]
    for turn in said:
        if turn.role == "assistant":
            parts.append(f"<|start|>assistant<|channel|>final<|message|>{turn.text}<|end|>")
        elif turn.role == "user":
            parts.append(f"<|start|>user<|message|>{turn.text}<|end|>")
        elif turn.text:
            parts.append(f"<|start|>developer<|message|># Instructions\n\n{turn.text}<|end|>")
    parts.append("<|start|>assistant")
    return "".join(parts)


def qwen3_history(text: str, reasoning: str) -> tuple[str, str]:
    """Raw reasoning before the last `</think>` is taken out, unless it was given apart."""
    if reasoning or "</think>" not in text:
        return text, reasoning
    pieces = text.split("</think>")
    inline = pieces[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
    return pieces[-1].lstrip("\n"), inline


def qwen3(said: list[Said], options: Options) -> str:
    """Qwen 3: reasoning is kept only in answers that follow the last question."""
    last_question = _last_question(said, len(said) - 1)
    parts = []
    for number, turn in enumerate(said):
        text = turn.text
        after = turn.role == "assistant" and number > last_question
        if after and (turn.reasoning or number == len(said) - 1):
            reasoning = turn.reasoning.strip("\n")
            text = f"<think>\n{reasoning}\n</think>\n\n" + text.lstrip("\n")
        parts.append(f"<|im_start|>{turn.role}\n{text}<|im_end|>\n")
    parts.append("<|im_start|>assistant\n")
    if options.thinking is False:
        parts.append("<think>\n\n</think>\n\n")
    return "".join(parts)


def qwen35_history(text: str, reasoning: str) -> tuple[str, str]:
    """As Qwen 3, of the trimmed text."""
    return qwen3_history(text.strip(), reasoning)


def qwen35(said: list[Said], options: Options) -> str:
    """Qwen 3.5: every text is trimmed, and the prompt opens the reasoning."""
    last_question = _last_question(said, -1)
    if last_question < 0:
        raise BadRequestError("Prompt format 'qwen3.5' needs a user turn; add one.")
    parts = []
    for number, turn in enumerate(said):
        # What `qwen35_history` leaves of an answer stays as it is.
        text = turn.text if turn.role == "assistant" else turn.text.strip()
        if turn.role == "assistant" and number > last_question:
            text = f"<think>\n{turn.reasoning.strip()}\n</think>\n\n{text}"
        parts.append(f"<|im_start|>{turn.role}\n{text}<|im_end|>\n")
    closed = options.thinking is False
    parts.append("<|im_start|>assistant\n" + ("<think>\n\n</think>\n\n" if closed else "<think>\n"))
    return "".join(parts)


def _last_question(said: list[Said], default: int) -> int:
    """The position of the last user turn that is not, by its text, the result of a tool."""
    for number in range(len(said) - 1, -1, -1):
        text = said[number].text
        is_result = text.startswith("<tool_response>") and text.endswith("</tool_response>")
        if said[number].role == "user" and not is_result:
            return number
    return default


def gemma(said: list[Said], options: Options) -> str:
    """Gemma 2 and 3: the system text stands at the start of the first user turn."""
    system, rest = _system(said)
    prefix = "" if system is None else system + "\n\n"
    parts = ["<bos>"]
    for turn in rest:
        role = "model" if turn.role == "assistant" else turn.role
        parts.append(f"<start_of_turn>{role}\n{prefix}{turn.text.strip()}<end_of_turn>\n")
        prefix = ""
    parts.append("<start_of_turn>model\n")
    return "".join(parts)


def gemma4_history(text: str, reasoning: str) -> tuple[str, str]:
    """Raw thought channels are taken out, from `<|channel>` to the next `<channel|>`."""
    visible = [part.split("<|channel>")[0] for part in text.split("<channel|>")]
    return "".join(visible).strip(), ""


def gemma4(said: list[Said], options: Options) -> str:
    """Gemma 4: with thinking on, `<|think|>` stands at the top of the system turn."""
    system, rest = _system(said)
    parts = ["<bos>"]
    if system is not None or options.thinking:
        think = "<|think|>\n" if options.thinking else ""
        parts.append(f"<|turn>system\n{think}{(system or '').strip()}<turn|>\n")
    for turn in rest:
        role = "model" if turn.role == "assistant" else turn.role
        parts.append(f"<|turn>{role}\n{turn.text.strip()}<turn|>\n")
    parts.append("<|turn>model\n" if options.thinking else "<|turn>model\n<|channel>thought\n<channel|>")
    return "".join(parts)


def mistral(said: list[Said], options: Options) -> str:
    """Mistral v3-tekken: the system text stands at the start of the last user turn."""
    system, rest = _system(said)
    last_user = max(number for number, turn in enumerate(rest) if turn.role == "user")
    parts = ["<s>"]
    for number, turn in enumerate(rest):
        if turn.role == "assistant":
            parts.append(turn.text + "</s>")
        else:
            prefix = system + "\n\n" if system is not None and number == last_user else ""
            parts.append(f"[INST]{prefix}{turn.text}[/INST]")
    return "".join(parts)


def mistral_small(said: list[Said], options: Options) -> str:
    """Mistral v7-tekken: the system text has a block of its own."""
    system, rest = _system(said)
    parts = ["<s>" if system is None else f"<s>[SYSTEM_PROMPT]{system}[/SYSTEM_PROMPT]"]
    for turn in rest:
        parts.append(turn.text + "</s>" if turn.role == "assistant" else f"[INST]{turn.text}[/INST]")
    return "".join(parts)


def deepseek_r1_history(text: str, reasoning: str) -> tuple[str, str]:
    """All up to the last `</think>` is taken out; what follows stays, newlines included."""
    return text.split("</think>")[-1], ""


def deepseek_r1(said: list[Said], options: Options) -> str:
    """DeepSeek R1: the system text stands bare behind BOS; only answers are closed."""
    parts = [_deepseek_head(said)]
    for turn in said:
        if turn.role == "user":
            parts.append("<｜User｜>" + turn.text)
        elif turn.role == "assistant":
            parts.append(f"<｜Assistant｜>{turn.text}<｜end▁of▁sentence｜>")
    parts.append("<｜Assistant｜><think>\n")
    return "".join(parts)


def deepseek_v31_history(text: str, reasoning: str) -> tuple[str, str]:
    """All up to the first `</think>` is taken out."""
    return text.split("</think>", 1)[-1], ""


def deepseek_v31(said: list[Said], options: Options) -> str:
    """DeepSeek V3.1: past answers begin with `</think>`, and so does the new one unless it thinks."""
    parts = [_deepseek_head(said)]
    after_user = False
    for turn in said:
        if turn.role == "user":
            parts.append("<｜User｜>" + turn.text)
            after_user = True
        elif turn.role == "assistant":
            parts.append("<｜Assistant｜></think>" if after_user else "")
            parts.append(turn.text + "<｜end▁of▁sentence｜>")
            after_user = False
    if after_user:
        parts.append("<｜Assistant｜><think>" if options.thinking else "<｜Assistant｜></think>")
    return "".join(parts)


def _deepseek_head(said: list[Said]) -> str:
    return "<｜begin▁of▁sentence｜>" + "\n\n".join(turn.text for turn in said if turn.role == "system")


def vicuna(said: list[Said], options: Options) -> str:
    """Vicuna 1.1: one space between turns, `</s>` behind each answer."""
    system, rest = _system(said)
    if system is None:
        system = (
            "A chat between a curious user and an artificial intelligence assistant. "
            "The assistant gives helpful, detailed, and polite answers to the user's questions."
        )
    parts = [system + " "]
    for turn in rest:
        parts.append(f"ASSISTANT: {turn.text}</s>" if turn.role == "assistant" else f"USER: {turn.text} ")
    parts.append("ASSISTANT:")
    return "".join(parts)


def alpaca(said: list[Said], options: Options) -> str:
    """Alpaca, repeated for several turns; a system text replaces the preamble."""
    system, rest = _system(said)
    if system is None:
        system = (
            "Below is an instruction that describes a task. "
            "Write a response that appropriately completes the request."
        )
    parts = [system] if system else []
    for turn in rest:
        parts.append(f"### {'Response' if turn.role == 'assistant' else 'Instruction'}:\n{turn.text}")
    parts.append("### Response:\n")
    return "\n\n".join(parts)


def plain(said: list[Said], options: Options) -> str:
    """The texts, one newline between them."""
    return "\n".join(turn.text for turn in said)


def _system(said: list[Said]) -> tuple[str | None, list[Said]]:
    """The system text at the beginning, None where there is none, and the other turns."""
    if said[0].role == "system":
        return said[0].text, said[1:]
    return None, said
