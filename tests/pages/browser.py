"""A real browser without a window, and the pages in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--disable-renderer-backgrounding"),
    *("--no-proxy-server", "--force-device-scale-factor=1", "--lang=en", "--window-size=1280,900"),
)
PATIENCE = 30.0
"""Seconds that a test waits for what it expects; it goes on at once when that is there."""

LOADED = """
return [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].map(
  (entry) => `${entry.name} ${entry.responseStatus} ${Math.round(entry.duration)} ms`
);
"""


class Browser:
    """One browser; `get` opens a page of a gateway as somebody who has never been there."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.patience = PATIENCE

    def get(self, url: str) -> None:
        """Opens a page, with nothing kept from before."""
        # A page that is left keeps its conversation, so what is kept goes only when none is there.
        origin = "/".join(url.split("/")[:3])
        self.driver.get(f"{origin}/static/favicon.svg")
        self.run("localStorage.clear(); sessionStorage.clear()")
        self.driver.get(url)

    def cdp(self, command: str, **parameters: Any) -> Any:
        """Runs a command of the browser's own protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        """The elements that fit."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first element that fits, once there is one."""
        return self.until(lambda: (self.all(selector) or [None])[0])

    def until(self, condition: Callable[[], T | None]) -> T:
        """What the condition returns once that is true, whatever is drawn anew meanwhile."""
        wait = WebDriverWait(self.driver, self.patience, 0.05, [StaleElementReferenceException])
        try:
            return wait.until(lambda _: condition())  # type: ignore[return-value]  # it waits until there is one
        except TimeoutException as error:
            loaded, shown = self.run(LOADED), self.run("return document.body.innerText")[:2000]
            raise AssertionError(
                f"it never came; {self.driver.current_url} has loaded {loaded}, its console says "
                f"{self.errors()}, and it shows: {shown}"
            ) from error

    def text(self, selector: str) -> str:
        """The text that the first element shows, "" without one."""
        found = self.all(selector)
        return found[0].text if found else ""

    def shows(self, selector: str, text: str) -> None:
        """Waits until the text is in one of the elements."""
        script = (
            "const [selector, text] = arguments;"
            "return [...document.querySelectorAll(selector)].some(each => each.innerText.includes(text))"
        )
        self.until(lambda: self.run(script, selector, text))

    def click(self, selector: str) -> None:
        """Clicks the first element that fits, once it can be seen."""

        def clicked() -> bool:
            seen = [found for found in self.all(selector) if found.is_displayed()]
            if seen:
                seen[0].click()
            return bool(seen)

        self.until(clicked)

    def press(self, *keys: str) -> None:
        """Presses keys wherever the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def ask(self, question: str) -> None:
        """Asks on the chat page, once that is ready."""
        self.until(lambda: self.run("return document.querySelectorAll('#target option').length"))
        self.one("#prompt").send_keys(question, Keys.ENTER)

    def answered(self, number: int = 1) -> None:
        """Waits for the end of the answer with this number."""
        script = "return document.querySelectorAll('.assistant[aria-busy=false]').length"
        self.until(lambda: self.run(script) >= number)

    def errors(self) -> list[str]:
        """What the console has complained of since it was last asked."""
        entries = self.driver.get_log("browser")
        return [str(entry["message"]) for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


@contextlib.contextmanager
def open_browser(directory: Path) -> Iterator[Browser]:
    """A browser with a new profile in the directory."""
    assert CHROMIUM is not None
    assert DRIVER is not None
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={directory}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
