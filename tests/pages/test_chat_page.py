"""The chat page, as somebody at a browser sees it."""

from __future__ import annotations

import json

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from .browser import Browser
from .upstream import Upstream

SAID = ".assistant .said"
FIGURES = ".assistant .figures"


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


def test_reasoning_grows_in_a_panel_that_folds_when_the_answer_begins(
    browser: Browser, url: str, upstream: Upstream
) -> None:
    browser.get(url)
    browser.ask("Why?")
    upstream.send(reasoning="First, ")
    browser.shows(".thoughts", "First,")
    upstream.send(reasoning="then.")
    browser.shows(".thoughts", "First, then.")
    assert browser.text(".reasoning summary") == "Thinking…"
    upstream.send("Because.")
    upstream.finish(reasoning_tokens=40)
    browser.answered()
    assert not browser.one(".thoughts").is_displayed()
    browser.click(".reasoning summary")
    assert browser.text(".thoughts") == "First, then."
    assert browser.text(SAID) == "Because."


def test_stop_ends_the_request_at_the_provider(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Go on for ever.")
    upstream.send("On and ")
    browser.shows(SAID, "On and")
    browser.click("#stop")
    browser.answered()
    assert upstream.left.wait(1)
    assert browser.text(SAID) == "On and"
    browser.shows(FIGURES, "Stopped")
    assert browser.one("#send").is_displayed()


def test_escape_stops_an_answer(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Go on for ever.")
    upstream.send("On and ")
    browser.shows(SAID, "On and")
    browser.press(Keys.ESCAPE)
    browser.answered()
    assert upstream.left.wait(1)


def test_an_answer_says_its_tokens_and_cost(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("How much?")
    upstream.send("Little.")
    upstream.finish(reasoning_tokens=40, cached_tokens=1000)
    browser.answered()
    shown = ["m → staged", "1.2K in (1K cached)", "340 out (40 reasoning)", "$0.00256"]
    assert browser.text(FIGURES).splitlines()[:4] == shown


def test_what_was_said_goes_along(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.click("#system-panel summary")
    browser.one("#system").send_keys("Be brief.")
    browser.ask("One?")
    upstream.say("Yes.")
    browser.answered()
    browser.ask("Two?")
    upstream.say("No.")
    browser.answered(2)
    assert [(said["role"], said["content"]) for said in upstream.requests[1]["messages"]] == [
        ("system", "Be brief."),
        ("user", "One?"),
        ("assistant", "Yes."),
        ("user", "Two?"),
    ]


def test_retry_replaces_the_answer(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("A number?")
    upstream.say("Seven.")
    browser.answered()
    browser.run(
        "[...document.querySelectorAll('.assistant button')].find(b => b.innerText == 'Retry').click()"
    )
    upstream.say("Eight.")
    browser.shows(SAID, "Eight.")
    browser.answered()
    assert len(browser.all(".assistant")) == 1
    assert [said["content"] for said in upstream.requests[1]["messages"]] == ["A number?"]


def test_an_edited_question_is_asked_again_and_what_followed_goes(
    browser: Browser, url: str, upstream: Upstream
) -> None:
    browser.get(url)
    for number, answer in enumerate(("First.", "Second."), start=1):
        browser.ask(f"Question {number}?")
        upstream.say(answer)
        browser.answered(number)
    browser.click(".user .actions button")
    browser.one(".editor textarea").send_keys(Keys.CONTROL, "a")
    browser.one(".editor textarea").send_keys("Another?")
    browser.click(".editor button[type=submit]")
    upstream.say("Third.")
    browser.shows(SAID, "Third.")
    browser.answered()
    assert [turn.text for turn in browser.all(".said")] == ["Another?", "Third."]
    assert [said["content"] for said in upstream.requests[2]["messages"]] == ["Another?"]


def test_an_edited_answer_stays_and_goes_along(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("A number?")
    upstream.say("Seven.")
    browser.answered()
    browser.run(
        "[...document.querySelectorAll('.assistant button')].find(b => b.innerText == 'Edit').click()"
    )
    browser.one(".editor textarea").send_keys(Keys.CONTROL, "a")
    browser.one(".editor textarea").send_keys("Nine.")
    browser.click(".editor button[type=submit]")
    assert browser.text(SAID) == "Nine."
    browser.ask("Sure?")
    upstream.say("Yes.")
    browser.answered(2)
    assert upstream.requests[1]["messages"][1]["content"] == "Nine."


def test_a_reload_keeps_the_conversation(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Who?")
    upstream.say("**Me.**", reasoning="Hm.")
    browser.answered()
    figures = browser.text(FIGURES)
    browser.driver.refresh()
    browser.shows(SAID, "Me.")
    assert [turn.text for turn in browser.all(".said")] == ["Who?", "Me."]
    assert browser.text(FIGURES) == figures


def test_a_reload_in_mid_answer_keeps_what_had_come(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Who?")
    upstream.send("I am ")
    browser.shows(SAID, "I am")
    browser.driver.refresh()
    assert upstream.left.wait(1)
    browser.shows(SAID, "I am")
    browser.shows(FIGURES, "Stopped")


def test_the_chosen_profile_answers(browser: Browser, url: str) -> None:
    browser.get(url)
    browser.until(lambda: browser.all("#target option"))
    Select(browser.one("#target")).select_by_value("slow_stream")
    browser.ask("Hello?")
    browser.answered()
    assert browser.text(FIGURES).startswith("slow_stream\n")
    browser.driver.refresh()
    browser.until(lambda: browser.all("#target option"))
    assert browser.one("#target").get_property("value") == "slow_stream"


def test_the_export_holds_everything(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Who?")
    upstream.say("Me.", reasoning="Hm.")
    browser.answered()
    browser.run(
        "URL.createObjectURL = blob => {"
        "blob.text().then(text => window.saved = text); return 'about:blank#'; };"
        "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };"
    )
    browser.click("#export")
    saved = json.loads(browser.until(lambda: browser.run("return window.saved")))
    assert browser.run("return window.savedAs").endswith(".json")
    question, answer = saved["messages"]
    assert question == {"role": "user", "content": "Who?"}
    assert (answer["content"], answer["reasoning_content"]) == ("Me.", "Hm.")
    assert answer["lmclient"]["usage"]["cost"] == 0.00256


def test_a_new_conversation_is_empty(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Who?")
    upstream.say("Me.")
    browser.answered()
    browser.click("#new")
    browser.driver.switch_to.alert.accept()
    browser.until(lambda: not browser.all(".turn"))
    browser.driver.refresh()
    browser.shows("#empty", "What would you like to know?")


@pytest.mark.parametrize(
    ("profile", "part", "message"),
    [
        ("bad_gateway_html", "", "502"),
        ("quota_exhausted", "", "quota"),
        ("error_event", "The quick ", ""),
        ("reset_mid_stream", "The quick brown ", ""),
    ],
)
def test_an_error_can_be_read_and_the_part_before_it_stays(
    one_browser: Browser, url: str, profile: str, part: str, message: str
) -> None:
    browser = one_browser
    browser.get(url)
    browser.until(lambda: browser.all("#target option"))
    Select(browser.one("#target")).select_by_value(profile)
    browser.ask("Hello?")
    browser.answered()
    error = browser.text(".assistant .error")
    assert f"'{profile}'" in error
    assert message in error.lower()
    assert "Traceback" not in error
    assert browser.text(SAID).startswith(part.strip())
    # A browser itself logs every answer that is not a success.
    assert [each for each in browser.errors() if "Failed to load resource" not in each] == []


def test_a_screen_reader_hears_the_whole_answer_at_its_end(
    browser: Browser, url: str, upstream: Upstream
) -> None:
    browser.get(url)
    browser.ask("Who?")
    upstream.say("It is **me**.")
    browser.answered()
    assert browser.one("[aria-live=polite]").get_property("textContent") == "Answer: It is me."
    assert browser.run("return document.activeElement.id") == "prompt"


def test_the_page_works_with_the_keyboard_alone(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.until(lambda: browser.all("#target option"))
    browser.press(Keys.TAB, Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "prompt"
    browser.driver.switch_to.active_element.send_keys(
        "Line one", Keys.SHIFT, Keys.ENTER, Keys.SHIFT, "line two"
    )
    browser.press(Keys.ENTER)
    upstream.say("Fine.")
    browser.answered()
    assert upstream.requests[0]["messages"][0]["content"] == "Line one\nline two"


def test_it_fits_on_a_phone(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    try:
        browser.get(url)
        browser.ask("Code?")
        upstream.say("```\n" + "x" * 300 + "\n```\n\n" + "y" * 300)
        browser.answered()
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        assert browser.run("return document.querySelector('.assistant').scrollWidth") <= 360
        assert browser.one("#send").is_displayed()
    finally:
        browser.cdp("Emulation.clearDeviceMetricsOverride")
