"""The AI SDK's UI message stream, also read with the AI SDK itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lmclient.ui import vercel_ui_stream

PACKAGE = "ai@6.0.326"
SCRIPT = """
import { readUIMessageStream, parseJsonEventStream, uiMessageChunkSchema } from 'ai';
import { readFileSync } from 'node:fs';
const bytes = readFileSync(process.argv[2]);
const body = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(bytes)); c.close(); } });
const parsed = parseJsonEventStream({ stream: body, schema: uiMessageChunkSchema });
const chunks = parsed.pipeThrough(new TransformStream({
  transform(part, controller) {
    if (!part.success) throw part.error;
    controller.enqueue(part.value);
  },
}));
let message;
let problem = null;
const onError = (error) => { problem = error.message; };
for await (const state of readUIMessageStream({ stream: chunks, onError })) {
  message = state;
}
console.log(JSON.stringify({ message, problem }));
"""


def chunks_of(written: bytes) -> list[dict[str, Any]]:
    *texts, done, empty = written.decode().split("\n\n")
    assert (done, empty) == ("data: [DONE]", "")
    return [json.loads(text.removeprefix("data: ")) for text in texts]


async def test_chunks_come_in_the_protocols_order(whole: Any, read: Any) -> None:
    chunks = chunks_of(await read(vercel_ui_stream(whole.stream())))
    assert [chunk["type"] for chunk in chunks] == [
        "start",
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "tool-input-available",
        "tool-input-error",
        "finish-step",
        "finish",
    ]


async def test_the_end_says_why_and_what_it_cost(whole: Any, read: Any) -> None:
    finish = chunks_of(await read(vercel_ui_stream(whole.stream())))[-1]
    assert finish["finishReason"] == "tool-calls"
    assert finish["messageMetadata"]["usage"]["cost"] == 0.25
    assert finish["messageMetadata"]["profile"] == "small"


async def test_the_messages_id_may_be_given(whole: Any, read: Any) -> None:
    assert chunks_of(await read(vercel_ui_stream(whole.stream(), message_id="m1")))[0]["messageId"] == "m1"


async def test_an_error_closes_the_open_part(broken: Any, read: Any) -> None:
    *_, text_end, error = chunks_of(await read(vercel_ui_stream(broken.stream())))
    assert text_end["type"] == "text-end"
    assert error == {"type": "error", "errorText": "The line broke."}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the AI SDK is installed."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node or npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "read.mjs").write_text(SCRIPT)
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", PACKAGE]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return folder


def read_by_the_sdk(package: Path, written: bytes) -> dict[str, Any]:
    (package / "body").write_bytes(written)
    run = ["node", "read.mjs", "body"]
    done = subprocess.run(run, cwd=package, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


async def test_the_ai_sdk_reads_a_whole_message(package: Path, whole: Any, read: Any) -> None:
    message = read_by_the_sdk(package, await read(vercel_ui_stream(whole.stream())))["message"]
    step, reasoning, text, call, wrong_call = message["parts"]
    assert step["type"] == "step-start"
    assert (reasoning["text"], reasoning["state"]) == ("I must look.", "done")
    assert (text["text"], text["state"]) == ("Let me see \u2028 ✅.", "done")
    assert (call["type"], call["input"]) == ("tool-weather", {"city": "Bern"})
    assert wrong_call["state"] == "output-error"
    assert message["metadata"]["model"] == "mini"


async def test_the_ai_sdk_is_told_of_an_error(package: Path, broken: Any, read: Any) -> None:
    assert read_by_the_sdk(package, await read(vercel_ui_stream(broken.stream())))["problem"] == (
        "The line broke."
    )
