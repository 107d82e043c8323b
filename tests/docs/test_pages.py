"""Every code block of the README and of the guides runs, from top to bottom of its page."""

from __future__ import annotations

import pytest

from .conftest import ROOT
from .markdown import Block, blocks_of
from .not_run import NOT_RUN
from .page_runner import PageRunner

LOCAL_PAGES = {"local-model.md"}
"""Pages about the embedded model, which run it."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STAND_IN = [page for page in PAGES if page.name not in LOCAL_PAGES]


def is_run(block: Block) -> bool:
    page = block.place.partition(":")[0]
    return not any(page == name and block.code.startswith(start) for name, start in NOT_RUN)


@pytest.mark.parametrize("page", STAND_IN, ids=lambda page: page.name)
@pytest.mark.usefixtures("without_local_model")
def test_every_block_of_the_page_runs(page, page_runner: PageRunner):
    for block in filter(is_run, blocks_of(page)):
        page_runner.run(block)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LOCAL_PAGES))
def test_every_block_about_the_embedded_model_runs(name, page_runner: PageRunner):
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    for block in filter(is_run, blocks_of(ROOT / "docs" / name)):
        page_runner.run(block)


@pytest.mark.parametrize(("page", "start"), NOT_RUN)
def test_a_block_that_is_not_run_exists(page, start):
    path = ROOT / page if page == "README.md" else ROOT / "docs" / page
    assert any(block.code.startswith(start) for block in blocks_of(path))
