"""Proxies, TLS, redirects."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lmclient import AsyncClient, ConfigurationError, ModelProfile, ProtocolError, Settings, errors
from lmclient.testing.fault import TEXT

from .conftest import Fault
from .servers import answering, response, serving

FaultOf = Callable[[str], Fault]
KEY = "sk-planted-0123456789"


def settings_with(tmp_path: Path, **values: Any) -> Settings:
    return Settings(data_dir=tmp_path, profiles_dir=tmp_path, **values)


def profile_at(port: int, scheme: str = "http", **values: Any) -> ModelProfile:
    url = f"{scheme}://127.0.0.1:{port}"
    return ModelProfile(provider="openai-chat", model="mock", url=url, api_key=KEY, **values)


# Proxies


@contextlib.asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that answers for every server: its URL, and the requests that it got."""
    seen: list[bytes] = []

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append(request)
        writer.write(response())

    async with serving(handle) as port:
        yield f"http://127.0.0.1:{port}", seen


async def ask(client: AsyncClient, url: str) -> str:
    profile = ModelProfile(provider="openai-chat", model="mock", url=url, api_key=KEY)
    return (await client.complete(profile, "Hello")).text


async def test_the_proxy_of_the_settings_carries_the_requests(tmp_path: Path) -> None:
    async with proxy() as (url, seen), AsyncClient(settings_with(tmp_path, proxy=url)) as client:
        assert await ask(client, "http://llm.example/v1") == "hi"
    assert seen[0].startswith(b"POST http://llm.example/v1/chat/completions HTTP/1.1")


async def test_the_password_of_a_proxy_goes_to_the_proxy(tmp_path: Path) -> None:
    async with proxy() as (url, seen):
        settings = settings_with(tmp_path, proxy=url.replace("http://", "http://user:word@"))
        async with AsyncClient(settings) as client:
            await ask(client, "http://llm.example/v1")
    assert b"proxy-authorization: Basic dXNlcjp3b3Jk" in seen[0].replace(
        b"Proxy-Authorization", b"proxy-authorization"
    )


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_the_environments_proxy_carries_the_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with proxy() as (url, seen), AsyncClient(settings_with(tmp_path)) as client:
        monkeypatch.setenv(name, url)
        await ask(client, "http://llm.example/v1")
    assert len(seen) == 1


async def test_no_proxy_is_used_for_the_hosts_that_the_environment_excepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: FaultOf
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,.internal")
    async with proxy() as (url, seen), AsyncClient(settings_with(tmp_path)) as client:
        monkeypatch.setenv("HTTP_PROXY", url)
        assert await ask(client, fault("ok").url) == TEXT
    assert seen == []


async def test_the_settings_proxy_comes_before_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy() as (url, seen), AsyncClient(settings_with(tmp_path, proxy=url)) as client:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        await ask(client, "http://llm.example/v1")
    assert len(seen) == 1


async def test_an_unreachable_proxy_is_a_connect_error_without_its_password(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, proxy="http://user:planted-word@127.0.0.1:9")
    async with AsyncClient(settings, interceptors=[]) as client:
        with pytest.raises(errors.ConnectError) as caught:
            await ask(client, "http://llm.example/v1")
    assert "planted-word" not in str(caught.value)


async def test_a_proxy_that_refuses_the_tunnel_is_a_connect_error(tmp_path: Path) -> None:
    refusing = answering(response(b"no", "407 Proxy Authentication Required"))
    async with serving(refusing) as port:
        settings = settings_with(tmp_path, proxy=f"http://user:planted-word@127.0.0.1:{port}")
        async with AsyncClient(settings, interceptors=[]) as client:
            with pytest.raises(errors.ConnectError, match="407") as caught:
                await ask(client, "https://llm.example/v1")
    assert "planted-word" not in str(caught.value)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only itself vouches for, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout key.pem -out cert.pem"
    )
    try:
        subprocess.run(command.split(), cwd=directory, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("the openssl command makes the certificate")
    return directory / "cert.pem", directory / "key.pem"


@contextlib.asynccontextmanager
async def https(certificate: tuple[Path, Path]) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with serving(answering(response()), context) as port:
        yield port


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    async with (
        https(certificate) as port,
        AsyncClient(settings_with(tmp_path), interceptors=[]) as client,
    ):
        with pytest.raises(errors.ConnectError, match="ca_bundle"):
            await client.complete(profile_at(port, "https"), "Hello")


async def test_a_ca_bundle_vouches_for_a_server(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    async with (
        https(certificate) as port,
        AsyncClient(settings_with(tmp_path, ca_bundle=certificate[0])) as client,
    ):
        assert (await client.complete(profile_at(port, "https"), "Hello")).text == "hi"


async def test_certificates_are_not_checked_on_demand(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    async with https(certificate) as port, AsyncClient(settings_with(tmp_path, tls_verify=False)) as client:
        assert (await client.complete(profile_at(port, "https"), "Hello")).text == "hi"


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_an_unusable_ca_bundle_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "bundle.pem"
    if content is not None:
        file.write_text(content)
    async with AsyncClient(settings_with(tmp_path, ca_bundle=file)) as client:
        with pytest.raises(ConfigurationError, match=r"bundle\.pem"):
            await client.complete(profile_at(9, "https"), "Hello")


# Redirects


def redirect(location: str, status: str = "307 Temporary Redirect") -> bytes:
    return response(b"", status, f"location: {location}")


async def test_a_redirect_to_another_port_drops_the_key_and_the_profiles_headers(client: AsyncClient) -> None:
    seen: list[bytes] = []
    async with (
        serving(answering(response(), seen=seen)) as other,
        serving(answering(redirect(f"http://127.0.0.1:{other}/v1/chat/completions"))) as port,
    ):
        profile = profile_at(port, headers={"x-team": "planted-team", "cookie": "planted-cookie"})
        await client.complete(profile, "Hello")
    assert KEY.encode() not in seen[0]
    assert b"planted" not in seen[0]


async def test_a_redirect_keeps_the_body(client: AsyncClient) -> None:
    seen: list[bytes] = []
    async with serving(answering(redirect("/elsewhere"), response(), seen=seen)) as port:
        await client.complete(profile_at(port), "Hello")
    first, second = (request.partition(b"\r\n\r\n")[2] for request in seen)
    assert first == second
    assert seen[1].startswith(b"POST /elsewhere ")


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "303 See Other"])
async def test_a_redirect_that_drops_the_body_is_an_error_with_the_new_place(
    client: AsyncClient, status: str
) -> None:
    async with serving(answering(redirect("https://llm.example/v1", status))) as port:
        with pytest.raises(ProtocolError, match=r"https://llm\.example"):
            await client.complete(profile_at(port), "Hello")


async def test_redirects_in_a_circle_end(client: AsyncClient) -> None:
    seen: list[bytes] = []
    async with serving(answering(redirect("/again"), seen=seen)) as port:
        with pytest.raises(ProtocolError, match="redirected more than"):
            await client.complete(profile_at(port), "Hello")
    assert len(seen) == 4


@pytest.mark.parametrize("location", ["ftp://llm.example/", "http://", "http://[::1", "file:///etc/passwd"])
async def test_a_redirect_to_nowhere_is_an_error(client: AsyncClient, location: str) -> None:
    async with serving(answering(redirect(location))) as port:
        with pytest.raises(ProtocolError, match="redirect"):
            await client.complete(profile_at(port), "Hello")


async def test_a_redirect_without_a_location_is_an_error(client: AsyncClient) -> None:
    async with serving(answering(response(b"", "307 Temporary Redirect"))) as port:
        with pytest.raises(errors.LMClientError, match="307"):
            await client.complete(profile_at(port), "Hello")


# Connections


async def test_a_connection_that_the_server_has_closed_is_replaced(client: AsyncClient) -> None:
    """Each response says `connection: close`; the next call opens another one."""
    async with serving(answering(response())) as port:
        for _ in range(3):
            assert (await client.complete(profile_at(port), "Hello")).text == "hi"


async def test_a_server_that_talks_no_http_is_a_connect_error(tmp_path: Path) -> None:
    async with (
        serving(answering(b"SSH-2.0-OpenSSH_9.6\r\n")) as port,
        AsyncClient(settings_with(tmp_path), interceptors=[]) as client,
    ):
        with pytest.raises(errors.ConnectError, match="No answer from"):
            await client.complete(profile_at(port), "Hello")


async def test_https_to_a_plain_server_is_a_connect_error(tmp_path: Path) -> None:
    async with (
        serving(answering(response())) as port,
        AsyncClient(settings_with(tmp_path), interceptors=[]) as client,
    ):
        with pytest.raises(errors.ConnectError):
            await client.complete(profile_at(port, "https", timeouts={"connect": 0.2}), "Hello")


async def test_nobody_listening_is_a_connect_error_that_names_the_server(tmp_path: Path) -> None:
    async with AsyncClient(settings_with(tmp_path), interceptors=[]) as client:
        with pytest.raises(errors.ConnectError, match=r"Cannot connect to http://127\.0\.0\.1:9: "):
            await client.complete(profile_at(9), "Hello")


async def test_a_host_that_does_not_exist_is_a_connect_error(tmp_path: Path) -> None:
    async with AsyncClient(settings_with(tmp_path), interceptors=[]) as client:
        with pytest.raises(errors.ConnectError, match=r"host\.invalid"):
            await ask(client, "http://host.invalid/v1")
