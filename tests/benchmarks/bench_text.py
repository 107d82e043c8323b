"""What text completion adds: rendering prompts, splitting reasoning, and the check of the context.

    python tests/benchmarks/bench_text.py

Exits with 1 if a limit is not kept.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from measuring import compare, mock_server, report

import lmclient
from lmclient import Conversation, ModelProfile, Role, Turn, prompts
from lmclient.core.request import CompletionRequest
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.openai_text import OpenAIText, ServedFormat
from lmclient.providers.fitting import at_most

CALLS = 64
CHUNKS = 2000
ROUNDS = 15
SENTENCE = "The quick brown fox jumps over the lazy dog, and the dog lets it. "
FIFTY = Conversation(
    [Turn(Role.SYSTEM, "Be brief.")]
    + [Turn(Role.USER if number % 2 == 0 else Role.ASSISTANT, SENTENCE * 4) for number in range(49)]
)


def cpu_of(work: Callable[[], object], repeats: int) -> float:
    """The least CPU seconds of one of several rounds of `repeats`, for one."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(repeats):
            work()
        best = min(best, time.thread_time() - start)
    return best / repeats


def rendering() -> bool:
    """A conversation of 50 turns in every format: less than a millisecond."""
    formats = {name: prompts.get(name) for name in prompts.names()}
    formats["a chat template"] = prompts.from_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    times = {name: cpu_of(lambda format=format: format.render(FIFTY), 5) for name, format in formats.items()}
    slowest = max(times, key=lambda name: times[name])
    kept = times[slowest] < 1e-3
    middle = statistics.median(times.values())
    print(
        f"rendering 50 turns: median {middle * 1e6:.0f} µs, slowest {slowest} {times[slowest] * 1e6:.0f} µs, "
        f"limit 1000   {'ok' if kept else 'TOO SLOW'}"
    )
    return kept


def pieces_of(name: str) -> list[str]:
    """An answer in `name` of CHUNKS pieces of a token's size: a third of it reasoning."""
    words = (SENTENCE * CHUNKS).split(" ")[:CHUNKS]
    start, end = {
        "qwen3": ("<think>\n", "\n</think>\n\n"),
        "gpt-oss": (
            "<|channel|>analysis<|message|>",
            "<|end|><|start|>assistant<|channel|>final<|message|>",
        ),
    }[name]
    third = CHUNKS // 3
    return [start, *(f" {word}" for word in words[:third]), end, *(f" {word}" for word in words[third:])]


def event(text: str) -> bytes:
    """An event as llama.cpp sends it."""
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": None}
    body = {"choices": [choice], "created": 1, "model": "m", "object": "text_completion", "id": "cmpl-1"}
    return f"data: {json.dumps(body)}\n\n".encode()


async def splitting(name: str) -> bool:
    """Decoding a stream that is split, to one that is passed on as it is."""
    events = [event(piece) for piece in pieces_of(name)]

    def decoding(format: str) -> Callable[[], Awaitable[object]]:
        protocol = OpenAIText(lambda profile: ServedFormat(prompts.get(format)))
        profile = ModelProfile(provider="openai-text", model="m", prompt_format=format)
        request = CompletionRequest(profile=profile, conversation=Conversation.create("Hi"), stream=True)

        async def run() -> None:
            decoder = protocol.decoder(request, Dialect())
            for data in events:
                decoder.feed(data)

        return run

    measured = await compare(decoding("no"), decoding(name))
    return report(f"decoding a chunk, split as {name}", *measured, 1.3, CHUNKS)


async def calls(url: str, folder: Path) -> bool:
    """A whole call through a format, to one that sends the text as it is; and the check of the context."""
    kept = []
    settings = lmclient.Settings(data_dir=folder)
    base = {
        "provider": "openai-text",
        "model": "mock",
        "url": url,
        "api_key": "sk-benchmark",
        "max_tokens": 100,
    }
    raw = ModelProfile(**base, prompt_format="no")
    chatml = ModelProfile(**base, prompt_format="chatml")
    limited = ModelProfile(**base, prompt_format="no", max_context_length=8192)
    async with lmclient.AsyncClient(settings, interceptors=[]) as client:

        def calling(profile: ModelProfile) -> Callable[[], Awaitable[object]]:
            async def run() -> None:
                for _ in range(CALLS):
                    await client.complete(profile, "Hello")

            return run

        def streaming(profile: ModelProfile) -> Callable[[], Awaitable[object]]:
            async def run() -> None:
                async with client.stream(profile, "Hello") as stream:
                    await stream.wait()

            return run

        kept.append(
            report("a call, chatml to no format", *await compare(calling(raw), calling(chatml)), 1.2, CALLS)
        )
        kept.append(
            report(
                "a call with max_context_length", *await compare(calling(raw), calling(limited)), 1.1, CALLS
            )
        )
        query = {"chunks": str(CHUNKS), "paced": "1"}
        plain, split = (
            profile.model_copy(update={"extra_query": query, "prompt_format": name})
            for profile, name in ((raw, "no"), (raw, "qwen3"))
        )
        kept.append(
            report(
                "a streamed chunk, qwen3 to no format",
                *await compare(streaming(plain), streaming(split)),
                1.3,
                CHUNKS,
            )
        )
    return all(kept)


def checking() -> bool:
    """The check of the context, where it is plain that all fits."""
    profile = ModelProfile(provider="openai-chat", model="m", max_context_length=128_000)
    kept = []
    for name, conversation, limit in (("1 turn", Conversation.create("Hello"), 3), ("50 turns", FIFTY, 60)):
        request = CompletionRequest(profile=profile, conversation=conversation)
        microseconds = cpu_of(lambda request=request: at_most(request), 200) * 1e6
        kept.append(microseconds < limit)
        print(
            f"checking the context of {name}: {microseconds:.1f} µs, limit {limit}   "
            f"{'ok' if kept[-1] else 'TOO SLOW'}"
        )
    return all(kept)


async def main() -> bool:
    kept = [rendering(), await splitting("qwen3"), await splitting("gpt-oss"), checking()]
    with mock_server() as url, tempfile.TemporaryDirectory() as folder:
        return all([*kept, await calls(url, Path(folder))])


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
