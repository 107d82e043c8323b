"""What is recorded of a call, in OpenTelemetry's words.

The names are those of the GenAI semantic conventions 1.41
(https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai); names with the
prefix `lmclient.` are ours.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from lmclient.core.completion import Completion
from lmclient.core.request import Attempt, CompletionRequest, answered_by
from lmclient.core.usage import Usage
from lmclient.interceptors.telemetry_attributes import (
    input_messages,
    output_messages,
    request_attributes,
    shared_attributes,
)
from lmclient.providers.redaction import redact, secrets_in

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = tuple(4**power for power in range(14))
"""The boundaries of histograms that the conventions ask for."""

Attributes = dict[str, AttributeValue]


class Recorder:
    """The tracer and the instruments of one client."""

    def __init__(
        self,
        capture_content: bool,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
    ) -> None:
        self._capture_content = capture_content
        self._tracer = trace.get_tracer("lmclient", tracer_provider=tracer_provider, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("lmclient", meter_provider=meter_provider, schema_url=SCHEMA_URL)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._first_chunk = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time to receive the first chunk of a stream.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    def start(self, request: CompletionRequest) -> Span:
        """The span of a call that begins."""
        attributes = request_attributes(request)
        name = f"{attributes['gen_ai.operation.name']} {request.profile.model}".strip()
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        if self._capture_content and span.is_recording():
            self._set_content(span, request, "gen_ai.input.messages", input_messages(request))
        return span

    def current(self, span: Span) -> AbstractContextManager[Span]:
        """Makes the span the parent of what is recorded meanwhile, such as the HTTP request."""
        return trace.use_span(span, record_exception=False, set_status_on_exception=False)

    def end(
        self,
        span: Span,
        request: CompletionRequest,
        completion: Completion | None,
        error: BaseException | None,
        duration: float,
    ) -> None:
        """Ends the span with what came of the call, and counts it in the metrics."""
        shared = shared_attributes(answered_by(request, completion))
        if completion is not None and completion.model:
            shared["gen_ai.response.model"] = completion.model
        if span.is_recording():
            span.set_attributes(shared)
            self._describe(span, request, completion)
            for attempt in request.attempts:
                self._record_attempt(span, request, attempt)
        ended: Attributes = dict(shared)
        if error is not None:
            ended["error.type"] = type(error).__qualname__
            _set_error(span, request, error)
        if completion is not None and completion.cached:
            ended["lmclient.cached"] = True
        span.end()
        self._duration.record(duration, ended)
        if completion is not None and error is None and not completion.cached:
            self._count(request, completion, shared)

    def _count(self, request: CompletionRequest, completion: Completion, shared: Attributes) -> None:
        usage = completion.usage
        self._tokens.record(usage.input_tokens, {**shared, "gen_ai.token.type": "input"})
        self._tokens.record(usage.output_tokens, {**shared, "gen_ai.token.type": "output"})
        if request.stream and completion.time_to_first_token is not None:
            self._first_chunk.record(completion.time_to_first_token, shared)

    def _describe(self, span: Span, request: CompletionRequest, completion: Completion | None) -> None:
        span.set_attribute("lmclient.requests", len(request.attempts))
        if completion is None:
            return
        attributes: Attributes = {
            "gen_ai.response.finish_reasons": [completion.finish_reason.value],
            "lmclient.cached": completion.cached,
        }
        if completion.id:
            attributes["gen_ai.response.id"] = completion.id
        if completion.model:
            attributes["gen_ai.response.model"] = completion.model
        if completion.profile:
            attributes["lmclient.profile"] = completion.profile
        if request.stream and completion.time_to_first_token is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = completion.time_to_first_token
        if completion.cost is not None:
            attributes["lmclient.cost"] = float(completion.cost)
            attributes["lmclient.currency"] = completion.currency
        if not completion.cached:
            attributes |= _usage(completion.usage)
        span.set_attributes(attributes)
        if self._capture_content:
            self._set_content(span, request, "gen_ai.output.messages", output_messages(completion))

    def _record_attempt(self, parent: Span, request: CompletionRequest, attempt: Attempt) -> None:
        began = int(attempt.started.timestamp() * 1e9)
        attributes: Attributes = {
            **shared_attributes(attempt.profile),
            "lmclient.profile": attempt.profile.name,
            "lmclient.waited": attempt.waited,
        }
        span = self._tracer.start_span(
            f"attempt {attempt.profile.name}",
            context=trace.set_span_in_context(parent),
            start_time=began,
            attributes=attributes,
        )
        if attempt.usage is not None:
            span.set_attributes(_usage(attempt.usage))
        if attempt.error is not None:
            _set_error(span, request, attempt.error)
        span.end(began + int(attempt.duration * 1e9))

    def _set_content(self, span: Span, request: CompletionRequest, name: str, messages: str) -> None:
        secrets = secrets_in(request)
        as_json = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets]
        span.set_attribute(name, redact(messages, [*secrets, *as_json]))


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    always = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    return {name: count for name, count in counts.items() if count or name in always}


def _set_error(span: Span, request: CompletionRequest, error: BaseException) -> None:
    """Marks the span as failed; a call that its caller left has an `error.type` and no such mark."""
    span.set_attribute("error.type", type(error).__qualname__)
    status = getattr(error, "status", None)
    if isinstance(status, int):
        span.set_attribute("http.response.status_code", status)
    if not isinstance(error, asyncio.CancelledError):
        span.set_status(Status(StatusCode.ERROR, redact(str(error), secrets_in(request))))
