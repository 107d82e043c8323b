"""What a model writes is text: nothing of it runs, loads or leads anywhere but to the web."""

from __future__ import annotations

import pytest

from .browser import Browser
from .upstream import Upstream

HOSTILE = """\
<img src=x onerror="window.hacked = 1">
<script>window.hacked = 2</script>
<svg onload="window.hacked = 3"></svg>
<a href="javascript:window.hacked=4" id="prompt">click</a>
<iframe srcdoc="<script>parent.hacked = 5</script>"></iframe>

[one](javascript:window.hacked=6) [two](data:text/html,<script>window.hacked=7</script>)
[three](vbscript:x) [four](  JaVaScRiPt:window.hacked=8) [five](//evil.example/x) [six](/v1/models)
![seven](https://evil.example/pixel.png) <javascript:window.hacked=9>

| <b onmouseover="window.hacked=10">cell</b> | `<i>` |
| --- | --- |
| <style>body{display:none}</style> | <form action="/v1/models"><input></form> |

```html" onclick="window.hacked=11
<img src=x onerror="window.hacked = 12">
```
"""


def test_html_in_an_answer_does_nothing(browser: Browser, url: str, upstream: Upstream) -> None:
    browser.get(url)
    browser.ask("Hack me.")
    upstream.say(HOSTILE, reasoning=HOSTILE)
    browser.answered()
    browser.run("for (const each of document.querySelectorAll('.said *, .thoughts')) each.click()")
    assert browser.run("return window.hacked") is None
    foreign = "img, script, svg, iframe, style, form, b, i, [onerror], [onload], [onclick], [style], #prompt"
    assert (
        browser.run(
            "return document.querySelector('.assistant').querySelectorAll(arguments[0]).length", foreign
        )
        == 0
    )
    browser.shows(".assistant .said", '<img src=x onerror="window.hacked = 1">')


def test_links_lead_to_the_web_only_and_without_an_opener(
    browser: Browser, url: str, upstream: Upstream
) -> None:
    browser.get(url)
    browser.ask("Links?")
    upstream.say(HOSTILE + "\n[site](https://example.com/a?b=c) and https://example.org/d.")
    browser.answered()
    links = browser.run(
        "return [...document.querySelectorAll('.said a')].map(a => [a.href, a.rel, a.innerText])"
    )
    assert links == [
        ["https://evil.example/pixel.png", "noopener noreferrer", "seven"],
        ["https://example.com/a?b=c", "noopener noreferrer", "site"],
        ["https://example.org/d", "noopener noreferrer", "https://example.org/d"],
    ]


def test_inline_script_would_not_run_even_if_it_got_into_the_page(one_browser: Browser, url: str) -> None:
    browser = one_browser
    browser.get(url)
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    browser.until(lambda: any("Content Security Policy" in error for error in browser.errors()))
    assert browser.run("return window.hacked") is None


@pytest.mark.parametrize(
    "text",
    [
        "*" * 30_000,
        "*a " * 20_000,
        "a* " * 20_000,
        "_a *b ~~c " * 8_000,
        "[" * 30_000,
        "[a](" * 15_000,
        "![" * 15_000,
        "`" * 3 + " ``" * 5_000,
        "> " * 10_000 + "deep",
        "- " * 10_000 + "deep",
        "| " * 10_000 + "\n" + "|-" * 10_000,
        "<https://a" * 5_000,
        "https://a.example/((((" * 4_000,
        "#" * 30_000,
        "\n".join(" " * depth + "- x" for depth in range(800)),
        "1. \n" * 3_000,
        "\\" * 30_000,
        "-" * 30_000 + "x",
        " " * 30_000 + "x",
    ],
    ids=range(19),
)
def test_odd_text_is_shown_soon(browser: Browser, url: str, text: str) -> None:
    if not browser.driver.current_url.startswith(url):
        browser.get(url)
    browser.driver.set_script_timeout(30)
    seconds = browser.driver.execute_async_script(
        "const [text, done] = arguments; import('/static/markdown.js').then(({showMarkdown}) => {"
        "const began = performance.now(); const box = document.createElement('div');"
        "document.getElementById('turns').append(box); showMarkdown(box, text); box.offsetHeight;"
        "const took = (performance.now() - began) / 1000; box.remove(); done(took); })",
        text,
    )
    assert seconds < 10
