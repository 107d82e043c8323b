"""Scenarios that answer with an HTTP error or a redirect."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import formatdate

from lmclient.testing.fault.call import Call
from lmclient.testing.fault.reply import Reply, error, head, plain
from lmclient.testing.fault.scenario import EVERYWHERE, ok, scenario


def rate_limited(call: Call, headers: Mapping[str, str]) -> Reply:
    message = "Rate limit reached for requests. Please try again later."
    return error(call, 429, message, kind="requests", code="rate_limit_exceeded", headers=headers)


@scenario(EVERYWHERE)
def rate_limited_once(call: Call) -> Reply:
    return rate_limited(call, {"retry-after": "1"}) if call.number == 1 else ok(call)


@scenario(EVERYWHERE)
def rate_limited_ms(call: Call) -> Reply:
    return rate_limited(call, {"retry-after-ms": "200"}) if call.number == 1 else ok(call)


@scenario(EVERYWHERE)
def rate_limited_date(call: Call) -> Reply:
    if call.number > 1:
        return ok(call)
    return rate_limited(call, {"retry-after": formatdate(math.ceil(time.time() + 1), usegmt=True)})


@scenario(EVERYWHERE)
def rate_limited_forever(call: Call) -> Reply:
    return rate_limited(call, {"retry-after": "3600"})


@scenario(EVERYWHERE)
def quota_exhausted(call: Call) -> Reply:
    message = "You exceeded your current quota, please check your plan and billing details."
    return error(call, 429, message, kind="insufficient_quota", code="insufficient_quota")


@scenario(EVERYWHERE)
def server_error_once(call: Call) -> Reply:
    if call.number > 1:
        return ok(call)
    return error(call, 500, "The server had an error while processing your request.", kind="server_error")


@scenario(EVERYWHERE)
def overloaded_twice(call: Call) -> Reply:
    if call.number > 2:
        return ok(call)
    status = 529 if call.number == 1 else 503
    return error(call, status, "The engine is currently overloaded.", kind="overloaded_error")


@scenario(EVERYWHERE)
def bad_gateway_html(call: Call) -> Reply:
    page = (
        b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
        b"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    )
    return plain(call, page, status=502, content_type="text/html; charset=utf-8")


@scenario(EVERYWHERE)
def unauthorized(call: Call) -> Reply:
    key = (call.credentials or "").removeprefix("Bearer ")
    return error(call, 401, f"Incorrect API key provided: {key}.", code="invalid_api_key")


@scenario()
def bad_request(call: Call) -> Reply:
    message = (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
    )
    return error(call, 400, message, code="context_length_exceeded", param="messages")


@scenario()
def not_found_model(call: Call) -> Reply:
    message = f"The model `{call.body['model']}` does not exist or you do not have access to it."
    return error(call, 404, message, code="model_not_found")


def landing(call: Call) -> str:
    """The same path under ok, with the same key."""
    return f"/ok~{call.key}{call.path}" if call.key else f"/ok{call.path}"


def redirected(call: Call, location: str) -> Reply:
    return Reply([head(call, 307, {"location": location, "content-length": "0"})])


@scenario(EVERYWHERE)
def redirect(call: Call) -> Reply:
    return redirected(call, landing(call))


@scenario(EVERYWHERE)
def cross_host_redirect(call: Call) -> Reply:
    host, _, port = call.headers.get("host", "127.0.0.1").rpartition(":")
    other = "127.0.0.1" if host == "localhost" else "localhost"
    return redirected(call, f"http://{other}:{port}{landing(call)}")
