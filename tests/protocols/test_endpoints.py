"""The rule for URLs, a row each, and the headers of a request."""

from __future__ import annotations

from typing import Any

import pytest

from lmclient import ModelProfile
from lmclient.protocols.dialect import Dialect
from lmclient.protocols.endpoints import endpoint_url, request_headers
from lmclient.protocols.openai_chat import OpenAIChat

CHAT = "/chat/completions"


def url_of(url: str, endpoint: str = CHAT, **values: Any) -> str:
    profile = ModelProfile(provider="openai-chat", model="m", url=url, **values)
    return endpoint_url(profile, OpenAIChat(), Dialect(url="https://vendor.example/v1"), endpoint)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://llm.example", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/", "https://llm.example/v1/chat/completions"),
        ("https://llm.example//", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1/", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1//", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1/chat/completions", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1/chat/completions/", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/chat/completions", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v10", "https://llm.example/v10/chat/completions"),
        ("https://llm.example/v1beta", "https://llm.example/v1beta/chat/completions"),
        ("https://llm.example/openai/v1", "https://llm.example/openai/v1/chat/completions"),
        ("https://llm.example/api/paas/v4", "https://llm.example/api/paas/v4/chat/completions"),
        ("https://llm.example/a%2Fb/v1", "https://llm.example/a%2Fb/v1/chat/completions"),
        ("https://llm.example:8443", "https://llm.example:8443/v1/chat/completions"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("HTTPS://llm.example/v1", "https://llm.example/v1/chat/completions"),
        ("https://llm.example/v1?x=1", "https://llm.example/v1/chat/completions?x=1"),
        ("https://llm.example/v1/?x=1&y=", "https://llm.example/v1/chat/completions?x=1&y="),
        ("https://llm.example?x=a%20b", "https://llm.example/v1/chat/completions?x=a%20b"),
        ("https://llm.example/v1#part", "https://llm.example/v1/chat/completions"),
        (" https://llm.example/v1 ", "https://llm.example/v1/chat/completions"),
        ("", "https://vendor.example/v1/chat/completions"),
    ],
)
def test_the_endpoint_stands_where_the_rule_says(given: str, sent: str) -> None:
    """I06"""
    assert url_of(given) == sent


@pytest.mark.parametrize("given", ["https://llm.example", "https://llm.example/v1/chat/completions/"])
def test_the_models_stand_beside_the_endpoint(given: str) -> None:
    """I06"""
    assert url_of(given, "/models") == "https://llm.example/v1/models"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://llm.example/v1", "api-version=2025-01-01"),
        ("https://llm.example/v1?x=1", "x=1&api-version=2025-01-01"),
        ("https://llm.example/v1?x=", "x=&api-version=2025-01-01"),
    ],
)
def test_the_profiles_query_is_added(given: str, sent: str) -> None:
    """I06"""
    query = {"api-version": "2025-01-01"}
    assert url_of(given, extra_query=query) == f"https://llm.example/v1/chat/completions?{sent}"


def test_the_profiles_query_is_encoded() -> None:
    assert url_of("https://llm.example", extra_query={"q": "a&b=c d"}).endswith("?q=a%26b%3Dc+d")


# Headers


def headers_of(dialect: Dialect, **values: Any) -> dict[str, str]:
    return request_headers(ModelProfile(provider="openai-chat", model="m", **values), dialect)


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ("bearer", "authorization", "Bearer sk-1234"),
        ("api-key", "api-key", "sk-1234"),
        ("x-api-key", "x-api-key", "sk-1234"),
        ("x-goog-api-key", "x-goog-api-key", "sk-1234"),
    ],
)
def test_the_key_stands_where_the_vendor_looks_for_it(auth: Any, header: str, value: str) -> None:
    headers = headers_of(Dialect(auth=auth), api_key="sk-1234")
    assert [(name, text) for name, text in headers.items() if "sk-1234" in text] == [(header, value)]


@pytest.mark.parametrize("key", [None, "", "  "])
def test_no_key_is_no_header(key: str | None) -> None:
    assert "authorization" not in headers_of(Dialect(), api_key=key)


def test_the_profiles_headers_win_whatever_their_case() -> None:
    headers = headers_of(
        Dialect(), api_key="sk-1234", headers={"Authorization": "Basic x", "User-Agent": "mine"}
    )
    assert (headers["authorization"], headers["user-agent"]) == ("Basic x", "mine")
    assert "Authorization" not in headers


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "é", "\x00"])
def test_a_header_that_would_break_the_request_is_refused(value: str) -> None:
    from lmclient import ProfileError

    with pytest.raises(ProfileError):
        headers_of(Dialect(), headers={"x-team": value})
