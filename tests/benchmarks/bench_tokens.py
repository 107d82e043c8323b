"""Times of the tokenizers. Run: python tests/benchmarks/bench_tokens.py

Counting is compared with tiktoken itself, called on the same text in the same process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import tiktoken

from lmclient.tokens import get
from lmclient.tokens.ranks import ENCODINGS, shipped_ranks

TEXTS = Path(__file__).parents[1] / "tokens" / "texts"
MEGABYTE = 1_000_000
LIMIT = 1.2


def cpu_times(*actions: Callable[[], object], rounds: int = 5) -> list[float]:
    """For each action the least CPU time of several rounds, in seconds.

    The actions take turns and only this thread's CPU counts, so that other load on the machine
    disturbs the ratio little.
    """
    times = [float("inf")] * len(actions)
    for _ in range(rounds):
        for index, action in enumerate(actions):
            start = time.thread_time()
            action()
            times[index] = min(times[index], time.thread_time() - start)
    return times


def plain_tiktoken(encoding: str) -> tiktoken.Encoding:
    facts = ENCODINGS[encoding]
    return tiktoken.Encoding(
        encoding,
        pat_str=facts.pattern,
        mergeable_ranks=shipped_ranks(facts.file, facts.sha256),
        special_tokens=facts.special_tokens,
    )


def loading(encoding: str) -> float:
    """Seconds from nothing to the first count, in a process of its own, interpreter start excluded."""
    code = (
        "import time; start = time.perf_counter()\n"
        f"from lmclient.tokens import get; get('tiktoken', {encoding!r}).count('x')\n"
        "print(time.perf_counter() - start)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


def compare(path: Path, plain: tiktoken.Encoding, encoding: str) -> float:
    """Prints one line about a text; returns our time as a multiple of tiktoken's."""
    sample = path.read_text(encoding="utf-8")
    text = sample * (MEGABYTE // len(sample.encode()))
    ours, fallback = get("tiktoken", encoding), get("fallback")
    reference, counted, estimated = cpu_times(
        lambda: len(plain.encode_ordinary(text)), lambda: ours.count(text), lambda: fallback.count(text)
    )
    line = f"  {path.stem:9} 1 MB: tiktoken {reference * 1000:4.0f} ms, ours {counted / reference:.2f} x"
    if encoding == "o200k_base":
        error = fallback.count(sample) / ours.count(sample) - 1
        line += f"; fallback {estimated * 1000:4.0f} ms, error {error:+.1%}"
    print(line)
    return counted / reference


def main() -> int:
    worst = 0.0
    for encoding in ("cl100k_base", "o200k_base"):
        milliseconds = min(loading(encoding) for _ in range(3)) * 1000
        print(f"{encoding}: loaded in {milliseconds:.0f} ms, once per process")
        plain = plain_tiktoken(encoding)
        worst = max(worst, *(compare(path, plain, encoding) for path in sorted(TEXTS.glob("*.txt"))))
    print(f"worst ratio {worst:.2f}, limit {LIMIT}")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
