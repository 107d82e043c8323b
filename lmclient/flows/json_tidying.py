"""Tidies broken JSON outside of its strings, where json-repair would lose or misread something."""

from __future__ import annotations

import html
import json
import re

_STRING = "\0"
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`", "„": "“", "«": "»"}
_OUTSIDE = re.compile(r"""["'“‘`„«]|//|/\*|\#|\s+|[^"'“‘`„«/\#\s]+|/""")
_AFTER_VALUE = re.compile(r"[^\S\n]*+(?:\n\s*+[\"'}\]]|\s*+(?:[,:}\];=+#：，]|\\[}\]]|//|/\*|\Z))")
_JOINED = re.compile(r"\s*\+\s*(?=[\"'])")
_NEXT_NAME = re.compile(r"(?<![{\[(\s,]),?[^\S\n]*+\n\s*+\"[^\"\n]{1,80}\Z")
"""What stands between a text that nobody closed and the closing quote of the next name."""
_UNCLOSED_ITEM = re.compile(
    r"[^\"\n,]{1,80}(?=,\s*\"[^\",\n]*\"\s*[,\]])"  # the next item
    r"|[^\"\n\]]{1,80}(?=\]\s*,\s*\"[^\"\n]{1,80}\"\s*:)"  # the end of the array, and the next name
)
_CUT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_CUT_WORDS = {
    **{"true"[:n]: "true" for n in (1, 2, 3)},
    **{"false"[:n]: "false" for n in (1, 2, 3, 4)},
    **{"null"[:n]: "null" for n in (1, 2, 3)},
}

_END = r"(?=\s*(?:[,}\]\0]|\Z))"
_EDITS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"，"), ","),
    (re.compile(r"\0\s*;"), "\0,"),
    (re.compile(r",(?:\s*,)+"), ","),
    (re.compile(r"\0\s*:(?:\s*:)+"), "\0:"),
    (re.compile(r"\0\s*(?:=>|=(?!=)|：)\s*"), "\0: "),
    (re.compile(r"(?<=[:\[,])(\s*)(?:undefined|[-+]?NaN|[-+]?Infinity|nil|N/A)" + _END), r"\1null"),
    (re.compile(r"(?<=[:\[,])(\s*)(?:True|TRUE)" + _END), r"\1true"),
    (re.compile(r"(?<=[:\[,])(\s*)(?:False|FALSE)" + _END), r"\1false"),
    (re.compile(r"(?<=[:\[,])(\s*)(?:None|NULL)" + _END), r"\1null"),
    (re.compile(r":\s*(?:\.\.\.|…)" + _END), ": null"),
    (re.compile(r",\s*(?:\.\.\.|…)\s*(?=,)"), ""),
    (re.compile(r":(\s*)(?=[,}]|\Z)"), r": null\1"),
    (re.compile(r",(\s*[}\]])"), r"\1"),
    (re.compile(r"([{\[]\s*),"), r"\1"),
    (re.compile(r"([{,]\s*+)([^\W\d][\w$-]*+(?: [\w$-]++){0,3})\s*:(?!//)"), r'\1"\2":'),
)
_THOUSANDS = re.compile(r":\s*([-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?)(?=\s*(?:,\s*[\0\w]|\}))")
_HEX = re.compile(r"(?<=[:\[,])(\s*)0[xX]([0-9a-fA-F]+)" + _END)
_BARE = re.compile(
    r"(:[^\S\n]*+)([^\s\0{}\[\](),][^\0{}\[\](),\n]*+)(?=[,}\]\n]|\Z)"  # after a name
    r"|([\[,]\s*+)([$€£¥+-]?\d[^\0{}\[\](),:\n]*+)(?=[,\]])"  # in an array
)
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")
_ESCAPED_SPACE = re.compile(r"(?<=[{}\[\],:\0])(?:\s|\\[nrt])++(?=[\0{}\[\]])")
_ODD_SPACE = re.compile("[^\\S\n\t\r ]|[\u200b\ufeff\\\\]")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\(?![\\/])")


def tidied(text: str) -> str:
    """The text with its strings in double quotes, and without comments and doubled commas.

    Values that are missing or no value (`undefined`, `NaN`, `...`) are null, bare words and amounts with
    a unit are strings, and what was cut off at the end is completed.
    """
    if "&quot;" in text:
        text = html.unescape(text)
    skeleton, strings = _split(text.replace(_STRING, ""))
    skeleton = _cut_word(_ODD_SPACE.sub(" ", _ESCAPED_SPACE.sub(" ", skeleton)))
    for pattern, replacement in _EDITS:
        skeleton = pattern.sub(replacement, skeleton)
    skeleton = _THOUSANDS.sub(lambda match: ": " + match[1].replace(",", ""), skeleton)
    skeleton = _HEX.sub(lambda match: match[1] + str(int(match[2][:16], 16)), skeleton)
    skeleton = _BARE.sub(_quoted, skeleton)
    parts = skeleton.split(_STRING)
    whole = [parts[0]]
    for string, part in zip(strings, parts[1:], strict=True):
        whole += (string, part)
    return "".join(whole)


def _quoted(match: re.Match[str]) -> str:
    """A bare value as it is if it is a number or literal, else in quotes."""
    before, value = (match[1], match[2]) if match[1] else (match[3], match[4])
    value = value.strip().rstrip(";").rstrip()
    if value == "-":
        return f"{before}null"
    if value in ("true", "false", "null") or _NUMBER.match(value):
        return before + value
    return before + json.dumps(value, ensure_ascii=False)


def _split(text: str) -> tuple[str, list[str]]:
    """The text with a mark for each string and no comments, and the strings as they go back in."""
    outside: list[str] = []
    strings: list[str] = []
    position = 0
    last = ""  # the last character outside that is no white space
    while position < len(text):
        token = _OUTSIDE.match(text, position)
        assert token is not None
        piece, position = token.group(), token.end()
        if piece in _CLOSING and (piece == '"' or last in "{[,:=(：，" or (last in "}]\0" and piece != "'")):
            string, position = _string(text, token.start(), last)
            strings.append(string)
            outside.append(_STRING)
            last = _STRING
        elif piece in ("//", "/*", "#") and _is_comment(text, token.start(), last):
            position = _behind_comment(text, piece, position)
        else:
            outside.append(piece)
            last = piece[-1] if not piece.isspace() else last
    return "".join(outside), strings


def _is_comment(text: str, start: int, last: str) -> bool:
    """Whether `//`, `/*` or `#` begins a comment here rather than a bare URL or colour."""
    directly_before, behind = text[max(start - 1, 0) : start], text[start + 1 : start + 2]
    if text[start] == "#":
        return last in "{[,}]\0" or (last == ":" and behind.isspace())
    return directly_before != ":" or not text[max(start - 2, 0) : start - 1].isalpha()


def _behind_comment(text: str, opening: str, position: int) -> int:
    end = text.find("*/" if opening == "/*" else "\n", position)
    if end < 0:
        return len(text)
    return end + 2 if opening == "/*" else end


def _string(text: str, start: int, last: str) -> tuple[str, int]:
    """The string that begins at `start` behind `last`, in double quotes if it can be, and where it ends."""
    opening = text[start]
    if opening == '"' and last in "[," and (item := _UNCLOSED_ITEM.match(text, start + 1)) is not None:
        return f'"{item.group()}"', item.end()
    if text.startswith((opening * 3), start) and opening in "\"'":
        tripled = text.find(opening * 3, start + 3)
        if tripled >= 0:
            return json.dumps(text[start + 3 : tripled], ensure_ascii=False), tripled + 3
    end = _closing_quote(text, start)
    if end is None:  # cut off
        cut = _CUT_ESCAPE.search(text, start + 1)
        rest = text[start + 1 :] if cut is None else text[start + 1 : cut.start(1)]
        return opening + rest, len(text)
    if opening == '"' and last == ":" and text[end + 1 : end + 10].lstrip().startswith(":"):
        # It ends a name, so the text before was not closed.
        name = _NEXT_NAME.search(text, start + 1, end)
        if name is not None:
            return f'"{text[start + 1 : name.start()]}",', name.start() + name.group().index("\n")
    content = _unescaped(text[start + 1 : end])
    behind = end + 1
    if opening != '"':
        quoted = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', content)
        return f'"{quoted}"'.replace("\\'", "'"), behind
    joined = _JOINED.match(text, behind)
    if joined is not None:
        following, after = _one_more(text, joined.end())
        return f'"{content}{following}', after
    return f'"{content}"', behind


def _unescaped(content: str) -> str:
    """The content of a string without the escapes of Markdown, and with those that a path lacks."""
    if _WINDOWS_PATH.match(content) and "\\\\" not in content:
        return content.replace("\\", "\\\\")
    return re.sub(r"(?<!\\)\\_", "_", content)


def _one_more(text: str, start: int) -> tuple[str, int]:
    """The string that a `+` joins to the one before, without its opening quote."""
    end = _closing_quote(text, start)
    if end is None:
        return text[start + 1 :], len(text)
    return f'{text[start + 1 : end]}"', end + 1


def _closing_quote(text: str, start: int) -> int | None:
    """Where the quote stands that closes this one: the first that something follows which ends a value."""
    opening = text[start]
    closing = _CLOSING[opening]
    candidates = closing + ('"' if opening in "“„" else "") + ("”" if opening == "„" else "")
    pattern = re.compile(rf"\\.|[{re.escape(candidates)}]", re.DOTALL)
    for token in pattern.finditer(text, start + 1):
        if token.group()[0] != "\\" and _AFTER_VALUE.match(text, token.end()):
            return token.start()
    return None


def _cut_word(skeleton: str) -> str:
    """The text with a literal that was cut off at its end completed."""
    cut = re.search(r":\s*([a-z]+)\Z", skeleton)
    if cut is None or cut[1] not in _CUT_WORDS:
        return skeleton
    return skeleton[: cut.start(1)] + _CUT_WORDS[cut[1]]
