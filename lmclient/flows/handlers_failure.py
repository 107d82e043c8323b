"""The failure that the handlers define."""

from __future__ import annotations

from lmclient.errors import FlowError


class Unreadable(FlowError):
    """A model's answer is not in the format that a handler reads.

    The message says why, as a part of a sentence, and goes back to the model.
    """
