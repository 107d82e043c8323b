"""The spend page, as somebody at a browser sees it."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.support.ui import Select

from lmclient import Settings, SpendRecord
from lmclient.server.serving import open_gateway
from lmclient.spend.ledger import Ledger
from lmclient.testing.hosting import running_in_thread

from .browser import Browser
from .upstream import Upstream

NOW = datetime.datetime.now(datetime.UTC)


def record(number: int, **values: Any) -> SpendRecord:
    given = {
        "call_id": f"call-{number}",
        "attempt": 1,
        "time": NOW,
        "category": "m",
        "profile": "mini",
        "provider": "openai-chat",
        "model": "mock",
        "input_tokens": 100,
        "output_tokens": 10,
        "cost": Decimal("0.5"),
        "finish_reason": "stop",
    }
    return SpendRecord(**{**given, **values})


BOOKED = [
    record(1, tags={"user": "ann"}),
    record(2, category="xl", profile="large", cost=Decimal("2.25"), tags={"user": "bob"}),
    record(3, currency="EUR", cost=Decimal("4")),
    record(4, time=NOW - datetime.timedelta(days=5), cost=Decimal("1")),
    record(5, time=NOW - datetime.timedelta(days=20), cost=Decimal("10")),
    record(6, time=NOW - datetime.timedelta(days=60), cost=Decimal("100")),
    record(7, cost=None, input_tokens=0, output_tokens=0, status="failed", error="RateLimitError",
           http_status=429, finish_reason=None),
    record(8, cost=Decimal(0), saved_cost=Decimal("0.5"), cost_source="cache"),
]  # fmt: skip


@pytest.fixture(scope="module")
def booked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spend page of a gateway with some records and budgets."""
    directory: Path = tmp_path_factory.mktemp("booked")
    settings = Settings(
        data_dir=directory,
        spend={
            "budgets": [
                {"name": "spent", "amount": "2", "period": "day"},
                {"name": "each", "amount": "2.5", "period": "day", "tags": {"user": "*"}},
                {"name": "euros", "amount": "100", "currency": "EUR", "period": "total"},
            ]
        },
    )
    assert settings.spend.url is not None
    ledger = Ledger(settings.spend.url)

    async def book() -> None:
        await ledger.book(BOOKED)
        await ledger.aclose()

    asyncio.run(book())
    with running_in_thread(open_gateway(settings)) as url:
        yield url.removesuffix("/v1") + "/spend"


def bars(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('#charts rect title')].map(t => t.textContent)")


def rows(browser: Browser) -> int:
    return len(browser.all("#records tbody tr"))


def test_totals_of_each_currency_stand_apart(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.shows("#totals", "Today")
    cards = [card.text.splitlines()[:3] for card in browser.all(".total")]
    assert cards == [
        ["Today", "$2.75", "€4.00"],
        ["7 days", "$3.75", "€4.00"],
        ["30 days", "$13.75", "€4.00"],
    ]
    browser.shows(".total", "$0.50 saved by the cache")


def test_budgets_show_their_state(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.shows("#budgets", "spent")
    states = [item.text.split("\n") for item in browser.all("#budgets li")]
    assert [(state[0], state[-2], state[-1]) for state in states] == [
        ("spent", "$2.75 of $2.00", "Spent"),
        ("each", "$0.50 of $2.50", "Within"),
        ("each", "$2.25 of $2.50", "Nearly spent"),
        ("euros", "€4.00 of €100.00", "Within"),
    ]
    assert ["user ann" in states[1][1], "user bob" in states[2][1]] == [True, True]
    assert browser.one("#budgets [role=meter]").get_attribute("aria-valuenow") == "100"


def test_bars_are_stacked_by_category_one_drawing_for_each_currency(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.one("#charts rect")
    assert [title.text for title in browser.all(".chart h3")] == ["USD", "EUR"]
    days = [f"{NOW - datetime.timedelta(days=ago):%Y-%m-%d}" for ago in (20, 5, 0)]
    assert bars(browser) == [
        f"{days[0]} · m: $10.00",
        f"{days[1]} · m: $1.00",
        f"{days[2]} · m: $0.50",
        f"{days[2]} · xl: $2.25",
        f"{days[2]} · m: €4.00",
    ]


@pytest.mark.parametrize(
    ("by", "groups"),
    [("profile", {"mini", "large"}), ("model", {"mock"}), ("tag:user", {"ann", "bob", "none"})],
)
def test_bars_can_be_grouped_otherwise(browser: Browser, booked: str, by: str, groups: set[str]) -> None:
    browser.get(booked)
    browser.until(lambda: browser.all(f"#by option[value='{by}']"))
    Select(browser.one("#by")).select_by_value(by)
    browser.until(lambda: {bar.split(" · ")[1].split(":")[0] for bar in bars(browser)} == groups)


def test_calls_and_tokens_can_be_shown_and_other_days(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.one("#charts rect")
    Select(browser.one("#measure")).select_by_value("calls")
    browser.until(lambda: any(bar.endswith("m: 4") for bar in bars(browser)))
    Select(browser.one("#measure")).select_by_value("tokens")
    browser.until(lambda: any(bar.endswith("m: 330") for bar in bars(browser)))
    Select(browser.one("#days")).select_by_value("90")
    browser.until(lambda: len({bar.split(" · ")[0] for bar in bars(browser)}) == 4)


def test_the_figures_can_be_read_as_a_table(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.click("#charts details summary")
    shown = f"{NOW:%Y-%m-%d} $0.50 $2.25"
    browser.until(lambda: browser.text("#charts tbody tr:last-child") == shown)
    Select(browser.one("#days")).select_by_value("90")
    browser.until(lambda: "$100.00" in browser.text("#charts tbody tr"))
    assert browser.text("#charts tbody tr:last-child") == shown, "what is drawn anew stays open"


def test_the_last_requests_can_be_filtered(browser: Browser, booked: str) -> None:
    browser.get(booked)
    browser.until(lambda: rows(browser) == len(BOOKED))
    browser.one("#filter").send_keys("user=bob large")
    browser.until(lambda: rows(browser) == 1)
    assert browser.text("#found") == "1 of the last 8"
    browser.one("#filter").clear()
    browser.one("#filter").send_keys("nobody")
    browser.until(lambda: rows(browser) == 0)
    browser.one("#filter").clear()
    Select(browser.one("#outcome")).select_by_value("failed")
    browser.until(lambda: rows(browser) == 1)
    assert "failed: RateLimitError 429" in browser.text("#records tbody")
    Select(browser.one("#outcome")).select_by_value("cached")
    browser.until(lambda: "from the cache" in browser.text("#records tbody"))


def test_calls_just_made_appear_while_the_page_is_open(
    browser: Browser, url: str, upstream: Upstream
) -> None:
    browser.get(url)
    browser.ask("How much?")
    upstream.say("Little.")
    browser.answered()
    browser.click("nav a[href='/spend']")
    browser.until(lambda: rows(browser) > 0)
    assert "staged-1 1.2K 340 $0.00256" in browser.text("#records tbody tr")
    before = rows(browser)
    browser.driver.switch_to.new_window("tab")
    browser.driver.get(url)
    browser.ask("And now?")
    upstream.say("More.")
    browser.answered(2)
    browser.driver.close()
    browser.driver.switch_to.window(browser.driver.window_handles[0])
    browser.until(lambda: rows(browser) == before + 1)
    assert browser.text("#live") == "Live"


def test_hostile_names_are_text(browser: Browser, url: str, upstream: Upstream) -> None:
    name = "<img src=x onerror=window.hacked=1>"
    browser.get(url)
    browser.run(
        "fetch('/v1/chat/completions', {method: 'POST', headers: {'content-type': 'application/json'},"
        "body: JSON.stringify({model: 'm', messages: [{role: 'user', content: 'x'}], user: arguments[0]})})",
        name,
    )
    upstream.say("Yes.")
    browser.until(lambda: upstream.requests)
    browser.driver.get(f"{url}/spend")
    browser.shows("#records .tag", f"user={name}")
    assert browser.run("return [window.hacked ?? null, document.querySelectorAll('main img').length]") == [
        None,
        0,
    ]


def test_an_empty_ledger_says_so(browser: Browser, tmp_path: Path) -> None:
    with running_in_thread(open_gateway(Settings(data_dir=tmp_path))) as url:
        browser.get(url.removesuffix("/v1") + "/spend")
        browser.shows("#found", "No calls so far.")
        assert browser.text("#charts") == "No calls in these days."
        assert not browser.one("#budgets-section").is_displayed()
        browser.driver.get("about:blank")


def test_it_fits_on_a_phone(browser: Browser, booked: str) -> None:
    browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    try:
        browser.get(booked)
        browser.one("#charts rect")
        assert browser.run("return document.documentElement.scrollWidth") <= 360
    finally:
        browser.cdp("Emulation.clearDeviceMetricsOverride")
