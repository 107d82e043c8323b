"""What becomes of control tokens that stand in the text of a conversation.

A tokenizer reads `<|im_end|>` in a prompt as a control token wherever it stands, so a user could
forge the end of a turn. Three treatments:

- "escape" (default): a zero-width space (U+200B) is put behind the first character of the token.
  The tokenizer then sees ordinary characters; a reader, and the model, see the text unchanged.
- "reject": `BadRequestError`, naming the token and the turn.
- "allow": the text goes into the prompt as it is. Only for texts that the application wrote.

The plain-text turn markers of formats without control tokens (`USER:`) are treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

from lmclient.errors import BadRequestError

Treatment = Literal["escape", "reject", "allow"]
BREAK = "\u200b"


def token_pattern(tokens: Iterable[str], *patterns: str) -> re.Pattern[str] | None:
    """What finds each of the tokens, and what matches one of the patterns; None if there are none."""
    longest_first = sorted(
        {token for token in tokens if len(token) > 1}, key=lambda token: (-len(token), token)
    )
    alternatives = [*map(re.escape, longest_first), *patterns]
    return re.compile("|".join(alternatives)) if alternatives else None


def treat(text: str, pattern: re.Pattern[str] | None, treatment: Treatment, where: str) -> str:
    """The text as it may stand in a prompt. `where` names the turn in the message of the error.

    Raises `BadRequestError` under "reject" if the text has such a token, and for a treatment that
    does not exist.
    """
    if treatment not in get_args(Treatment):
        raise BadRequestError(
            f"special_tokens is {treatment!r}; use one of {', '.join(map(repr, get_args(Treatment)))}."
        )
    if pattern is None or treatment == "allow":
        return text
    found = pattern.search(text)
    while found:
        if treatment == "reject":
            raise BadRequestError(
                f"{where} contains the control token {found[0]!r}; take it out, "
                'or set special_tokens = "escape".'
            )
        text = pattern.sub(_broken, text)
        # Once more only where two tokens overlapped.
        found = pattern.search(text)
    return text


def _broken(match: re.Match[str]) -> str:
    token = match[0]
    return token[0] + BREAK + token[1:]
