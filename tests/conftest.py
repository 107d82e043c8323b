"""What every test can rely on: no variable of the person who runs the tests has a say."""

from __future__ import annotations

import os
import signal

import pytest

FOREIGN = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def neutral_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings, keys or proxies from outside."""
    for name in [*os.environ]:
        if name.startswith("LMCLIENT_") or name.endswith("_API_KEY") or name.lower() in FOREIGN:
            monkeypatch.delenv(name)
