"""Merging the contexts of branches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmclient.flows.context import AgentContext


def merge_contexts(keys: Iterable[str], contexts: Sequence[AgentContext]) -> list[AgentContext]:
    """The first context, with the values of these keys from all contexts, in their order.

    Meant for an agent's `merge`: `merge=lambda contexts: merge_contexts(["rating"], contexts)`.
    """
    first = contexts[0]
    for key in keys:
        first.set_all(key, [value for context in contexts for value in context.get_all(key)])
    return [first]
