"""What `import lmclient` costs, against `import openai`.

python tests/benchmarks/bench_import.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 9
LIMIT = 0.35
CODE = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def cpu_of(statement: str) -> float:
    """CPU seconds of the statement in a new interpreter."""
    result = subprocess.run([sys.executable, "-c", CODE.format(statement)], capture_output=True, check=True)
    return float(result.stdout)


def main() -> bool:
    kept = True
    for name, statement in (
        ("import lmclient", "import lmclient"),
        ("import lmclient; lmclient.Client", "import lmclient; lmclient.Client"),
    ):
        pairs = [(cpu_of("import openai"), cpu_of(statement)) for _ in range(ROUNDS)]
        theirs, ours = (statistics.median(values) for values in zip(*pairs, strict=True))
        limited = name == "import lmclient"
        kept = kept and (not limited or ours <= LIMIT * theirs)
        print(
            f"{name:34} {ours * 1e3:7.1f} ms   import openai {theirs * 1e3:7.1f} ms   "
            f"ratio {ours / theirs:.2f}" + (f"   limit {LIMIT}" if limited else "")
        )
    return kept


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
