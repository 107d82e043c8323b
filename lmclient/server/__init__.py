"""The gateway: every category and profile of a deployment, for any program that speaks to OpenAI.

`create_app` makes the ASGI application, `lmclient serve` runs it.
"""

from __future__ import annotations

from lmclient.server.app import create_app

__all__ = ["create_app"]
