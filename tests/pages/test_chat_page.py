"""The chat page, as somebody at a browser sees it."""

from __future__ import annotations

import json

from selenium.webdriver.common.keys import Keys

from .browser import Browser
from .upstream import Upstream

SAID = ".assistant .said"


def test_an_answer_is_shown_while_it_is_written(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Count.")
    upstream.send("One, ")
    browser.shows(SAID, "One,")
    upstream.send("two, ")
    browser.shows(SAID, "One, two,")
    assert browser.one(".assistant").get_attribute("aria-busy") == "true"
    upstream.send("three.")
    upstream.finish()
    browser.answered()
    assert browser.text(SAID) == "One, two, three."
