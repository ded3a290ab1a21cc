"""What laboratories are made of: nodes, edges, allowances, what is shown, noise, and the labels that they have."""

from __future__ import annotations

from collections.abc import Sequence

from bench.pools.figures.numbers import Figure, share, span, spread, tally
from dsl.causalab.item import LabItem
from dsl.causalab.reactor import winnable


def figures(items: Sequence[LabItem]) -> dict[str, Figure]:
    return {
        "n": len(items),
        "nodes": span(len(item.task.nodes) for item in items),
        "edges": spread([len(item.sealed.mechanism.edges) for item in items]),
        "allowance": span(item.task.allowance for item in items),
        "settable": span(len(item.task.settable) for item in items),
        "records": span(len(item.task.records) for item in items),
        "traced": span(len(item.task.trace) for item in items),
        "family": tally(item.task.family for item in items),
        "noise": share(item.task.noise for item in items),
        "freq_parent": share(item.task.freq_parent for item in items),
        "target": spread([item.sealed.target for item in items]),
        "winnable": share(winnable(item.sealed.target, item.task.tries) for item in items),
        "members": _labels(items, "members"),
        "fewest_settings": _labels(items, "fewest_settings"),
    }


def _labels(items: Sequence[LabItem], name: str) -> dict[str, float] | None:
    return spread([item.sealed.labels[name] for item in items if name in item.sealed.labels])
