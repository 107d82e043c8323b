"""Runs the blocks of a page from top to bottom, as a reader would paste them."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import linecache
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

from lmclient import Settings
from lmclient.profiles.directory import Profiles

from .markdown import Block

SECONDS = 60


class PageRunner:
    """One page in its working directory: one Python namespace, one event loop, one shell environment."""

    def __init__(self, directory: Path, runner: asyncio.Runner) -> None:
        self._directory = directory
        self._runner = runner
        self._module = types.ModuleType("docs_page")
        self._printed: str | None = None

    def run(self, block: Block) -> None:
        """Runs one block. Raises whatever fails in it, with its place."""
        if block.language == "text":
            self._compare(block)
            return
        self._printed = None
        if block.title is not None:
            self._write(block)
        step = getattr(self, f"_run_{block.language}", None)
        assert step is not None, f"{block.place}: no test knows the language {block.language!r}"
        step(block)

    def _run_python(self, block: Block) -> None:
        if block.title is not None and block.title.endswith(".py"):
            ast.parse(block.code)  # a module that the page's other blocks import
            return
        linecache.cache[block.place] = (len(block.code), None, block.code.splitlines(True), block.place)
        code = compile(block.code, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        output = io.StringIO()
        with self._as_main_module(), contextlib.redirect_stdout(output):
            if code.co_flags & inspect.CO_COROUTINE:
                self._runner.run(_awaited(code, self._module.__dict__))
            else:
                exec(code, self._module.__dict__)
        self._printed = output.getvalue()

    def _run_bash(self, block: Block) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.code],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block.place}: status {done.returncode}\n{done.stdout}{done.stderr}"
        self._printed = done.stdout

    def _run_toml(self, block: Block) -> None:
        assert block.title, f"{block.place}: a TOML block needs a title, the name of its file"
        values = tomllib.loads(block.code)
        if Path(block.title).parent.name == "profiles":
            self._load_profile(block)
        elif block.title == "lmclient.toml" or "lmclient" in values.get("tool", {}):
            Settings()

    def _run_properties(self, block: Block) -> None:
        self._load_profile(block)

    def _run_json(self, block: Block) -> None:
        json.loads(block.code)

    def _run_ini(self, block: Block) -> None:
        assert block.title == ".env", f"{block.place}: expected the title .env"

    def _run_jinja(self, block: Block) -> None:
        from lmclient import prompts

        assert block.title, f"{block.place}: a template needs a title, the name of its file"
        prompts.get(block.title)

    def _load_profile(self, block: Block) -> None:
        assert block.title, f"{block.place}: a profile needs a title, the name of its file"
        Profiles(Settings()).load(Path(block.title).stem)

    def _write(self, block: Block) -> None:
        assert block.title is not None
        file = self._directory / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.code, encoding="utf-8")

    def _compare(self, block: Block) -> None:
        """Compares the output of the block before; `...` stands for anything."""
        assert self._printed is not None, f"{block.place}: no block before it has an output"
        pattern = ".*?".join(map(re.escape, block.code.strip().split("...")))
        printed = "\n".join(line.rstrip() for line in self._printed.strip().splitlines())
        assert re.fullmatch(pattern, printed, re.DOTALL), (
            f"{block.place}: the page says\n{block.code}\nbut it is\n{printed}"
        )

    @contextlib.contextmanager
    def _as_main_module(self) -> Iterator[None]:
        # Type hints of what the page defines are looked up in its module.
        sys.modules[self._module.__name__] = self._module
        sys.path.insert(0, str(self._directory))
        try:
            yield
        finally:
            sys.path.remove(str(self._directory))
            del sys.modules[self._module.__name__]


async def _awaited(code: types.CodeType, namespace: dict[str, object]) -> None:
    await eval(code, namespace)
