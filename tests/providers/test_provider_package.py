"""A package of somebody else's adds a provider: one module, and one line of packaging metadata."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODULE = """
from lmclient import AsyncCompletionStream, Attempt, Chunk, Completion, FinishReason
from lmclient.core.http import HttpRequest

import datetime


class EchoProvider:
    def __init__(self, context):
        self.context = context

    async def open(self, request):
        text = request.conversation.turns[-1].text
        completion = Completion(
            text=text, finish_reason=FinishReason.STOP, profile=request.profile.name, requests=1
        )
        now = datetime.datetime.now(datetime.UTC)
        request.attempts.append(Attempt(profile=request.profile, started=now, completion=completion))
        return AsyncCompletionStream.of(completion, [Chunk(text)] if request.stream else [])

    async def models(self, profile):
        return ["echo"]

    async def supports_tools(self, profile):
        return False

    def preview(self, request):
        return HttpRequest(url="http://localhost/echo")

    async def aclose(self):
        pass
"""

PROGRAM = """
import lmclient
profile = lmclient.ModelProfile(provider="echo", model="echo")
with lmclient.Client() as client:
    print(client.complete(profile, "Hello").text)
    with client.stream(profile, "Again") as stream:
        print("".join(chunk.text for chunk in stream), stream.completion.finish_reason.value)
    print(client.models(profile))
"""


def installed(directory: Path) -> Path:
    """A directory that looks as if the package had been installed there."""
    metadata = directory / "lmclient_echo-1.0.dist-info"
    metadata.mkdir()
    (directory / "lmclient_echo.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lmclient-echo\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lmclient.providers]\necho = lmclient_echo:EchoProvider\n")
    return directory


def test_a_provider_of_an_installed_package_answers(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(installed(tmp_path))!r})\n{PROGRAM}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "LMCLIENT_DATA_DIR": str(tmp_path)},
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["Hello", "Again stop", "['echo']"]
