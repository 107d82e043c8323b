"""The chat page with a real model behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmclient.providers.local import weights

from .browser import Browser
from .served import serving

LOCAL = 'provider = "llama-cpp"\nmodel = "smollm2"\nmax_tokens = 60\ntemperature = 0\n'


@pytest.fixture(scope="module")
def local_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    named = os.environ.get("LMCLIENT_TEST_MODELS")
    models = Path(named) if named else weights.default_data_dir()
    weights.pull("smollm2", models)
    directory = tmp_path_factory.mktemp("local")
    (directory / "models").symlink_to(models / "models")
    with serving(directory, '[categories]\nm = "small"\n', {"small": LOCAL}) as url:
        yield url


@pytest.mark.slow
def test_a_real_model_answers_piece_by_piece_and_is_booked(browser: Browser, local_url: str) -> None:
    browser.patience = 120
    browser.get(local_url)
    browser.ask("Name the days of the week.")
    lengths = set()

    def finished() -> bool:
        text, isRunning = browser.run(
            "const said = document.querySelector('.assistant .said');"
            "return [said?.textContent.length ?? 0, Boolean(document.querySelector('.assistant.running'))]"
        )
        lengths.add(text)
        return text > 0 and not isRunning

    browser.until(finished)
    assert "Monday" in browser.text(".assistant .said")
    assert len(lengths) > 4
    browser.driver.get(f"{local_url}/spend")
    browser.until(lambda: browser.all("#records tbody tr"))
    assert "smollm2" in browser.text("#records tbody tr")
