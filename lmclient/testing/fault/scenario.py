"""What a scenario is, which requests it concerns, and the healthy one that answers all the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from lmclient.testing.fault.call import Call, Endpoint
from lmclient.testing.fault.reply import Reply, encode, plain
from lmclient.testing.fault.shapes import CREATED, MODEL, complete

Scenario = Callable[[Call], Reply]

EVERYWHERE: tuple[Endpoint, ...] = ("chat", "text", "models")
COMPLETIONS: tuple[Endpoint, ...] = ("chat", "text")
CHAT: tuple[Endpoint, ...] = ("chat",)


def ok(call: Call) -> Reply:
    if call.endpoint == "models":
        model = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": MODEL}
        return plain(call, encode({"object": "list", "data": [model]}))
    return complete(call)


def scenario(
    endpoints: Sequence[Endpoint] = COMPLETIONS, *, stream_only: bool = False
) -> Callable[[Scenario], Scenario]:
    """Answer the calls that a scenario does not concern (other endpoints, or no stream) as ok does."""

    def limit(build: Scenario) -> Scenario:
        @wraps(build)
        def answer(call: Call) -> Reply:
            concerned = call.endpoint in endpoints and (call.stream or not stream_only)
            return build(call) if concerned else ok(call)

        return answer

    return limit
