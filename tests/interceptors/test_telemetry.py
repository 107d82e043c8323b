"""Spans and metrics, as OpenTelemetry's SDK exports them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from lmclient import (
    Completion,
    ConfigurationError,
    Conversation,
    FallbackInterceptor,
    TelemetryInterceptor,
)
from lmclient.errors import RateLimitError, ServerError
from lmclient.interceptors.base import chain

from .model_in_test import ANSWER, Model, profile, request

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

PROFILE = profile(url="https://api.example.com/v1", api_key="sk-secret-0123", temperature=0.5, max_tokens=99)


class Telemetry:
    """An interceptor and what it exported."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        tracer = TracerProvider()
        tracer.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.interceptor = TelemetryInterceptor(
            tracer_provider=tracer, meter_provider=MeterProvider([self._reader]), **options
        )

    async def call(self, model: Any, **values: Any) -> Completion:
        asked = request(**{"profile": PROFILE, **values})
        return await (await chain([self.interceptor], model)(asked)).wait()

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}

    @property
    def span(self) -> ReadableSpan:
        (span,) = (span for span in self.spans().values() if span.parent is None)
        return span

    def points(self) -> dict[str, list[Any]]:
        data = self._reader.get_metrics_data()
        metrics = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        return {metric.name: list(metric.data.data_points) for metric in metrics}


async def test_a_call_is_a_span_of_the_conventions():
    telemetry = Telemetry()
    await telemetry.call(Model(), stream=True)
    span = telemetry.span
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": "answer-1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 9,
        "server.address": "api.example.com",
        "server.port": 443,
        "lmclient.profile": "first",
        "lmclient.category": "m",
        "lmclient.cost": 0.000123,
    }
    assert (span.name, span.kind, span.status.status_code) == ("chat m-1", SpanKind.CLIENT, StatusCode.UNSET)
    assert expected.items() <= dict(span.attributes or {}).items()


async def test_each_attempt_is_a_span_below():
    telemetry = Telemetry()
    await telemetry.call(Model())
    attempt = telemetry.spans()["attempt first"]
    assert attempt.parent is not None
    assert attempt.parent.span_id == telemetry.span.context.span_id
    assert attempt.end_time - attempt.start_time == 250_000_000


async def test_tokens_and_time_are_metrics():
    telemetry = Telemetry()
    await telemetry.call(Model(msgspec.structs.replace(ANSWER, time_to_first_token=0.25)), stream=True)
    points = telemetry.points()
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 7, "output": 9}
    (first,) = points["gen_ai.client.operation.time_to_first_chunk"]
    assert first.sum == 0.25
    (duration,) = points["gen_ai.client.operation.duration"]
    assert (duration.count, duration.explicit_bounds[0], duration.explicit_bounds[-1]) == (1, 0.01, 81.92)
    assert dict(duration.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1",
        "server.address": "api.example.com",
        "server.port": 443,
    }


async def test_an_error_has_its_type_and_no_key():
    telemetry = Telemetry()
    with pytest.raises(RateLimitError):
        await telemetry.call(Model(RateLimitError("too fast, sk-secret-0123", status=429)))
    for span in telemetry.spans().values():
        assert span.attributes["error.type"] == "RateLimitError"
        assert span.status.status_code is StatusCode.ERROR
        assert "sk-secret" not in span.to_json()
    (duration,) = telemetry.points()["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "RateLimitError"


async def test_a_stream_that_is_left_is_no_failure():
    telemetry = Telemetry()
    asked = request(profile=PROFILE, stream=True)
    async with await chain([telemetry.interceptor], Model())(asked) as stream:
        await anext(stream)
    assert telemetry.span.attributes["error.type"] == "CancelledError"
    assert telemetry.span.status.status_code is StatusCode.UNSET


async def test_a_cached_answer_counts_no_tokens():
    telemetry = Telemetry()
    await telemetry.call(Model(msgspec.structs.replace(ANSWER, cached=True)))
    assert "gen_ai.client.token.usage" not in telemetry.points()
    assert telemetry.span.attributes["lmclient.cached"] is True


async def test_who_answered_is_named_and_each_attempt_has_its_own():
    telemetry = Telemetry()
    other = profile(name="other", provider="openrouter", model="m-2", url="http://other.example:81/v1")

    async def last(asked):
        answer = ANSWER if asked.profile is other else ServerError("down", status=503)
        return await Model(answer)(asked)

    asked = request(profile=PROFILE, fallbacks=(other,))
    await (await chain([telemetry.interceptor, FallbackInterceptor()], last)(asked)).wait()
    whose = {
        "gen_ai.provider.name": "openrouter",
        "gen_ai.request.model": "m-2",
        "server.address": "other.example",
        "server.port": 81,
    }
    assert whose.items() <= dict(telemetry.span.attributes).items()
    assert whose.items() <= dict(telemetry.spans()["attempt other"].attributes).items()
    assert telemetry.spans()["attempt first"].attributes["server.address"] == "api.example.com"
    for point in telemetry.points()["gen_ai.client.token.usage"]:
        assert whose.items() <= dict(point.attributes).items()


@pytest.mark.parametrize("key", ['pass"word\\12345', "sk-sécret-12345"])
async def test_content_holds_no_key_that_json_writes_in_another_way(key):
    telemetry = Telemetry(capture_content=True)
    asked = profile(api_key=key)
    await telemetry.call(Model(), profile=asked, conversation=Conversation.create(f"My key is {key}."))
    sent = json.loads(telemetry.span.attributes["gen_ai.input.messages"])
    assert sent[0]["parts"][0]["content"] == "My key is ***."


async def test_content_is_recorded_only_when_asked_for():
    telemetry = Telemetry()
    await telemetry.call(Model())
    for span in telemetry.spans().values():
        assert "river" not in span.to_json()


async def test_content_has_the_shape_of_the_conventions_and_no_key():
    telemetry = Telemetry(capture_content=True)
    conversation = Conversation.create("My key is sk-secret-0123", system="Be brief.")
    await telemetry.call(Model(), conversation=conversation)
    assert json.loads(telemetry.span.attributes["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "My key is ***"}]},
    ]
    (message,) = json.loads(telemetry.span.attributes["gen_ai.output.messages"])
    assert [part["type"] for part in message["parts"]] == ["reasoning", "text", "tool_call"]
    assert (message["role"], message["finish_reason"]) == ("assistant", "tool_calls")


def test_without_its_extra_it_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "lmclient.interceptors.telemetry_recorder", raising=False)
    with pytest.raises(ConfigurationError, match=r"lmclient\[otel\]"):
        TelemetryInterceptor()


CHAIN = """
import sys
{before}
import lmclient
client = lmclient.AsyncClient(lmclient.Settings({settings}))
names = [type(one).__name__ for one in client._interceptors]
print(names.count("TelemetryInterceptor"), "opentelemetry" in sys.modules)
"""


@pytest.mark.parametrize(
    ("before", "settings", "printed"),
    [
        ("", "", "0 False"),
        ("import opentelemetry.sdk.trace", "", "1 True"),
        ("", "interceptors=('lmclient:TelemetryInterceptor',)", "1 True"),
        ("import opentelemetry.sdk.trace", "interceptors=('lmclient:TelemetryInterceptor',)", "1 True"),
    ],
    ids=["unused", "the SDK is loaded", "named", "both"],
)
def test_the_default_chain_has_it_where_it_is_used(before, settings, printed, tmp_path):
    code = CHAIN.format(before=before, settings=settings)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == printed
