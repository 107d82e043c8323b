"""The embedded server with the real model: answers, streams, tokens, cancellation, one per process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lmclient.errors import ConfigurationError
from lmclient.providers.local import server

QUESTION = [{"role": "user", "content": "Name a colour."}]
ENDLESS = {"messages": QUESTION, "stream": True, "ignore_eos": True, "max_tokens": 100_000}


@pytest.fixture
async def http(local_url: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(local_url) as session:
        yield session


async def post(http: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    async with http.post(path, json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def events(http: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> list[Any]:
    async with http.post(path, json={**body, "stream": True}) as response:
        lines = (await response.text()).splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(event) for event in data if event != "[DONE]"]


async def busy_slots(http: aiohttp.ClientSession) -> int:
    async with http.get("/slots") as response:
        return sum(slot["is_processing"] for slot in await response.json())


async def wait_until_idle(http: aiohttp.ClientSession) -> None:
    while await busy_slots(http):
        pass  # the server answers between two steps of the model, which paces this loop


def run_python(code: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


async def test_chat_answers_and_counts_tokens(http: aiohttp.ClientSession) -> None:
    answer = await post(http, "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 4})
    assert answer["choices"][0]["message"]["content"]
    assert answer["model"] == "smollm2"
    assert answer["usage"]["completion_tokens"] == 4
    assert answer["usage"]["prompt_tokens"] > 4


async def test_chat_streams_pieces_and_counts_tokens_at_the_end(http: aiohttp.ClientSession) -> None:
    body = {"messages": QUESTION, "max_tokens": 4, "stream_options": {"include_usage": True}}
    *chunks, last = await events(http, "/v1/chat/completions", body)
    assert sum(1 for chunk in chunks if chunk["choices"][0]["delta"].get("content")) == 4
    assert last["usage"]["completion_tokens"] == 4
    assert last["timings"]["predicted_n"] == 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/completion", {"prompt": "Once", "n_predict": 2}),
        ("/v1/completions", {"prompt": "Once", "max_tokens": 2}),
        ("/v1/messages", {"messages": QUESTION, "max_tokens": 2}),
        ("/v1/responses", {"input": "Hello", "max_output_tokens": 2}),
    ],
)
async def test_other_protocols_answer_and_stream(
    http: aiohttp.ClientSession, path: str, body: dict[str, Any]
) -> None:
    assert await post(http, path, body)
    assert len(await events(http, path, body)) > 2


async def test_tokenizes_with_the_model_of_the_server(http: aiohttp.ClientSession) -> None:
    assert (await post(http, "/tokenize", {"content": "Hello world"}))["tokens"] == [19556, 905]
    assert (await post(http, "/detokenize", {"tokens": [19556, 905]}))["content"] == "Hello world"


async def test_each_call_gets_the_whole_context_of_the_model(http: aiohttp.ClientSession) -> None:
    async with http.get("/props") as response:
        properties = await response.json()
    assert properties["default_generation_settings"]["n_ctx"] == 8192
    assert properties["total_slots"] == 2


@pytest.mark.slow
async def test_two_callers_are_computed_at_once(http: aiohttp.ClientSession) -> None:
    async with (
        http.post("/v1/chat/completions", json=ENDLESS) as first,
        http.post("/v1/chat/completions", json=ENDLESS) as second,
    ):
        await first.content.readline()
        await second.content.readline()
        assert await busy_slots(http) == 2
    await asyncio.wait_for(wait_until_idle(http), 30)


async def test_closing_the_connection_in_mid_stream_stops_the_model(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/chat/completions", json=ENDLESS) as response:
        await response.content.readline()
        assert await busy_slots(http) == 1
        response.close()
    # Undisturbed it would go on to the end of the context, 8,000 tokens away.
    await asyncio.wait_for(wait_until_idle(http), 30)


@pytest.mark.slow
async def test_closing_the_connection_while_the_prompt_is_read_stops_the_model(
    http: aiohttp.ClientSession,
) -> None:
    long = {
        "messages": [{"role": "user", "content": "word " * 7000}],
        "stream": True,
        "return_progress": True,
    }
    async with http.post("/v1/chat/completions", json=long) as response:
        await response.content.readline()
        assert await busy_slots(http) == 1
        response.close()
    await asyncio.wait_for(wait_until_idle(http), 30)


def test_many_threads_share_one_server(smollm2_file: Path, local_url: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        urls = set(threads.map(server.start, [smollm2_file] * 32))
    assert urls == {local_url}


async def test_event_loops_get_the_same_server(smollm2_file: Path, local_url: str) -> None:
    assert await asyncio.gather(*[server.base_url(smollm2_file) for _ in range(8)]) == [local_url] * 8


async def test_a_stated_context_is_what_each_call_gets(smollm2_file: Path, local_url: str) -> None:
    url = await server.base_url(smollm2_file, n_ctx=1024)
    assert url != local_url
    async with aiohttp.ClientSession(url) as http, http.get("/props") as response:
        assert (await response.json())["default_generation_settings"]["n_ctx"] == 1024


@pytest.fixture
def other_file(smollm2_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(smollm2_file, tmp_path / "other.gguf"))


@pytest.mark.slow
async def test_another_model_gets_another_server(other_file: Path) -> None:
    url = await server.base_url(other_file, n_ctx=512)
    async with aiohttp.ClientSession(url) as http, http.get("/v1/models") as response:
        assert (await response.json())["data"][0]["id"] == "other"


@pytest.mark.slow
def test_process_ends_at_once_and_silently_although_an_answer_is_under_way(smollm2_file: Path) -> None:
    code = """
        import json, sys, urllib.request
        from pathlib import Path
        from lmclient.providers.local import server
        url = server.start(Path(sys.argv[1])) + "/completion"
        body = json.dumps({"prompt": "Once", "stream": True, "ignore_eos": True}).encode()
        answer = urllib.request.urlopen(urllib.request.Request(url, body))
        answer.readline()
        print("streaming")
        sys.exit(3)
    """
    outcome = run_python(code, str(smollm2_file), timeout=25)  # a waiting end would take 30 s and more
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (3, "streaming\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_uses_the_server_of_its_parent_and_exits_with_its_own_status(smollm2_file: Path) -> None:
    code = """
        import os, sys
        from pathlib import Path
        from lmclient.providers.local import server
        url = server.start(Path(sys.argv[1]))
        child = os.fork()
        if child == 0:
            sys.exit(7 if server.start(Path(sys.argv[1])) == url else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), server.start(Path(sys.argv[1])) == url)
    """
    outcome = run_python(code, str(smollm2_file))
    assert (outcome.returncode, outcome.stdout) == (0, "7 True\n"), outcome.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_starts_its_own_server_when_the_parent_is_gone(smollm2_file: Path) -> None:
    code = """
        import json, os, sys, urllib.request
        from pathlib import Path
        from lmclient.providers.local import server
        model = Path(sys.argv[1])
        url = server.start(model)
        parent_ended, parent_holds = os.pipe()
        if os.fork():
            sys.exit()
        os.close(parent_holds)
        os.read(parent_ended, 1)
        own = server.start(model)
        body = json.dumps({"prompt": "Once", "n_predict": 2}).encode()
        answer = json.load(urllib.request.urlopen(urllib.request.Request(own + "/completion", body)))
        print(own != url, answer["tokens_predicted"])
    """
    outcome = run_python(code, str(smollm2_file))
    assert outcome.stdout == "True 2\n", outcome.stderr


def test_missing_extra_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'lmclient\[local\]'"):
        server.start(tmp_path / "model.gguf")


@pytest.mark.parametrize("content", [b"<html>", b"GGUF and then nothing of the kind"])
def test_file_that_is_no_model_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"broken\.gguf"):
        server.start(broken)


def test_import_does_not_load_llama_cpp() -> None:
    code = "import sys, lmclient.providers.local.server; print('xllamacpp' in sys.modules)"
    assert run_python(code).stdout == "False\n"
