"""`lmclient serve` as a program of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def serving(directory: Path, settings: str, profiles: Mapping[str, str]) -> Iterator[str]:
    """The URL of a server that has these settings and profiles, as TOML, until the context ends."""
    (directory / "profiles").mkdir()
    (directory / "lmclient.toml").write_text(f'data_dir = "{directory}"\n{settings}', encoding="utf-8")
    for name, profile in profiles.items():
        (directory / "profiles" / f"{name}.toml").write_text(profile, encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LMCLIENT_")},
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "NO_PROXY": "*",
    }
    command = [sys.executable, "-m", "lmclient", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)


def chat_profile(url: str, *, cost: tuple[str, str] | None = ("1", "4"), currency: str = "USD") -> str:
    """A profile of a model that is reached at this URL."""
    lines = [
        'provider = "openai-chat"',
        'model = "staged-1"',
        f'url = "{url}"',
        'api_key = "sk-upstream-secret"',
    ]
    if cost is not None:
        lines += ["[cost]", f'input = "{cost[0]}"', f'output = "{cost[1]}"', f'currency = "{currency}"']
    return "\n".join(lines)
