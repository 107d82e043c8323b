"""`lmclient prompt render` with the template of the real model."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmclient.cli import app


def test_prompt_render_shows_what_the_servers_own_template_makes(
    data_dir: Path, server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMCLIENT_DATA_DIR", str(data_dir))
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "own.toml").write_text(
        'provider = "llama-cpp"\nmodel = "smollm2"\nprompt_format = "auto"\n'
    )
    done = CliRunner().invoke(app, ["prompt", "render", "-p", "own", "Hi", "-s", "Be brief."])
    assert done.stdout == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert done.stderr == "18 tokens (counted by the server)\n"
