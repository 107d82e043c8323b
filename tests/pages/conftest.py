"""The pages in a real browser, served by `lmclient serve` with models on this machine."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmclient.testing import FaultProvider
from lmclient.testing.hosting import running_in_thread

from .browser import CHROMIUM, DRIVER, PATIENCE, Browser, open_browser
from .served import chat_profile, serving
from .upstream import Upstream, open_upstream

FAULTS = ("slow_stream", "bad_gateway_html", "error_event", "quota_exhausted", "reset_mid_stream")
SETTINGS = """
[categories]
m = "staged"
[retry]
attempts = 1
[[spend.budgets]]
name = "everything"
amount = "0.1"
period = "day"
"""


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    with open_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(one_browser: Browser) -> Iterator[Browser]:
    """A browser whose console must be empty when the test ends."""
    one_browser.errors()
    one_browser.patience = PATIENCE
    yield one_browser
    assert one_browser.errors() == []


@pytest.fixture(scope="session")
def fault() -> Iterator[FaultProvider]:
    with FaultProvider.running() as provider:
        yield provider


@pytest.fixture(scope="session")
def one_upstream() -> Iterator[Upstream]:
    with running_in_thread(open_upstream()) as upstream:
        yield upstream


@pytest.fixture
def upstream(one_upstream: Upstream) -> Upstream:
    """A provider whose answers the test gives."""
    one_upstream.reset()
    return one_upstream


@pytest.fixture(scope="session")
def url(
    tmp_path_factory: pytest.TempPathFactory, one_upstream: Upstream, fault: FaultProvider
) -> Iterator[str]:
    """`lmclient serve`: the category "m" is the provider of the test, and each fault has a profile."""
    profiles = {
        "staged": chat_profile(one_upstream.url),
        **{name: chat_profile(fault.url(name, key="pages"), cost=None) for name in FAULTS},
    }
    with serving(tmp_path_factory.mktemp("served"), SETTINGS, profiles) as served:
        yield served


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    directory = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        [npm, "pack", "--silent", "axe-core"], cwd=directory, capture_output=True, text=True, check=False
    )
    if packed.returncode != 0:
        pytest.skip(f"npm cannot get axe-core: {packed.stderr.strip()[-200:]}")
    with tarfile.open(next(directory.glob("*.tgz"))) as archive:
        archive.extract("package/axe.min.js", directory, filter="data")
    return Path(directory, "package", "axe.min.js").read_text(encoding="utf-8")
