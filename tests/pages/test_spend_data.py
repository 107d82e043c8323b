"""The JSON that the spend page shows."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lmclient import Settings, SpendRecord
from lmclient.server.serving import open_gateway
from lmclient.spend.ledger import Ledger
from lmclient.testing.hosting import running_in_thread

NOW = datetime.datetime.now(datetime.UTC)
ANN, BOB = "token-of-ann-0001", "token-of-bob-0001"
Get = Callable[..., httpx2.Response]


def record(number: int, **values: Any) -> SpendRecord:
    given = {
        "call_id": f"call-{number}",
        "attempt": 1,
        "time": NOW,
        "profile": "mini",
        "provider": "openai-chat",
        "model": "mock",
        "cost": Decimal("0.1"),
    }
    return SpendRecord(**{**given, **values})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Get]]:
    """Serves some records with the given settings; the result asks for a path, with a token."""
    with ExitStack() as running:

        def serve(*records: SpendRecord, **settings: Any) -> Get:
            given = Settings(data_dir=tmp_path, **settings)
            assert given.spend.url is not None
            ledger = Ledger(given.spend.url)

            async def book() -> None:
                await ledger.book(records)
                await ledger.aclose()

            asyncio.run(book())
            url = running.enter_context(running_in_thread(open_gateway(given))).removesuffix("/v1")
            client = running.enter_context(httpx2.Client(base_url=url, trust_env=False))
            return lambda path, token=None: client.get(
                path, headers={} if token is None else {"authorization": f"Bearer {token}"}
            )

        yield serve


def test_amounts_are_exact_text(served: Callable[..., Get]) -> None:
    get = served(record(1, cost=Decimal("0.10000000000000000001")), record(2, cost=Decimal("1E-9")))
    [row] = get("/spend/overview").json()["totals"]["today"]
    assert (row["cost"], row["currency"], row["calls"]) == ("0.10000000100000000001", "USD", 2)
    assert [each["cost"] for each in get("/spend/records").json()["records"]].count("0.000000001") == 1


def test_a_report_has_a_row_for_each_group_and_currency(served: Callable[..., Get]) -> None:
    get = served(record(1, tags={"user": "ann"}), record(2, currency="EUR"), record(3, category="m"))
    answer = get("/spend/report?by=category&by=tag:user&days=7").json()
    rows = {(*row["values"], row["currency"]): row["cost"] for row in answer["rows"]}
    assert rows == {("m", None, "USD"): "0.1", (None, "ann", "USD"): "0.1", (None, None, "EUR"): "0.1"}
    assert answer["until"] == NOW.date().isoformat()


@pytest.mark.parametrize(
    "query", ["report?by=nothing", "report?by=tag:", "report?days=0", "report?days=x", "records?limit=9999"]
)
def test_a_wrong_query_is_refused(served: Callable[..., Get], query: str) -> None:
    answer = served()(f"/spend/{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_no_ledger_is_said(served: Callable[..., Get]) -> None:
    answer = served(spend={"enabled": False})("/spend/overview")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "spend_disabled")


@pytest.fixture
def shared(served: Callable[..., Get]) -> Get:
    """A gateway of two people."""
    budget = {"amount": "1", "period": "day"}
    return served(
        record(1, tags={"token": "ann"}),
        record(2, tags={"token": "bob"}, cost=Decimal("0.95")),
        server={
            "tokens": [
                {"name": "ann", "token": ANN, "budgets": [{"name": "ann's", **budget}]},
                {"name": "bob", "token": BOB, "budgets": [{"name": "bob's", **budget}]},
            ]
        },
        spend={"budgets": [{"name": "all", **budget}]},
    )


@pytest.mark.parametrize("path", ["overview", "report?by=day", "records", "budgets"])
def test_nothing_is_told_without_a_token(shared: Get, path: str) -> None:
    assert shared(f"/spend/{path}").status_code == 401


def test_a_token_sees_its_own_calls_and_budgets_only(shared: Get) -> None:
    assert [row["cost"] for row in shared("/spend/overview", ANN).json()["totals"]["month"]] == ["0.1"]
    assert [row["cost"] for row in shared("/spend/report?by=day", BOB).json()["rows"]] == ["0.95"]
    assert [each["call_id"] for each in shared("/spend/records", ANN).json()["records"]] == ["call-1"]
    [budget] = shared("/spend/budgets", BOB).json()["budgets"]
    assert (budget["name"], budget["spent"], budget["state"]) == ("bob's", "0.95", "warning")
