"""How long a provider asks to wait, whatever its headers hold."""

from __future__ import annotations

import pytest

from lmclient.providers.retry_after import retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0),
        ("-1", None),
        ("nan", None),
        ("abc", None),
        ("", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
    ],
)
def test_only_what_is_a_time_is_believed(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}) == seconds


def test_milliseconds_are_more_exact_than_seconds() -> None:
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
