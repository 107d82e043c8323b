"""Takes the pictures of the pages that the guide shows, into docs/images:

    python -m tests.pages.screenshots

Needs chromium and chromedriver. The figures are invented.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from lmclient.spend.ledger import Ledger
from lmclient.spend.records import SpendRecord
from lmclient.testing.hosting import running_in_thread

from .browser import Browser, open_browser
from .served import chat_profile, serving
from .upstream import Upstream, open_upstream

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SETTINGS = """
[categories]
s = "mini"
m = "standard"
l = "standard"
xl = "large"
hot = "standard"
cold = "mini"
[[spend.budgets]]
name = "everything"
amount = "18"
[[spend.budgets]]
name = "large model"
amount = "30"
profile = "large"
[[spend.budgets]]
name = "each user"
amount = "5.5"
tags = { user = "*" }
"""
MODELS = {
    "mini": ("s", "model-mini", "0.006", "USD"),
    "standard": ("m", "model-standard", "0.03", "USD"),
    "large": ("xl", "model-large", "0.14", "USD"),
    "local-eu": ("cold", "model-eu", "0.02", "EUR"),
}
QUESTION = "How do I read a large CSV file in Python without running out of memory?"
REASONING = (
    "The file may not fit into memory, so it has to be read in pieces. The csv module reads row by row; "
    "for sums, a running total is enough. A table of the ways would help, with what each is good for."
)
ANSWER = """Read it **row by row**: the `csv` module never holds more than one row.

```python
import csv

def total(path: str) -> float:
    with open(path, newline="") as file:
        return sum(float(row["amount"]) for row in csv.DictReader(file))
```

| Way | Memory | Good for |
| --- | --- | --- |
| `csv.DictReader` | one row | sums, filters |
| pandas with `chunksize` | one chunk | groups, joins |
| a database | very little | asking again and again |

1. Start with `csv`.
2. Change to chunks once you need *groups*.
"""


def main() -> None:
    """Takes all of them."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, running_in_thread(open_upstream()) as upstream:
        directory = Path(name, "served")
        directory.mkdir()
        asyncio.run(_fill(directory / "ledger.sqlite3"))
        profiles = {name: chat_profile(upstream.url, currency=each[3]) for name, each in MODELS.items()}
        with serving(directory, SETTINGS, profiles) as url, open_browser(Path(name, "browser")) as browser:
            for scheme in ("light", "dark"):
                _prefer(browser, scheme)
                _take_chat(browser, url, upstream, IMAGES / f"chat-{scheme}.png")
                _take_spend(browser, url, IMAGES / f"spend-{scheme}.png")


def _prefer(browser: Browser, scheme: str) -> None:
    browser.cdp("Emulation.setScrollbarsHidden", hidden=True)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.cdp("Emulation.setEmulatedMedia", features=features)


def _size(browser: Browser, width: int, height: int) -> None:
    browser.cdp(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
    )


def _take_chat(browser: Browser, url: str, upstream: Upstream, image: Path) -> None:
    _size(browser, 1000, 1010)
    browser.get(url)
    browser.ask(QUESTION)
    upstream.send(reasoning=REASONING)
    upstream.send(ANSWER)
    upstream.finish(reasoning_tokens=58, cached_tokens=1024)
    browser.answered()
    browser.click(".reasoning summary")
    browser.driver.save_screenshot(str(image))


def _take_spend(browser: Browser, url: str, image: Path) -> None:
    _size(browser, 1200, 1560)
    browser.get(f"{url}/spend")
    browser.one("#charts svg")
    browser.one("#records tbody tr")
    browser.driver.save_screenshot(str(image))


async def _fill(file: Path) -> None:
    ledger = Ledger(f"sqlite:///{file}")
    await ledger.book([*_records(random.Random(7))])
    await ledger.aclose()


def _records(chance: random.Random) -> Iterator[SpendRecord]:
    now = datetime.datetime.now(datetime.UTC)
    for number in range(900):
        profile = chance.choices([*MODELS], [9, 6, 2, 3])[0]
        category, model, price, currency = MODELS[profile]
        ago = datetime.timedelta(minutes=number * 47 + chance.randrange(40))
        if chance.random() < 0.55 and (now - ago).weekday() >= 5:
            continue
        output, failed = chance.randrange(80, 1800), chance.random() < 0.03
        cached = not failed and chance.random() < 0.08
        cost = Decimal(price) * Decimal(output) / 1000
        yield SpendRecord(
            call_id=f"call-{number}",
            attempt=1,
            time=now - ago,
            category=category,
            profile=profile,
            provider="openai-chat",
            model=model,
            input_tokens=0 if failed else chance.randrange(200, 9000),
            output_tokens=0 if failed else output,
            cost=None if failed else Decimal(0) if cached else cost,
            saved_cost=cost if cached else None,
            cost_source=None if failed else "cache" if cached else "profile",
            currency=currency,
            duration=0.004 if cached else output / 110,
            status="failed" if failed else "finished",
            finish_reason=None if failed else "stop",
            error="RateLimitError" if failed else None,
            http_status=429 if failed else None,
            tags={"user": chance.choice(["ann", "bob", "eve"])},
        )


if __name__ == "__main__":
    main()
