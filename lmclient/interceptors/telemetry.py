"""Spans and metrics of calls for OpenTelemetry. Extra `otel`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lmclient.core.completion import Completion
from lmclient.core.request import CompletionRequest
from lmclient.core.stream import AsyncCompletionStream
from lmclient.errors import ConfigurationError
from lmclient.interceptors.base import CallNext

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class TelemetryInterceptor:
    """Makes a span for each call, with one below it for each attempt, and the metrics of GenAI clients.

    Names follow the GenAI semantic conventions 1.41. Prompts and answers are recorded only with
    `capture_content`, the profile's keys taken out. The providers are OpenTelemetry's global ones if
    not given. The default chain has this interceptor where the process has loaded OpenTelemetry's
    SDK before the client is made; elsewhere `interceptors = ["lmclient:TelemetryInterceptor"]` in the
    settings adds it.

    Raises `ConfigurationError` if the extra is not installed.
    """

    def __init__(
        self,
        *,
        capture_content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from lmclient.interceptors.telemetry_recorder import Recorder
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "TelemetryInterceptor needs the extra: pip install 'lmclient[otel]'."
            ) from error
        self._recorder = Recorder(capture_content, tracer_provider, meter_provider)

    async def __call__(self, request: CompletionRequest, call_next: CallNext) -> AsyncCompletionStream:
        recorder = self._recorder
        started = time.monotonic()
        span = recorder.start(request)
        try:
            with recorder.current(span):
                stream = await call_next(request)
        except BaseException as error:
            recorder.end(span, request, None, error, time.monotonic() - started)
            raise

        async def end(completion: Completion, error: BaseException | None) -> None:
            recorder.end(span, request, completion, error, time.monotonic() - started)

        stream.on_end(end)
        return stream
