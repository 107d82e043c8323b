"""The prompt formats that lmclient knows, as declared facts.

Stop strings, control tokens and markers are those of the models' tokenizers and templates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lmclient.prompts import writers
from lmclient.prompts.format import Options, PromptFormat, Said
from lmclient.prompts.harmony import HarmonyParser

THINK = ("<think>", "</think>")


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """Writes each turn as `opening.format(role)`, text and `closing`; `end` opens the answer.

    `trimmed` are the roles whose texts lose the whitespace around them, `roles` other names of
    roles. `default_system` stands in where a conversation has no system turn at the beginning.
    """

    opening: str
    closing: str
    end: str
    start: str = ""
    trimmed: frozenset[str] = frozenset()
    roles: dict[str, str] = field(default_factory=dict)
    default_system: str = ""
    drops_empty_system: bool = False

    def __call__(self, said: list[Said], options: Options) -> str:
        """The prompt."""
        before, between = self.opening.split("{}")
        parts = [self.start]
        if self.default_system and said[0].role != "system":
            parts.append(f"{before}system{between}{self.default_system}{self.closing}")
        for role, text, _ in said:
            if role == "system" and self.drops_empty_system and not text:
                continue
            shown = text.strip() if role in self.trimmed else text
            parts.append(f"{before}{self.roles.get(role, role)}{between}{shown}{self.closing}")
        parts.append(self.end)
        return "".join(parts)


_ALL_ROLES = frozenset({"system", "user", "assistant"})
_CHATML_TOKENS = ("<|im_start|>", "<|im_end|>")
_QWEN_TOKENS = (*_CHATML_TOKENS, "<|endoftext|>")
_QWEN_STOP = ("<|im_end|>", "<|endoftext|>")
_LLAMA3_TOKENS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
)
_DEEPSEEK_TOKENS = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    *(
        f"<｜tool▁{kind}▁{edge}｜>"
        for kind in ("calls", "call", "outputs", "output")
        for edge in ("begin", "end")
    ),
    "<｜tool▁sep｜>",
)
_MISTRAL_BLOCKS = ("INST", "AVAILABLE_TOOLS", "TOOL_RESULTS")
_MISTRAL_SMALL_BLOCKS = (*_MISTRAL_BLOCKS, "SYSTEM_PROMPT", "THINK")
_MISTRAL_SMALL_MARKS = (
    "[TOOL_CALLS]",
    "[TOOL_CONTENT]",
    "[CALL_ID]",
    "[ARGS]",
    "[IMG]",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
)


def _blocks(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(token for name in names for token in (f"[{name}]", f"[/{name}]"))


_GPT_OSS_STOP = ("<|return|>", "<|call|>")

FORMATS = (
    PromptFormat(
        name="llama3",
        write=Tagged(
            opening="<|start_header_id|>{}<|end_header_id|>\n\n",
            closing="<|eot_id|>",
            end="<|start_header_id|>assistant<|end_header_id|>\n\n",
            start="<|begin_of_text|>",
            trimmed=_ALL_ROLES,
        ),
        bos="<|begin_of_text|>",
        stop=("<|eot_id|>", "<|end_of_text|>"),
        special_tokens=_LLAMA3_TOKENS,
    ),
    PromptFormat(
        name="llama3.1",
        write=writers.llama31,
        bos="<|begin_of_text|>",
        stop=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
        special_tokens=(*_LLAMA3_TOKENS, "<|eom_id|>", "<|python_tag|>", "<|finetune_right_pad_id|>"),
    ),
    PromptFormat(
        name="llama4",
        write=writers.llama4,
        bos="<|begin_of_text|>",
        stop=("<|eot|>", "<|eom|>", "<|end_of_text|>"),
        special_tokens=(
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|header_start|>",
            "<|header_end|>",
            "<|eot|>",
            "<|eom|>",
            "<|python_start|>",
            "<|python_end|>",
            "<|image_start|>",
            "<|image_end|>",
            "<|image|>",
            "<|patch|>",
            "<|tile_x_separator|>",
            "<|tile_y_separator|>",
        ),
    ),
    PromptFormat(
        name="gpt-oss",
        write=writers.gpt_oss,
        stop=_GPT_OSS_STOP,
        special_tokens=(
            "<|startoftext|>",
            "<|endoftext|>",
            "<|start|>",
            "<|end|>",
            "<|message|>",
            "<|channel|>",
            "<|constrain|>",
            "<|return|>",
            "<|call|>",
        ),
        reasoning_markers=("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
        answer_parser=lambda prompt_end: HarmonyParser(_GPT_OSS_STOP, prompt_end=prompt_end),
    ),
    PromptFormat(
        name="chatml",
        write=Tagged(opening="<|im_start|>{}\n", closing="<|im_end|>\n", end="<|im_start|>assistant\n"),
        stop=("<|im_end|>",),
        special_tokens=_CHATML_TOKENS,
    ),
    PromptFormat(
        name="qwen2.5",
        write=Tagged(
            opening="<|im_start|>{}\n",
            closing="<|im_end|>\n",
            end="<|im_start|>assistant\n",
            default_system="You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
        ),
        stop=_QWEN_STOP,
        special_tokens=_QWEN_TOKENS,
    ),
    PromptFormat(
        name="qwen3",
        write=writers.qwen3,
        history=writers.qwen3_history,
        stop=_QWEN_STOP,
        special_tokens=_QWEN_TOKENS,
        reasoning_markers=THINK,
    ),
    PromptFormat(
        name="qwen3.5",
        write=writers.qwen35,
        history=writers.qwen35_history,
        stop=_QWEN_STOP,
        special_tokens=_QWEN_TOKENS,
        reasoning_markers=THINK,
        opens_reasoning=True,
        system_first_only=True,
    ),
    PromptFormat(
        name="gemma",
        write=writers.gemma,
        bos="<bos>",
        stop=("<end_of_turn>", "<eos>"),
        special_tokens=("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        alternating=True,
    ),
    PromptFormat(
        name="gemma4",
        write=writers.gemma4,
        history=writers.gemma4_history,
        bos="<bos>",
        stop=("<turn|>", "<eos>"),
        special_tokens=(
            "<bos>",
            "<eos>",
            "<|turn>",
            "<turn|>",
            "<|channel>",
            "<channel|>",
            "<|think|>",
            "<|tool>",
            "<tool|>",
            "<|tool_call>",
            "<tool_call|>",
            "<|tool_response>",
            "<tool_response|>",
            "<|image|>",
            "<|audio|>",
            "<|video|>",
            '<|"|>',
        ),
        reasoning_markers=("<|channel>thought", "<channel|>"),
    ),
    PromptFormat(
        name="mistral",
        write=writers.mistral,
        bos="<s>",
        stop=("</s>",),
        special_tokens=("<s>", "</s>", *_blocks(_MISTRAL_BLOCKS), "[TOOL_CALLS]"),
        alternating=True,
    ),
    PromptFormat(
        name="mistral-small",
        write=writers.mistral_small,
        bos="<s>",
        stop=("</s>",),
        special_tokens=("<s>", "</s>", *_blocks(_MISTRAL_SMALL_BLOCKS), *_MISTRAL_SMALL_MARKS),
        reasoning_markers=("[THINK]", "[/THINK]"),
        alternating=True,
    ),
    PromptFormat(
        name="phi3",
        write=Tagged(opening="<|{}|>\n", closing="<|end|>\n", end="<|assistant|>\n", drops_empty_system=True),
        stop=("<|end|>", "<|endoftext|>"),
        special_tokens=("<s>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
    ),
    PromptFormat(
        name="phi4",
        write=Tagged(
            opening="<|im_start|>{}<|im_sep|>",
            closing="<|im_end|>",
            end="<|im_start|>assistant<|im_sep|>",
        ),
        stop=("<|im_end|>", "<|endoftext|>"),
        special_tokens=("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_sep|>"),
    ),
    PromptFormat(
        name="deepseek-r1",
        write=writers.deepseek_r1,
        history=writers.deepseek_r1_history,
        bos="<｜begin▁of▁sentence｜>",
        stop=("<｜end▁of▁sentence｜>",),
        special_tokens=_DEEPSEEK_TOKENS,
        reasoning_markers=THINK,
        opens_reasoning=True,
    ),
    PromptFormat(
        name="deepseek-v3.1",
        write=writers.deepseek_v31,
        history=writers.deepseek_v31_history,
        bos="<｜begin▁of▁sentence｜>",
        stop=("<｜end▁of▁sentence｜>",),
        special_tokens=_DEEPSEEK_TOKENS,
        reasoning_markers=THINK,
    ),
    PromptFormat(
        name="granite",
        write=Tagged(
            opening="<|start_of_role|>{}<|end_of_role|>",
            closing="<|end_of_text|>\n",
            end="<|start_of_role|>assistant<|end_of_role|>",
            drops_empty_system=True,
        ),
        stop=("<|end_of_text|>",),
        special_tokens=("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"),
    ),
    PromptFormat(
        name="command-r",
        write=Tagged(
            opening="<|START_OF_TURN_TOKEN|><|{}_TOKEN|>",
            closing="<|END_OF_TURN_TOKEN|>",
            end="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
            start="<BOS_TOKEN>",
            trimmed=frozenset({"user", "assistant"}),
            roles={"system": "SYSTEM", "user": "USER", "assistant": "CHATBOT"},
        ),
        bos="<BOS_TOKEN>",
        stop=("<|END_OF_TURN_TOKEN|>",),
        special_tokens=(
            "<BOS_TOKEN>",
            "<EOS_TOKEN>",
            "<|START_OF_TURN_TOKEN|>",
            "<|END_OF_TURN_TOKEN|>",
            "<|SYSTEM_TOKEN|>",
            "<|USER_TOKEN|>",
            "<|CHATBOT_TOKEN|>",
        ),
        alternating=True,
    ),
    PromptFormat(
        name="zephyr",
        write=Tagged(opening="<|{}|>\n", closing="</s>\n", end="<|assistant|>\n"),
        stop=("</s>",),
        special_tokens=("<s>", "</s>"),
        turn_markers=("<|system|>", "<|user|>", "<|assistant|>"),
    ),
    PromptFormat(
        name="vicuna",
        write=writers.vicuna,
        stop=("</s>", "USER:"),
        special_tokens=("<s>", "</s>"),
        turn_markers=("USER:", "ASSISTANT:"),
        system_first_only=True,
    ),
    PromptFormat(
        name="alpaca",
        write=writers.alpaca,
        stop=("</s>", "### Instruction:"),
        special_tokens=("<s>", "</s>"),
        turn_markers=("### Instruction:", "### Response:"),
        system_first_only=True,
    ),
    PromptFormat(name="no", write=writers.plain),
)
