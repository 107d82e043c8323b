"""A key that is planted in every place that may hold one is found nowhere afterwards."""

from __future__ import annotations

import asyncio
import copy
import io
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lmclient import (
    AsyncClient,
    Client,
    CompletionRequest,
    Conversation,
    LMClientError,
    ModelProfile,
    Settings,
)
from lmclient.core.secrets import public_url
from lmclient.testing import FaultProvider

PLANTED = "planted-5ecret-0123456789"
KEY = f"sk-{PLANTED}"


def profile_at(url: str, **values: Any) -> ModelProfile:
    """A profile with secrets wherever one can stand."""
    return ModelProfile(
        **{
            "provider": "openai-chat",
            "model": "mock",
            "url": url,
            "api_key": KEY,
            "headers": {"x-api-key": KEY, "Authorization": f"Bearer {KEY}", "cookie": f"session={KEY}"},
            "extra_query": {"api_key": KEY, "sig": KEY},
            "extra_body": {"user_token": KEY, "nested": {"password": KEY}},
            **values,
        }
    )


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(data_dir=tmp_path, profiles_dir=tmp_path, retry={"attempts": 1})


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, by anyone, at any level."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def shown(value: object) -> str:
    """Everything that is usually printed of a value."""
    parts = [repr(value), str(value), f"{value}"]
    if hasattr(value, "__dict__"):
        parts.append(repr(vars(value)))
    if isinstance(value, BaseException):
        parts += traceback.format_exception(value)
        parts.append(repr(value.args))
    return "\n".join(parts)


def test_a_profile_shows_no_secret() -> None:
    """H02"""
    profile = profile_at("http://127.0.0.1:9/v1")
    assert PLANTED not in shown(profile)
    assert PLANTED not in repr(profile.model_dump())
    assert PLANTED not in profile.model_dump_json()
    assert PLANTED not in shown(copy.copy(profile))
    assert PLANTED not in shown(copy.deepcopy(profile))


def test_a_pickled_profile_holds_no_secret() -> None:
    """H02"""
    assert PLANTED.encode() not in pickle.dumps(
        profile_at("http://127.0.0.1:9/v1", extra_body={"token": KEY})
    )


def test_a_profile_that_is_wrong_shows_no_secret() -> None:
    with pytest.raises(LMClientError) as caught:
        profile_at("http://127.0.0.1:9", api_key=f"{KEY}\u00e9")
    assert PLANTED not in "".join(traceback.format_exception(caught.value))


def test_clients_show_no_secret(settings: Settings) -> None:
    """H02"""
    with Client(settings) as client:
        assert PLANTED not in shown(client)
    assert PLANTED not in shown(AsyncClient(settings))


def test_settings_show_no_password(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        proxy=f"http://user:{PLANTED}@127.0.0.1:9",
        spend={"url": f"postgresql://user:{PLANTED}@127.0.0.1/db"},
        rate_limit={"storage_url": f"redis://:{PLANTED}@127.0.0.1"},
    )
    assert PLANTED not in shown(settings)
    assert PLANTED not in shown(AsyncClient(settings))


@pytest.mark.parametrize("password", [f"{PLANTED}/x", f"x/{PLANTED}", f"?{PLANTED}#", f"a@{PLANTED}@b"])
@pytest.mark.parametrize("url", ["redis://:{}@127.0.0.1:6379/0", "postgresql://me:{}@127.0.0.1/db?sslmode=x"])
def test_a_password_that_is_not_escaped_is_not_shown(tmp_path: Path, url: str, password: str) -> None:
    given = url.format(password)
    settings = Settings(
        data_dir=tmp_path,
        spend={"url": given} if given.startswith("postgresql") else {},
        rate_limit={"storage_url": given} if given.startswith("redis") else {},
    )
    assert PLANTED not in shown(settings)
    assert PLANTED not in public_url(given)
    assert "127.0.0.1" in public_url(given)


def test_a_request_shows_no_secret() -> None:
    """H02"""
    profile = profile_at("http://127.0.0.1:9")
    request = CompletionRequest(profile=profile, conversation=Conversation.create("Hello"))
    assert PLANTED not in shown(request)
    assert PLANTED not in shown(copy.copy(request))


def test_a_preview_shows_no_secret(settings: Settings) -> None:
    """H02"""
    with Client(settings) as client:
        http = client.preview(profile_at("http://127.0.0.1:9"), "Hello")
    assert PLANTED not in shown(http)
    assert PLANTED in http.headers["authorization"]


# Errors


@asynccontextmanager
async def echoing(status: str) -> AsyncIterator[str]:
    """A server that repeats all that it got in its error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        text = head.decode().replace("\r\n", " ").replace('"', "'")
        body = f'{{"error":{{"message":"Got {text}","code":"{KEY}","type":"{KEY}"}}}}'
        headers = f"content-length: {len(body)}\r\nx-request-id: {KEY}\r\nconnection: close"
        writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("status", ["400 No", "401 No", "403 No", "429 No", "500 No", "200 OK"])
@pytest.mark.parametrize("call", ["complete", "stream", "models"])
async def test_an_error_that_echoes_the_request_shows_no_secret(
    settings: Settings, log: io.StringIO, status: str, call: str
) -> None:
    """H02"""
    async with echoing(status) as url, AsyncClient(settings) as client:
        profile = profile_at(url)
        calls: dict[str, Callable[[], Any]] = {
            "complete": lambda: client.complete(profile, "Hello"),
            "stream": lambda: client.stream(profile, "Hello").wait(),
            "models": lambda: client.models(profile),
        }
        with pytest.raises(LMClientError) as caught:
            await calls[call]()
    error = caught.value
    assert PLANTED not in shown(error)
    assert PLANTED.encode() not in pickle.dumps(error)
    assert PLANTED not in shown(copy.copy(error))
    assert PLANTED not in log.getvalue()


SCENARIOS = (
    "ok unauthorized bad_gateway_html error_in_200 error_event malformed_event truncated_json "
    "reset_before_headers reset_mid_stream cross_host_redirect hang rate_limited_forever"
)


@pytest.mark.parametrize("scenario", SCENARIOS.split())
@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_that_happens_to_a_call_shows_the_key(
    fault_provider: FaultProvider,
    settings: Settings,
    log: io.StringIO,
    capfd: pytest.CaptureFixture[str],
    scenario: str,
    stream: bool,
) -> None:
    """H02: with debug output of everything."""
    asyncio.get_running_loop().set_debug(True)
    profile = profile_at(
        fault_provider.url(scenario, key=f"secret{stream}"),
        extra_query={},
        timeouts={"first_byte": 0.2, "idle": 0.2},
    )
    seen: list[object] = [profile]
    async with AsyncClient(settings) as client:
        try:
            if stream:
                async with client.stream(profile, "Hello") as answer:
                    seen += [chunk async for chunk in answer]
                seen.append(answer)
                seen.append(answer.completion)
            else:
                seen.append(await client.complete(profile, "Hello"))
        except LMClientError as error:
            seen += [error, error.partial, error.__cause__, error.__context__]
        seen.append(client)
    output = capfd.readouterr()
    assert PLANTED not in "\n".join(map(shown, seen))
    assert PLANTED not in log.getvalue()
    assert PLANTED not in output.out + output.err


async def test_the_attempts_of_a_request_show_no_secret(
    fault_provider: FaultProvider, settings: Settings
) -> None:
    """H02"""
    requests: list[CompletionRequest] = []

    async def watch(request: CompletionRequest, call_next: Any) -> Any:
        requests.append(request)
        return await call_next(request)

    profile = profile_at(fault_provider.url("unauthorized", key="attempts"), extra_query={})
    async with AsyncClient(settings, interceptors=[watch]) as client:
        with pytest.raises(LMClientError):
            await client.complete(profile, "Hello")
    assert len(requests[0].attempts) == 1
    assert PLANTED not in shown(requests[0])
    assert PLANTED not in shown(requests[0].attempts[0].error)


async def test_an_unreachable_server_shows_no_secret(settings: Settings) -> None:
    """Also not the key in the query of the URL."""
    async with AsyncClient(settings) as client:
        with pytest.raises(LMClientError) as caught:
            await client.complete(profile_at("http://127.0.0.1:9/v1"), "Hello")
    assert PLANTED not in shown(caught.value)
    assert PLANTED not in shown(caught.value.__cause__)


def test_a_program_that_dies_of_an_error_shows_no_secret(
    fault_provider: FaultProvider, tmp_path: Path
) -> None:
    """H02: the whole traceback, with its chained causes and debug logging."""
    program = tmp_path / "program.py"
    program.write_text(
        "import logging, sys\n"
        "logging.basicConfig(level=logging.DEBUG)\n"
        "import lmclient\n"
        "key = sys.argv[1]\n"
        f"settings = lmclient.Settings(data_dir={str(tmp_path)!r}, profiles_dir={str(tmp_path)!r})\n"
        f"url = {fault_provider.url('unauthorized', key='program')!r}\n"
        "profile = lmclient.ModelProfile(provider='openai-chat', model='m', url=url, api_key=key)\n"
        "client = lmclient.Client(settings)\n"
        "print(client, profile, client.preview(profile, 'Hello'))\n"
        "client.complete(profile, 'Hello')\n"
    )
    run = subprocess.run(
        [sys.executable, "-X", "dev", str(program), KEY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AuthenticationError" in run.stderr
    assert PLANTED not in run.stdout + run.stderr
