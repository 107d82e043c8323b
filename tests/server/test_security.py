"""Who may ask, from where, and what every answer carries."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lmclient import ConfigurationError, Settings, Usage
from lmclient.server import reading
from lmclient.server.serving import gateway, listen, open_gateway
from lmclient.testing import ScriptedModel

Serve = Callable[[Settings], str]
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
RED = "red-token-0123456789"
BLUE = "blue-token-012345678"
TOKENS = [
    {"name": "red", "token": RED, "tags": {"team": "red"}, "categories": ["M"]},
    {"name": "blue", "token": BLUE},
]


def ask(url: str, body: dict[str, Any] | None = None, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(f"{url}/chat/completions", json=body or BODY, headers=names)


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture
def guarded(model: ScriptedModel, serve: Serve, tmp_path: Path) -> str:
    """A gateway that has tokens."""
    model.reply("Hi", times=None)
    return serve(model.settings(tmp_path, server={"tokens": TOKENS}))


# Tokens


@pytest.mark.parametrize("given", ["", "Bearer wrong", f"Basic {RED}", f"Bearer {RED}x", RED, "Bearer \xff"])
def test_a_wrong_token_is_refused(guarded: str, given: str) -> None:
    answer = httpx2.post(
        f"{guarded}/chat/completions", json=BODY, headers=[(b"authorization", given.encode("latin-1"))]
    )
    assert code(answer) == (401, "invalid_api_key")


def test_a_right_token_passes(guarded: str) -> None:
    assert ask(guarded, authorization=f"Bearer {RED}").status_code == 200


@pytest.mark.parametrize("path", ["/v1/models", "/v1/nothing", "/elsewhere", "//", "/static/../v1/models"])
def test_everything_but_the_pages_files_needs_a_token(guarded: str, path: str) -> None:
    with socket.create_connection(("127.0.0.1", port_of(guarded))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split()[1] in (b"401", b"404")
    assert b"scripted" not in answer


def test_tags_of_a_token_win(guarded: str, model: ScriptedModel) -> None:
    body = {**BODY, "metadata": {"team": "blue", "token": "blue", "task": "x"}}
    ask(guarded, body, authorization=f"Bearer {RED}")
    assert model.requests[0].tags == {"team": "red", "token": "red", "task": "x"}


def test_a_token_is_held_to_its_categories(guarded: str) -> None:
    answer = ask(guarded, {**BODY, "model": "scripted"}, authorization=f"Bearer {RED}")
    assert code(answer) == (403, "model_not_allowed")


def test_a_token_sees_only_its_categories(guarded: str) -> None:
    models = httpx2.get(f"{guarded}/models", headers={"authorization": f"Bearer {RED}"}).json()["data"]
    assert [model["id"] for model in models] == ["m"]


def test_a_budget_of_a_token_counts_its_calls_only(
    model: ScriptedModel, serve: Serve, tmp_path: Path
) -> None:
    model.reply("Hi", times=None, usage=Usage(input_tokens=1, output_tokens=1))
    tokens = [{**TOKENS[0], "budgets": [{"name": "small", "amount": "0.01"}]}, TOKENS[1]]
    url = serve(model.settings(tmp_path, server={"tokens": tokens}))
    assert code(ask(url, authorization=f"Bearer {RED}")) == (429, "budget_exceeded")
    assert ask(url, authorization=f"Bearer {BLUE}").status_code == 200


def test_budgets_of_tokens_join_those_of_the_settings(model: ScriptedModel, tmp_path: Path) -> None:
    from lmclient.server.access import with_token_budgets

    own = [{"name": "all", "amount": "5"}]
    tokens = [{**TOKENS[0], "budgets": [{"name": "small", "amount": "0.01", "tags": {"task": "x"}}]}]
    settings = with_token_budgets(model.settings(tmp_path, server={"tokens": tokens}, spend={"budgets": own}))
    assert [budget.name for budget in settings.spend.budgets] == ["all", "small"]
    assert settings.spend.budgets[1].tags == {"task": "x", "token": "red"}
    assert settings.spend.budgets[1].amount == Decimal("0.01")


def test_tokens_do_not_show(model: ScriptedModel, tmp_path: Path) -> None:
    settings = model.settings(tmp_path, server={"tokens": TOKENS})
    assert RED not in repr(settings) + str(settings.model_dump_json())


@pytest.mark.parametrize("token", ["short", "with blanks in it 123", "ümlaut-0123456789abc"])
def test_a_token_that_is_easy_to_guess_or_cannot_be_sent(token: str) -> None:
    with pytest.raises(ConfigurationError, match=r"server\.tokens\.0\.token") as caught:
        Settings(server={"tokens": [{"name": "a", "token": token}]})
    assert token not in str(caught.value)


# Where it listens


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_listen_to_others_without_a_token(
    host: str, model: ScriptedModel, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"server\.tokens"):
        gateway(host, model.settings(tmp_path))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_loopback_needs_no_token(host: str, model: ScriptedModel, tmp_path: Path) -> None:
    gateway(host, model.settings(tmp_path))


def test_with_tokens_it_listens_to_others(model: ScriptedModel, tmp_path: Path) -> None:
    gateway("0.0.0.0", model.settings(tmp_path, server={"tokens": TOKENS}))


def test_a_port_that_is_taken() -> None:
    (first,) = listen("127.0.0.1", 0)
    with first, pytest.raises(ConfigurationError, match="cannot listen"):
        listen("127.0.0.1", first.getsockname()[1])


def test_a_host_that_does_not_exist(model: ScriptedModel, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no host"):
        gateway("host.invalid", model.settings(tmp_path))


# Host and Origin


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "[::2]:80", ""]
)
def test_a_foreign_host_is_refused(url: str, host: str) -> None:
    assert code(ask(url, host=host)) == (403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8080"])
def test_loopback_hosts_pass(url: str, model: ScriptedModel, host: str) -> None:
    model.reply("Hi")
    assert ask(url, host=host).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
def test_a_page_of_another_site_is_refused(url: str, origin: str) -> None:
    assert code(ask(url, origin=origin)) == (403, "origin_not_allowed")


def test_its_own_pages_pass(url: str, model: ScriptedModel) -> None:
    model.reply("Hi")
    assert ask(url, origin=url.removesuffix("/v1")).status_code == 200


def test_a_cross_site_request_without_an_origin_is_refused(url: str) -> None:
    answer = httpx2.get(
        f"{url}/models", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    )
    assert code(answer) == (403, "origin_not_allowed")


def test_hosts_and_origins_may_be_allowed(model: ScriptedModel, serve: Serve, tmp_path: Path) -> None:
    model.reply("Hi")
    server = {"allow_hosts": ["llm.example"], "allow_origins": ["https://app.example"]}
    url = serve(model.settings(tmp_path, server=server))
    answer = ask(url, host="llm.example", origin="https://app.example")
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "x-lmclient-cost" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize(("origin", "status"), [("https://app.example", 200), ("https://evil.example", 400)])
def test_preflights(model: ScriptedModel, serve: Serve, tmp_path: Path, origin: str, status: int) -> None:
    server = {"allow_origins": ["https://app.example"], "tokens": TOKENS}
    url = serve(model.settings(tmp_path, server=server))
    headers = {"origin": origin, "access-control-request-method": "POST"}
    assert httpx2.options(f"{url}/chat/completions", headers=headers).status_code == status


# Bounds, and what every answer carries


def test_a_body_that_is_too_large(model: ScriptedModel, serve: Serve, tmp_path: Path) -> None:
    url = serve(model.settings(tmp_path, server={"max_body": 1000}))
    big = {**BODY, "messages": [{"role": "user", "content": "x" * 1000}]}
    assert code(ask(url, big)) == (413, "request_too_large")


def test_a_body_of_unknown_length_that_is_too_large(
    model: ScriptedModel, serve: Serve, tmp_path: Path
) -> None:
    url = serve(model.settings(tmp_path, server={"max_body": 1000}))
    answer = httpx2.post(f"{url}/chat/completions", content=(b"x" * 100 for _ in range(20)))
    assert code(answer) == (413, "request_too_large")


def test_ten_mebibytes_are_the_default(model: ScriptedModel, tmp_path: Path) -> None:
    assert model.settings(tmp_path).server.max_body == 10 * 2**20


async def test_a_body_that_does_not_come(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READ_TIMEOUT", 0.05)
    async with open_gateway(model.settings(tmp_path)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
        writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
        status = await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        await writer.wait_closed()
    assert b"408" in status


@pytest.mark.parametrize("path", ["/v1/models", "/nothing"])
def test_every_answer_has_a_strict_content_security_policy(url: str, path: str) -> None:
    headers = httpx2.get(url.removesuffix("/v1") + path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


def test_the_server_does_not_say_what_it_is(url: str) -> None:
    assert "server" not in httpx2.get(f"{url}/models").headers


def test_a_header_cannot_be_smuggled_into_an_answer(url: str, model: ScriptedModel) -> None:
    model.reply("Hi")
    answer = ask(url, {**BODY, "metadata": {"a": "x\r\nset-cookie: evil=1"}})
    assert "set-cookie" not in answer.headers


def port_of(url: str) -> int:
    return int(json.loads(url.removesuffix("/v1").rpartition(":")[2]))
