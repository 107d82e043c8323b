"""ScriptedModel: a model for tests that says what the test tells it to.

    with ScriptedModel() as model:
        model.reply("A parser of CSV files.", when="Summarize")
        model.reply(RateLimitError("busy"), when="features")
        async with AsyncClient(model.settings(tmp_path)) as client:
            ...
    assert model.requests[0].prompt == "The source code is: ..."

It is a provider, so everything above it (client, interceptors, flows) is the real thing, and needs
no network. Time is logical: nothing sleeps, and what runs in parallel shows in the ticks.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lmclient.core.completion import FinishReason
from lmclient.core.tools import ToolCall
from lmclient.core.usage import Usage
from lmclient.errors import ConfigurationError
from lmclient.profiles.category import Category
from lmclient.profiles.model import ModelProfile
from lmclient.providers.registry import register_provider, unregister_provider
from lmclient.settings import Settings
from lmclient.testing.scripted_calls import Calls, ScriptedRequest
from lmclient.testing.scripted_provider import ScriptedProvider
from lmclient.testing.scripted_reply import Answer, Reply, When

PROFILE = "scripted"
"""The name of the profile that `settings` writes."""

_numbers = itertools.count(1)


class ScriptedModel:
    """Answers the calls of clients from a list of replies, and records every request.

    Use it in a `with` block: its provider is known inside the block only. `profile` is a target for
    clients, `settings` puts it behind the categories. `profile_values` are fields of the profile, such
    as `cost`. A test may share one model between clients; a reply is used by one request.
    """

    def __init__(self, **profile_values: Any) -> None:
        provider = f"scripted-{next(_numbers)}"
        self.profile = ModelProfile(
            **{"name": PROFILE, "model": PROFILE, **profile_values, "provider": provider}
        )
        self._replies: list[Reply] = []
        self._calls = Calls()

    def __enter__(self) -> Self:
        register_provider(self.profile.provider, lambda context: ScriptedProvider(self._calls, self._answer))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        unregister_provider(self.profile.provider)

    def reply(
        self,
        answer: Answer = "",
        *,
        when: When = None,
        times: int | None = 1,
        reasoning: str = "",
        tool_calls: Sequence[ToolCall] = (),
        finish_reason: FinishReason | None = None,
        usage: Usage | None = None,
        error: Exception | None = None,
        delay: float = 0.0,
    ) -> None:
        """Adds a reply. A request gets the first reply that fits it and is not used up.

        `answer` is the text, an exception to raise instead of answering, or a function from the
        request to either. `when` is text that the system prompt or the last user turn must contain,
        or a predicate on the request. `times` is how many requests get the reply, None for all; a
        retry is a request, too. `error` is raised after `answer` has been streamed. `finish_reason`
        follows from `tool_calls` if not given, `usage` counts a token per word.

        `delay` is in logical seconds: a reply leaves once everybody waits and no shorter delay is
        left. `math.inf` never leaves: such a call ends when its time is up or when it is cancelled.
        """
        self._replies.append(
            Reply(
                answer=answer,
                when=when,
                left=times,
                reasoning=reasoning,
                tool_calls=tuple(tool_calls),
                finish_reason=finish_reason,
                usage=usage,
                error=error,
                delay=delay,
            )
        )

    def rendezvous(self, n: int, *, when: When = None, timeout: float = 5.0) -> None:
        """Holds the next calls back until `n` of them are in flight at once: proof that they may be.

        `when` limits it to requests that fit. If they have not come within `timeout` seconds of the
        first one, the calls that wait fail with an `LMClientError` that says how many came.
        """
        self._calls.add_rendezvous(n, when, timeout)

    async def wait_for_requests(self, n: int) -> None:
        """Returns once `n` requests have come in all, answered or not.

        Raises `TimeoutError` if they have not come after 5 seconds.
        """
        await self._calls.wait_for(n)

    @property
    def requests(self) -> list[ScriptedRequest]:
        """All requests so far, in the order in which they came."""
        return self._calls.requests

    @property
    def in_flight(self) -> int:
        """How many calls are under way now."""
        return self._calls.in_flight

    @property
    def max_in_flight(self) -> int:
        """How many calls were under way at once, at most."""
        return self._calls.max_in_flight

    def stages(self) -> int:
        """The length of the longest chain of calls of which each began after the one before had ended."""
        return self._calls.stages()

    def settings(self, directory: str | Path, **values: Any) -> Settings:
        """Settings for a client, with this model behind all standard categories.

        The profile is written into `directory`, which also holds the data. `values` are settings;
        `categories` among them are added to the standard ones (the profile is called "scripted").
        Retries do not wait unless `retry` is given, and no ledger is kept unless `spend` is: its thread
        takes real time, of which ticks and delays know nothing.
        """
        profiles = Path(directory) / "profiles"
        profiles.mkdir(parents=True, exist_ok=True)
        dumped = self.profile.model_dump(mode="json", exclude_unset=True, exclude={"name", "api_key"})
        lines = [f"{name} = {_toml(value)}" for name, value in dumped.items()]
        (profiles / f"{PROFILE}.toml").write_text("\n".join(lines), encoding="utf-8")
        standard = {category.value: PROFILE for category in Category}
        return Settings(
            **{
                "data_dir": Path(directory) / "data",
                "profiles_dir": profiles,
                "retry": {"max_wait": 0},
                "spend": {"enabled": False},
                **values,
                "categories": {**standard, **values.get("categories", {})},
            }
        )

    def _answer(self, request: ScriptedRequest) -> Reply:
        """The reply to a request. Raises `ConfigurationError` if none is left."""
        for reply in self._replies:
            if reply.left != 0 and request.fits(reply.when):
                if reply.left is not None:
                    reply.left -= 1
                return reply
        left = sum(reply.left != 0 for reply in self._replies)
        raise ConfigurationError(
            f"The scripted model has no reply for request {len(self.requests)} "
            f"(system {request.system!r:.80}, prompt {request.prompt!r:.80}); "
            f"{left} of its {len(self._replies)} replies are left, none fits. Add one with reply()."
        )


def _toml(value: Any) -> str:
    """A JSON value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
