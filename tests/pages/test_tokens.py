"""Pages of a server that wants a token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from lmclient import Settings
from lmclient.server.serving import open_gateway
from lmclient.testing.hosting import running_in_thread

from .browser import Browser

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("guarded"), server={"tokens": [{"name": "ann", "token": TOKEN}]}
    )
    with running_in_thread(open_gateway(settings)) as url:
        yield url.removesuffix("/v1")


def enter(browser: Browser, token: str) -> None:
    field = browser.one("#token")
    field.clear()
    field.send_keys(token)
    browser.click("dialog button[type=submit]")


@pytest.mark.parametrize(("path", "loaded"), [("/", "#target option"), ("/spend", ".total")])
def test_a_page_asks_for_the_token_until_it_is_right(
    one_browser: Browser, guarded: str, path: str, loaded: str
) -> None:
    browser = one_browser
    browser.get(guarded + path)
    browser.shows("dialog", "This server asks who you are.")
    enter(browser, "wrong")
    browser.shows("dialog", "This token was not accepted.")
    enter(browser, TOKEN)
    browser.until(lambda: browser.all(loaded))
    browser.driver.refresh()
    browser.until(lambda: browser.all(loaded))
    assert [each for each in browser.errors() if "Failed to load resource" not in each] == []


@pytest.mark.parametrize("way", ["button", "key"])
def test_who_has_no_token_can_say_so(one_browser: Browser, guarded: str, way: str) -> None:
    browser = one_browser
    browser.get(f"{guarded}/spend")
    browser.one("#token")
    if way == "button":
        browser.click("dialog button[type=button]")
    else:
        browser.press(Keys.ESCAPE)
    browser.shows("#notice", "A valid bearer token is needed")
    browser.click("#notice button")
    browser.one("#token")
    browser.driver.get("about:blank")
    browser.errors()
