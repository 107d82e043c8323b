"""What a flow's calls cost: exact sums, and never of two currencies."""

import datetime
import decimal
from decimal import Decimal

import msgspec
import pytest

from lmclient import Completion
from lmclient.flows import FlowStatistics, TraceStep
from lmclient.flows.drawing import mermaid

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture(params=["statistics", "trace"])
def sums(request):
    return FlowStatistics() if request.param == "statistics" else TraceStep(id=1, agent="A", started=NOON)


def test_currencies_are_never_added_up(sums):
    for cost, currency in (("0.1", "USD"), ("0.2", "EUR"), ("0.3", "USD")):
        sums.add(Completion(cost=Decimal(cost), currency=currency))
    assert sums.costs == {"USD": Decimal("0.4"), "EUR": Decimal("0.2")}
    assert sums.cost is None


def test_sums_are_exact_whatever_the_decimal_context_of_the_caller(sums):
    with decimal.localcontext(prec=3):
        sums.add(Completion(cost=Decimal("0.246912")))
        sums.add(Completion(cost=Decimal("0.0000001")))
    assert sums.cost == Decimal("0.2469121")


def test_the_cost_of_a_step_is_in_the_currency_of_its_calls():
    step = TraceStep(id=1, agent="A", started=NOON)
    step.add(Completion(cost=Decimal(2), currency="EUR"))
    step.add(Completion(currency="USD"))
    assert (step.cost, step.currency) == (2, "EUR")


def test_a_step_of_older_json_has_its_costs():
    text = b'{"id": 1, "agent": "A", "started": "2026-01-01T12:00:00Z", "cost": "0.5", "currency": "EUR"}'
    assert msgspec.json.decode(text, type=TraceStep).costs == {"EUR": Decimal("0.5")}


def test_a_drawing_shows_the_cost_in_each_currency():
    step = TraceStep(id=1, agent="A", started=NOON)
    step.add(Completion(cost=Decimal("0.50"), currency="USD"))
    step.add(Completion(cost=Decimal(2), currency="EUR"))
    assert "0.5 USD, 2 EUR" in mermaid([step])
