"""The scenarios, by name, in the order in which the package's docstring describes them."""

from __future__ import annotations

from lmclient.testing.fault.scenario import Scenario, ok
from lmclient.testing.fault.scenarios import (
    delivery,
    encoding,
    finish,
    http_errors,
    masked_errors,
    tool_calls,
)

SCENARIOS: dict[str, Scenario] = {
    build.__name__: build
    for build in (
        ok,
        delivery.slow_first_byte,
        delivery.slow_stream,
        delivery.hang,
        delivery.hang_mid_stream,
        delivery.drip,
        delivery.reset_before_headers,
        delivery.reset_mid_stream,
        delivery.truncated_stream,
        delivery.no_done,
        delivery.truncated_json,
        delivery.http10_close,
        http_errors.rate_limited_once,
        http_errors.rate_limited_ms,
        http_errors.rate_limited_date,
        http_errors.rate_limited_forever,
        http_errors.quota_exhausted,
        http_errors.server_error_once,
        http_errors.overloaded_twice,
        http_errors.bad_gateway_html,
        http_errors.unauthorized,
        http_errors.bad_request,
        http_errors.not_found_model,
        http_errors.redirect,
        http_errors.cross_host_redirect,
        masked_errors.error_in_200,
        masked_errors.error_event,
        masked_errors.malformed_event,
        masked_errors.empty_choices,
        masked_errors.null_content,
        encoding.keepalive_comments,
        encoding.bom_utf8,
        encoding.split_utf8,
        encoding.invalid_utf8,
        encoding.gzip,
        encoding.wrong_content_type,
        encoding.huge_chunk,
        encoding.many_chunks,
        finish.content_filter,
        finish.length,
        finish.duplicate_finish,
        finish.late_text_after_finish,
        finish.usage_every_chunk,
        finish.usage_with_choices,
        finish.usage_none,
        finish.usage_null_fields,
        tool_calls.tool_call_stream,
        tool_calls.tool_call_no_index,
        tool_calls.tool_call_bad_json,
    )
}
