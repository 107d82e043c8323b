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


def best(action: Callable[[], object], runs: int = 7) -> float:
    """The shortest of several runs, in seconds: what the machine can do when nobody disturbs it."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


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
    reference = best(lambda: len(plain.encode_ordinary(text)))
    ratio = best(lambda: ours.count(text)) / reference
    line = f"  {path.stem:9} 1 MB: tiktoken {reference * 1000:4.0f} ms, ours {ratio:.2f} x"
    if encoding == "o200k_base":
        seconds = best(lambda: fallback.count(text), 3)
        error = fallback.count(sample) / ours.count(sample) - 1
        line += f"; fallback {seconds * 1000:4.0f} ms, error {error:+.1%}"
    print(line)
    return ratio


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
