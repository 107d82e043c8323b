"""How the pages come to the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from lmclient import Settings
from lmclient.server.pages.files import DIRECTORY
from lmclient.server.serving import open_gateway
from lmclient.testing.hosting import running_in_thread

FILES = sorted(path.name for path in DIRECTORY.iterdir())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("site"))
    with (
        running_in_thread(open_gateway(settings)) as url,
        httpx2.Client(base_url=url.removesuffix("/v1"), trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(("path", "title"), [("/", "Chat"), ("/spend", "Spend")])
def test_pages_are_html_without_inline_script_or_style(site: httpx2.Client, path: str, title: str) -> None:
    page = site.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<title>{title} · lmclient</title>" in page.text
    assert not re.search(r"<script>|<style|style=|\son\w+=|https?:", page.text)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type(site: httpx2.Client, name: str) -> None:
    answer = site.get(f"/static/{name}")
    kinds = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
    assert answer.content == (DIRECTORY / name).read_bytes()
    assert answer.headers["content-type"].split(";")[0] == kinds[name.rpartition(".")[2]]


@pytest.mark.parametrize("name", ["nothing.js", "..%2f__init__.py", "%2e%2e/files.py", ".", "%00"])
def test_nothing_else_is_served(site: httpx2.Client, name: str) -> None:
    assert site.get(f"/static/{name}").status_code == 404


def test_the_scripts_are_small_and_make_no_html_of_text() -> None:
    scripts = list(DIRECTORY.glob("*.js"))
    assert sum(path.stat().st_size for path in scripts) < 150_000
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|Function\("
    )
    assert [path.name for path in scripts if forbidden.search(path.read_text(encoding="utf-8"))] == []


def test_what_the_pages_name_is_there(site: httpx2.Client) -> None:
    sources = [*DIRECTORY.glob("*.html"), *DIRECTORY.glob("*.js")]
    named = {
        found
        for path in sources
        for found in re.findall(r'(?:/static/|from "\./)([\w.]+)', path.read_text(encoding="utf-8"))
    }
    assert named <= set(FILES)
    # The icon is asked for by browsers, the pages under paths of their own.
    assert set(FILES) - named == {"chat.html", "spend.html"}


def test_the_files_belong_to_the_package() -> None:
    assert Path("lmclient", "server", "pages", "static").parts == DIRECTORY.parts[-4:]
