"""One file of a Hugging Face repository, over HTTP.

The download URL is `<endpoint>/<owner>/<repository>/resolve/main/<file>`, which redirects to a
storage host and states the SHA-256 of large files in `X-Linked-Etag`
(https://huggingface.co/docs/hub/en/storage-backends, huggingface_hub's `file_download`).
`HF_ENDPOINT` names another endpoint, `HF_TOKEN` a token; proxies come from the environment.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from lmclient.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectError,
    NotFoundError,
    PermissionDeniedError,
    ProtocolError,
    ProviderError,
    ServerError,
    TimeoutError,
    TransportError,
)

_DEFAULT_ENDPOINT = "https://huggingface.co"
_SILENCE_SECONDS = 60.0
_PIECE = 1 << 20
_GGUF_MAGIC = b"GGUF"


def parse(name: str) -> tuple[str, ...]:
    """Owner, repository and the file's path as parts; each is safe as a name of a file.

    Raises `ConfigurationError` when `name` is not `OWNER/REPOSITORY/FILE`.
    """
    parts = tuple(name.split("/"))
    proper = all(re.fullmatch(r"[\w.+-]+", part, re.ASCII) and part.strip(".") for part in parts)
    if len(parts) < 3 or not proper or not name.endswith(".gguf"):
        raise ConfigurationError(
            f"'hf:{name}' is not a model of Hugging Face: expected 'hf:OWNER/REPOSITORY/FILE.gguf'"
        )
    return parts


def fetch(name: str, workspace: Path, progress: Callable[[int, int | None], None]) -> Path:
    """The file `OWNER/REPOSITORY/FILE`, in `workspace`.

    Its size, its hash (where the server states one) and the GGUF signature are checked.

    Raises `ConnectError` when the host cannot be reached, `TimeoutError` after 60 seconds without
    data, `TransportError` when the connection breaks, `ProviderError` when the server refuses, and
    `ProtocolError` when the content is not the stated one.
    """
    owner, repository, *path = parse(name)
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _DEFAULT_ENDPOINT
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise ConfigurationError(f"HF_ENDPOINT is {endpoint!r}: expected an http:// or https:// URL")
    url = f"{endpoint}/{owner}/{repository}/resolve/main/{quote('/'.join(path))}"
    redirects = _Redirects(url, os.environ.get("HF_TOKEN", ""))
    target = workspace / path[-1]
    with _open(url, redirects) as response:
        stated = response.headers.get("Content-Length")
        total = int(stated) if stated else None
        digest = _store(response, url, target, total, progress)
        sha256 = redirects.sha256 or _stated_sha256(response.headers)
    if sha256 and digest != sha256:
        raise ProtocolError(f"{url} has SHA-256 {digest} instead of {sha256}: refused, nothing was kept")
    with target.open("rb") as file:
        if file.read(len(_GGUF_MAGIC)) != _GGUF_MAGIC:
            raise ProtocolError(f"{url} is not a GGUF file: refused, nothing was kept")
    return target


def _open(url: str, redirects: _Redirects) -> HTTPResponse:
    request = redirects.authorized(Request(url))
    try:
        # build_opener adds the handler of the environment's proxies.
        response: HTTPResponse = build_opener(redirects).open(request, timeout=_SILENCE_SECONDS)
    except HTTPError as error:
        error.close()
        raise _refusal(error.code, url) from error
    except URLError as error:
        if isinstance(error.reason, builtins.TimeoutError):
            raise _silence(url) from error
        raise ConnectError(
            f"cannot reach {url}: {error.reason}; is a proxy or HF_ENDPOINT needed?"
        ) from error
    except builtins.TimeoutError as error:
        raise _silence(url) from error
    except (OSError, HTTPException) as error:
        raise ConnectError(f"no answer from {url}: {error!r}") from error
    return response


class _Redirects(HTTPRedirectHandler):
    """Follows redirects; the token stays within the origin of `url`, whose word on the hash counts."""

    def __init__(self, url: str, token: str) -> None:
        self._origin = urlsplit(url)[:2]
        self._token = token
        self.sha256 = ""

    def authorized(self, request: Request) -> Request:
        """`request` with the token, provided that it goes to the origin."""
        if self._token and urlsplit(request.full_url)[:2] == self._origin:
            # urllib copies every other header to the target of a redirect, wherever that is.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(req.full_url)[:2] == self._origin:
            self.sha256 = _stated_sha256(headers)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        return None if request is None else self.authorized(request)


def _stated_sha256(headers: HTTPMessage) -> str:
    """The SHA-256 in `X-Linked-Etag`, empty without one; small files have another kind of tag there."""
    tag: str = headers.get("X-Linked-Etag", "").strip('"')
    return tag if re.fullmatch(r"[0-9a-f]{64}", tag) else ""


def _store(
    response: HTTPResponse,
    url: str,
    target: Path,
    total: int | None,
    progress: Callable[[int, int | None], None],
) -> str:
    """Writes the body to `target`; returns its SHA-256 in lower-case hex."""
    digest = hashlib.sha256()
    done = 0
    progress(done, total)
    with target.open("wb") as sink:
        while piece := _read(response, url):
            digest.update(piece)
            sink.write(piece)
            done += len(piece)
            progress(done, total)
        sink.flush()
        os.fsync(sink.fileno())
    if total is not None and done != total:
        raise TransportError(f"{url} ended after {done} of {total} bytes: nothing was kept, try again")
    return digest.hexdigest()


def _read(response: HTTPResponse, url: str) -> bytes:
    try:
        return response.read(_PIECE)
    except builtins.TimeoutError as error:
        raise _silence(url) from error
    except (OSError, HTTPException) as error:
        raise TransportError(f"{url} broke off: {error!r}; nothing was kept, try again") from error


def _silence(url: str) -> TimeoutError:
    return TimeoutError(f"{url} sent nothing for {_SILENCE_SECONDS:.0f} s")


def _refusal(status: int, url: str) -> ProviderError:
    if status == 401:
        # Also the answer to a repository that does not exist, when asked without a token.
        reason = "no such repository, or it needs a valid token in HF_TOKEN"
        return AuthenticationError(f"{url} answered 401: {reason}", status=status)
    if status == 403:
        reason = "the token in HF_TOKEN has no access; accept the model's terms on its page first"
        return PermissionDeniedError(f"{url} answered 403: {reason}", status=status)
    if status == 404:
        return NotFoundError(f"{url} answered 404: no such file in this repository", status=status)
    kind = ServerError if status >= 500 else ProviderError
    return kind(f"{url} answered {status}: try again later", status=status)
