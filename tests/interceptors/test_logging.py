"""One record in the log for each call."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from decimal import Decimal

import pytest

from lmclient import FallbackInterceptor, LogInterceptor
from lmclient.errors import ServerError
from lmclient.interceptors.base import chain

from .model_in_test import Model, profile, request


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "lmclient.calls")
    return caplog


async def test_a_call_is_one_record_with_its_facts(log):
    asked = request()
    await (await chain([LogInterceptor()], Model())(asked)).wait()
    (record,) = log.records
    facts = {name: value for name, value in vars(record).items() if name.startswith("lmclient_")}
    assert facts.pop("lmclient_duration") > 0
    assert facts == {
        "lmclient_call_id": asked.id,
        "lmclient_profile": "first",
        "lmclient_category": "m",
        "lmclient_provider": "openai-chat",
        "lmclient_model": "m-1",
        "lmclient_outcome": "tool_calls",
        "lmclient_input_tokens": 7,
        "lmclient_output_tokens": 9,
        "lmclient_cost": Decimal("0.000123"),
        "lmclient_currency": "USD",
        "lmclient_cached": False,
        "lmclient_requests": 1,
    }
    assert (record.levelno, record.getMessage()[:25]) == (logging.INFO, "first: tool_calls after 0")


async def test_an_error_is_a_warning_without_the_key(log):
    asked = request(profile=profile(api_key="sk-secret-0123"))
    with pytest.raises(ServerError):
        await chain([LogInterceptor()], Model(ServerError("no, sk-secret-0123")))(asked)
    (record,) = log.records
    assert (record.levelno, record.lmclient_outcome) == (logging.WARNING, "ServerError")
    assert record.getMessage().endswith("no, ***")


async def test_an_error_is_one_line(log):
    with pytest.raises(ServerError):
        await chain([LogInterceptor()], Model(ServerError("first line\nsecond")))(request())
    assert log.records[0].getMessage().endswith("first line second")


@pytest.mark.parametrize("works", [True, False])
async def test_it_names_the_profile_that_answered_or_was_tried_last(log, works):
    first = profile(name="first", provider="openai-chat", model="m-1")
    other = profile(name="other", provider="openrouter", model="m-2", api_key="sk-secret-0123")
    down = Model(ServerError("down, sk-secret-0123", status=503))

    async def last(asked):
        return await (Model() if works and asked.profile is other else down)(asked)

    links = chain([LogInterceptor(), FallbackInterceptor()], last)
    with contextlib.nullcontext() if works else pytest.raises(ServerError):
        await (await links(request(profile=first, fallbacks=(other,)))).wait()
    (record,) = log.records
    assert (record.lmclient_profile, record.lmclient_provider) == ("other", "openrouter")
    assert "sk-secret" not in record.getMessage()


async def test_a_stream_that_is_left_is_cancelled(log):
    async with await chain([LogInterceptor()], Model())(request(stream=True)) as stream:
        await anext(stream)
    (record,) = log.records
    assert (record.levelno, record.lmclient_outcome) == (logging.INFO, "cancelled")


async def test_what_is_switched_off_is_not_written(caplog):
    caplog.set_level(logging.WARNING, "lmclient.calls")
    await (await chain([LogInterceptor()], Model())(request())).wait()
    assert caplog.records == []


def test_nothing_is_shown_where_no_logging_is_set_up(tmp_path):
    code = """
import lmclient
target = lmclient.ModelProfile(provider="openai-chat", model="x", url="http://127.0.0.1:1/v1")
with lmclient.Client(lmclient.Settings(data_dir="data", retry={"attempts": 1})) as client:
    try:
        client.complete(target, "Hi")
    except lmclient.ConnectError:
        print("failed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("failed\n", "")
