"""What causal questions are made of: programs, worlds, what is given and asked, and the labels that they have."""

from __future__ import annotations

from collections.abc import Sequence

from bench.pools.figures.numbers import Figure, share, span, spread
from dsl.causim.item import CausimItem


def figures(items: Sequence[CausimItem]) -> dict[str, Figure]:
    questions = [item.task.question for item in items]
    return {
        "n": len(items),
        "programs": len({item.task.source for item in items}),
        "nodes": span(len(item.task.model) for item in items),
        "worlds": spread([item.task.model.worlds for item in items]),
        "unknown_noise": span(len(question.unknown) for question in questions),
        "intervened": span(len(question.do) for question in questions),
        "observed": span(len(question.observed) for question in questions),
        "answers": spread([item.labels.size for item in items]),
        "trivial": share(item.labels.trivial for item in items),
        "effect": share(item.labels.effect_some for item in items),
        "copyable": share(item.labels.copy for item in items),
    }
