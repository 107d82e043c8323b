"""What axe finds on the pages: nothing serious, light or dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .browser import Browser
from .upstream import Upstream

ANSWER = """# Title

Some *text*, `code` and a [link](https://example.com).

- [x] done
- [ ] to do

> A quote

| a | b |
| --- | --- |
| 1 | 2 |

```python
print("hello")
```
"""


@pytest.fixture(params=["light", "dark"])
def scheme(one_browser: Browser, request: pytest.FixtureRequest) -> Iterator[str]:
    features = [{"name": "prefers-color-scheme", "value": request.param}]
    one_browser.cdp("Emulation.setEmulatedMedia", features=features)
    yield request.param
    one_browser.cdp("Emulation.setEmulatedMedia", features=[])


def findings(browser: Browser, axe: str) -> list[str]:
    browser.run(axe)
    found = browser.driver.execute_async_script(
        "const [done] = arguments; axe.run(document).then(({violations}) => done(violations.map("
        "each => [each.impact, each.id, each.nodes.map(node => node.html).join(' ')])))"
    )
    return [f"{impact} {id}: {html:.300}" for impact, id, html in found]


def test_the_chat_page_while_and_after_answering(
    browser: Browser, url: str, upstream: Upstream, axe: str, scheme: str
) -> None:
    browser.get(url)
    browser.ask("All of Markdown?")
    upstream.send(reasoning="Hm.\n" * 40)
    upstream.send(ANSWER)
    browser.shows(".said", "hello")
    assert findings(browser, axe) == []
    upstream.finish()
    browser.answered()
    browser.ask("Once more?")
    upstream.say(ANSWER)
    browser.answered(2)
    browser.click(".reasoning summary")
    browser.click("#system-panel summary")
    browser.click(".user .actions button")
    assert findings(browser, axe) == []


def test_the_spend_page(browser: Browser, url: str, upstream: Upstream, axe: str, scheme: str) -> None:
    browser.get(url)
    browser.ask("Hello?")
    upstream.say("Yes.")
    browser.answered()
    browser.driver.get(f"{url}/spend")
    browser.one("#records tbody tr")
    browser.click("#charts details summary")
    assert findings(browser, axe) == []


def test_an_error(one_browser: Browser, url: str, axe: str, scheme: str) -> None:
    browser = one_browser
    browser.get(url)
    browser.until(lambda: browser.all("#target option[value=bad_gateway_html]"))
    browser.run("const t = document.getElementById('target'); t.value = 'bad_gateway_html'")
    browser.ask("Hello?")
    browser.answered()
    assert findings(browser, axe) == []
    browser.errors()
