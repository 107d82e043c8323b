"""What Markdown in an answer becomes."""

from __future__ import annotations

import pytest

from .browser import Browser

SHOW = (
    "const [texts, done] = arguments; import('/static/markdown.js').then(({showMarkdown}) => {"
    "const box = document.createElement('div'); for (const text of texts) showMarkdown(box, text);"
    "done(box.innerHTML); })"
)


def shown(browser: Browser, url: str, *texts: str) -> str:
    """The elements that stand for the last of the texts, shown one after the other in one place."""
    if not browser.driver.current_url.startswith(url):
        browser.get(url)
    return str(browser.driver.execute_async_script(SHOW, texts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a *b* **c** ~~e~~", "<p>a <em>b</em> <strong>c</strong> <del>e</del></p>"),
        ("***d***", "<p><em><strong>d</strong></em></p>"),
        ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
        ("*a **b***", "<p><em>a <strong>b</strong></em></p>"),
        ("snake_case_name 2*3*4 a * b", "<p>snake_case_name 2<em>3</em>4 a * b</p>"),
        ("**open", "<p>**open</p>"),
        (r"\*no\* `*code*` ``a`b``", "<p>*no* <code>*code*</code> <code>a`b</code></p>"),
        ("**[x]** and [y] *z*", "<p><strong>[x]</strong> and [y] <em>z</em></p>"),
        ("*a [b* c]", "<p><em>a [b</em> c]</p>"),
        ("one\ntwo", "<p>one<br>two</p>"),
        ("a &lt; b &amp; <br> c", "<p>a &lt; b &amp; <br> c</p>"),
        ("# One\n### Three #", "<h3>One</h3><h5>Three</h5>"),
        ("- a\n- b\n  - c\n\ntext", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>text</p>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("1. a\n\n2. b", "<ol><li><p>a</p></li><li><p>b</p></li></ol>"),
        ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
        ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
        ("text\n\n* * *", "<p>text</p><hr>"),
    ],
)  # fmt: skip
def test_markdown_is_shown(browser: Browser, url: str, text: str, expected: str) -> None:
    assert shown(browser, url, text) == expected


def test_code_blocks_keep_their_text(browser: Browser, url: str) -> None:
    made = shown(browser, url, "1. Do:\n   ```python\n   if a < b:\n       *x*\n   ```\n2. Then")
    assert "<span>python</span>" in made
    assert "<code>if a &lt; b:\n    *x*</code></pre></figure></li><li>Then</li></ol>" in made


def test_a_code_block_that_is_not_closed_yet_is_one(browser: Browser, url: str) -> None:
    assert "<code>a = 1\n\n# no heading</code>" in shown(browser, url, "```\na = 1\n\n# no heading")


def test_a_table_has_as_many_cells_as_its_head(browser: Browser, url: str) -> None:
    made = shown(browser, url, "| a | b |\n| :-: | --: |\n| `x\\|y` |\n| 1 | 2 | 3 |")
    assert made.count("<td") == 4
    assert '<th class="center">a</th><th class="end">b</th>' in made
    assert "<code>x|y</code>" in made


def test_text_that_grows_is_shown_like_text_that_came_at_once(browser: Browser, url: str) -> None:
    text = "# T\n\nSome *text*\nand more.\n\n- a\n- b\n\n  c\n\n"
    text += "| x | y |\n| - | - |\n| 1 | 2 |\n\n```js\nf()\n```\n\nEnd."
    grown = shown(browser, url, *(text[:end] for end in range(len(text) + 1)))
    assert grown == shown(browser, url, text)


def test_blocks_that_stay_the_same_keep_their_elements(browser: Browser, url: str) -> None:
    browser.get(url)
    kept = browser.driver.execute_async_script(
        "const [done] = arguments; import('/static/markdown.js').then(({showMarkdown}) => {"
        "const box = document.createElement('div'); showMarkdown(box, 'one\\n\\ntwo');"
        "const first = box.firstChild;"
        "showMarkdown(box, 'one\\n\\ntwo and more'); done(first === box.firstChild); })"
    )
    assert kept is True
