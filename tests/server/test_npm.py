"""OpenAI's own client for JavaScript against the gateway, unchanged."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lmclient import ToolCall, Usage
from lmclient.testing import ScriptedModel

PACKAGE = "openai@6.49.0"
SCRIPT = """
import OpenAI from 'openai';
const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
const messages = [{ role: 'user', content: 'Hello' }];
const parameters = { type: 'object', properties: {} };
const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
const out = {};

const whole = await client.chat.completions.create({ model: 'm', messages });
const said = whole.choices[0].message;
out.whole = [said.content, said.reasoning_content, whole.usage.total_tokens];

const pieces = [];
let last;
const options = { include_usage: true };
for await (const chunk of await client.chat.completions.create(
    { model: 'm', messages, stream: true, stream_options: options })) {
  pieces.push(chunk.choices[0]?.delta.content ?? '');
  last = chunk;
}
out.stream = [pieces.join(''), last.usage.total_tokens, last.usage.cost];

const asking = [{ role: 'user', content: 'tool' }];
const runner = client.chat.completions.stream({ model: 'm', messages: asking, tools });
const final = await runner.finalChatCompletion();
out.tool = [final.choices[0].finish_reason, final.choices[0].message.tool_calls[0].function.arguments];

const response = await client.responses.create({ model: 'm', input: 'Hello' });
out.response = [response.output_text, response.usage.total_tokens];

const events = client.responses.stream({ model: 'm', input: 'Hello' });
out.responseStream = (await events.finalResponse()).output_text;

out.completion = (await client.completions.create({ model: 'm', prompt: 'Hello' })).choices[0].text;
out.models = (await client.models.list()).data.length > 6;

try { await client.chat.completions.create({ model: 'nope', messages }); }
catch (error) { out.error = [error.constructor.name, error.status, error.code]; }
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node or npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", PACKAGE]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return folder


@pytest.fixture
def result(package: Path, url: str, model: ScriptedModel) -> dict[str, Any]:
    """What the script prints."""
    usage = Usage(input_tokens=2, output_tokens=3)
    model.reply(tool_calls=[ToolCall("call-1", "weather", {"city": "Bern"})], when="tool", times=None)
    model.reply("Hi there", reasoning="Hm", times=None, usage=usage)
    script = package / "script.mjs"
    script.write_text(SCRIPT)
    run = ["node", str(script), url]
    done = subprocess.run(run, cwd=package, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def test_the_npm_package_works_unchanged(result: dict[str, Any]) -> None:
    assert result == {
        "whole": ["Hi there", "Hm", 5],
        "stream": ["Hi there", 5, 0.008],
        "tool": ["tool_calls", '{"city":"Bern"}'],
        "response": ["Hi there", 5],
        "responseStream": "Hi there",
        "completion": "Hi there",
        "models": True,
        "error": ["NotFoundError", 404, "model_not_found"],
    }
