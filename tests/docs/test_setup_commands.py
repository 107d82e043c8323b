"""The commands of the README that install something are for .ci/run to execute, not for this suite."""

from __future__ import annotations

import re

from .conftest import ROOT
from .markdown import blocks_of

CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
SETUPS = [
    block.code.strip() for block in blocks_of(ROOT / "README.md") if block.code.startswith("python3 -m venv")
]


def selected(pattern: str) -> list[str]:
    """The lines of the README that `grep` gives for the pattern."""
    return [
        line
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if re.search(pattern, line)
    ]


def test_the_readme_sets_everything_up_with_two_commands():
    assert len(SETUPS) == 2
    assert all("\n" not in command for command in SETUPS)


def run_by_ci() -> list[str]:
    """The commands that .ci/run takes out of the README and runs."""
    greps = dict(re.findall(r"^(\w+)=\$\(grep -m1 '([^']+)' README\.md\)$", CI, re.MULTILINE))
    return [selected(pattern)[0] for name, pattern in greps.items() if f'bash -c "${name}"' in CI]


def test_ci_runs_the_command_for_all_tests():
    assert [command for command in SETUPS if command.endswith("pytest")] == run_by_ci()[-1:]


def test_ci_runs_the_command_for_a_local_answer():
    assert set(run_by_ci()) == set(SETUPS)


def test_ci_builds_the_documentation_as_the_readme_says():
    assert ".venv/bin/mkdocs build --strict -f .mkdocs.yml" in selected("mkdocs build")
    assert re.search(r"^\.venv/bin/mkdocs build --strict .*-f \.mkdocs\.yml$", CI, re.MULTILINE)
