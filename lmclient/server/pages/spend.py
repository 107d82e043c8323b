"""The data of the spend page: what the ledger holds of the caller's calls, as JSON.

Somebody with a token sees the calls of that token only. Amounts are decimal numbers as text, exact,
each in its own currency.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lmclient.client import AsyncClient
from lmclient.errors import BadRequestError, NotFoundError
from lmclient.server.access import TOKEN_TAG, Caller
from lmclient.server.pages.budget_states import budget_states
from lmclient.spend.client import AsyncSpend
from lmclient.spend.ledger import Ledger
from lmclient.spend.records import SpendRecord
from lmclient.spend.reports import GROUPS, SpendRow
from lmclient.ui.events import encode
from lmclient.ui.openai_errors import OpenAIError

Json = dict[str, Any]
Answer = Callable[[Request], Awaitable[Json]]
PERIODS = {"today": 1, "week": 7, "month": 30}
"""The days, today included, of each total."""
MAX_DAYS = 3660
MAX_RECORDS = 500
_LOOKED_THROUGH = 2_000
"""How many of the newest records are read to find a token's own among them."""


def _json(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    @wraps(answer)
    async def respond(request: Request) -> Response:
        try:
            status, body = 200, await answer(request)
        except Exception as error:  # the boundary: what went wrong becomes an answer
            failure = OpenAIError(error)
            status, body = failure.status, failure.body
        return Response(encode(body), status, {"cache-control": "no-store"}, "application/json")

    return respond


@_json
async def overview(request: Request) -> Json:
    """The totals of today, of 7 and of 30 days, a row for each currency; days are those of UTC."""
    spend, today = _spend(request), _today()
    totals = {
        name: [_row_json(row, ()) for row in await spend.report((), since=since, where=_where(request))]
        for name, days in PERIODS.items()
        for since in [today - datetime.timedelta(days=days - 1)]
    }
    return {"today": today, "totals": totals}


@_json
async def report(request: Request) -> Json:
    """A report of the last `days` by each `by` of the query, as `client.spend.report` makes it."""
    by = request.query_params.getlist("by")
    for name in by:
        if name not in GROUPS and not (name.startswith("tag:") and len(name) > 4):
            raise BadRequestError(f"by is {name!r:.40}; expected {', '.join(GROUPS)} or tag:NAME.")
    days = _count(request, "days", 30, MAX_DAYS)
    since = _today() - datetime.timedelta(days=days - 1)
    rows = await _spend(request).report(by, since=since, where=_where(request))
    return {"since": since, "until": _today(), "rows": [_row_json(row, by) for row in rows]}


@_json
async def records(request: Request) -> Json:
    """The newest records, at most `limit`, the newest first."""
    limit = _count(request, "limit", 200, MAX_RECORDS)
    spend, token = _spend(request), _token(request)
    if token is None:
        found = await spend.records(limit)
    else:
        newest = await spend.records(_LOOKED_THROUGH)
        found = [record for record in newest if record.tags.get(TOKEN_TAG) == token][:limit]
    return {"records": [_record_json(record) for record in found]}


@_json
async def budgets(request: Request) -> Json:
    """The budgets that the caller's calls may fall under, and their states."""
    _spend(request)
    settings = _client(request).settings.spend
    assert settings.url is not None  # filled in by the settings
    token = _token(request)
    mine = [budget for budget in settings.budgets if token is None or budget.tags.get(TOKEN_TAG) == token]
    states = await Ledger(settings.url).read(budget_states(mine, datetime.datetime.now(datetime.UTC)))
    return {"budgets": states}


def _client(request: Request) -> AsyncClient:
    client: AsyncClient = request.app.state.client
    return client


def _spend(request: Request) -> AsyncSpend:
    client = _client(request)
    if not client.settings.spend.enabled:
        raise NotFoundError(
            "Nothing is booked: the setting spend.enabled is false.", status=404, code="spend_disabled"
        )
    return client.spend


def _token(request: Request) -> str | None:
    """The name of the caller's token, None where there are no tokens."""
    caller: Caller = request.state.caller
    return caller.tags.get(TOKEN_TAG)


def _where(request: Request) -> dict[str, str | None]:
    token = _token(request)
    return {} if token is None else {f"tag:{TOKEN_TAG}": token}


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _count(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
        raise BadRequestError(f"{name} is {text!r:.40}; expected a number from 1 to {most}.")
    return int(text)


def _row_json(row: SpendRow, by: list[str] | tuple[str, ...]) -> Json:
    return {
        "values": [row.value(name) for name in by],
        "currency": row.currency,
        "cost": _amount(row.cost),
        "saved_cost": _amount(row.saved_cost),
        "calls": row.calls,
        "requests": row.requests,
        "input_tokens": row.input_tokens,
        "cached_input_tokens": row.cached_input_tokens,
        "output_tokens": row.output_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "estimated": row.estimated,
        "unpriced": row.unpriced,
    }


def _record_json(record: SpendRecord) -> Json:
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return fields | {"cost": _amount(record.cost), "saved_cost": _amount(record.saved_cost)}


def _amount(amount: object) -> str | None:
    return None if amount is None else f"{amount:f}"
