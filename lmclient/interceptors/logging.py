"""One record in the log for each call."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest, answered_by
from lmclient.core.stream import AsyncCompletionStream
from lmclient.interceptors.base import CallNext, Forwarding
from lmclient.providers.redaction import redact, secrets_in

logger = logging.getLogger("lmclient.calls")
# Where no logging is set up, Python would print warnings to stderr; the caller has the exception.
logger.addHandler(logging.NullHandler())


class LogInterceptor(Forwarding):
    """Writes a record to the logger `lmclient.calls` when a call is over.

    Answers are INFO, errors WARNING; a call that its caller left is INFO. The fields are attributes of
    the record with the prefix `lmclient_`: `call_id`, `profile`, `category`, `provider`, `model`,
    `outcome` (the finish reason, the error's class, or "cancelled"), `input_tokens`, `output_tokens`,
    `cost`, `currency`, `cached`, `requests`, `duration` (seconds). No prompt, no answer, no key. Nothing
    is shown before the application sets up logging.
    """

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        if not logger.isEnabledFor(logging.WARNING):
            return await call_next(request)
        started = time.monotonic()
        try:
            stream = await call_next(request)
        except BaseException as error:
            _write(request, None, error, started)
            raise

        async def end(completion: Completion, error: BaseException | None) -> None:
            if error is not None or logger.isEnabledFor(logging.INFO):
                _write(request, completion, error, started)

        stream.on_end(end)
        return stream


def _write(
    request: CompletionRequest, completion: Completion | None, error: BaseException | None, started: float
) -> None:
    left = isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt)
    level = logging.INFO if error is None or left else logging.WARNING
    if not logger.isEnabledFor(level):
        return
    fields = _fields(request, completion, error, time.monotonic() - started, left)
    reason = "" if error is None or left else f": {_line(request, error)}"
    logger.log(
        level,
        "%s: %s after %.3f s%s",
        fields["lmclient_profile"],
        fields["lmclient_outcome"],
        fields["lmclient_duration"],
        reason,
        extra=fields,
    )


def _line(request: CompletionRequest, error: BaseException) -> str:
    return " ".join(redact(str(error), secrets_in(request)).split())


def _fields(
    request: CompletionRequest,
    answer: Completion | None,
    error: BaseException | None,
    duration: float,
    left: bool,
) -> dict[str, Any]:
    completion, profile = answer or Completion(), answered_by(request, answer)
    outcome = completion.finish_reason.value if error is None else type(error).__name__
    values = {
        "call_id": request.id,
        "profile": completion.profile or profile.name,
        "category": request.category,
        "provider": profile.provider,
        "model": completion.model or profile.model,
        "outcome": "cancelled" if left else outcome,
        "input_tokens": completion.usage.input_tokens,
        "output_tokens": completion.usage.output_tokens,
        "cost": completion.cost,
        "currency": completion.currency,
        "cached": completion.cached,
        "requests": len(request.attempts),
        "duration": duration,
    }
    return {f"lmclient_{name}": value for name, value in values.items()}
