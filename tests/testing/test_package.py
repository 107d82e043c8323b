"""What `lmclient.testing` offers, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lmclient.testing

HEAVY = {"asyncio", "anyio", "typer", "aiohttp", "http.client", "lmclient.testing.fault"}


@pytest.mark.parametrize("name", lmclient.testing.__all__)
def test_every_public_name_is_there(name):
    assert getattr(lmclient.testing, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoProvider"):
        _ = lmclient.testing.NoProvider


def test_importing_the_package_loads_no_server():
    script = """if True:
        import lmclient, sys
        before = set(sys.modules)
        import lmclient.testing
        print(*sorted(set(sys.modules) - before))
    """
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "lmclient.testing" in loaded.split()
    assert not HEAVY & set(loaded.split())
