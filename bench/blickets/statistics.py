"""Statistics of blicket items: sizes, rules, switches, noise and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibrant.bench.core.statistics import Column, share, span, spread, tally
from calibrant.dsl.blickets.item import BlicketItem, Mechanism


def _rule(mechanism: Mechanism) -> str:
    return f"{mechanism.rule.form}-{mechanism.rule.blickets.bit_count()}"


def _steps(item: BlicketItem) -> Iterable[float]:
    """Labels are free texts."""
    text = item.labels.get("steps", "")
    return (float(text),) if text.replace(".", "", 1).isdecimal() and text.isascii() else ()


COLUMNS: Mapping[str, Column[BlicketItem]] = {
    "n": Column(lambda item: (True,), len),
    "objects": Column(lambda item: (item.task.n,), span),
    "budget": Column(lambda item: (item.task.budget,), span),
    "first_rule": Column(lambda item: (_rule(item.sealed.mechanisms[0]),), tally),
    "later_rules": Column(lambda item: map(_rule, item.sealed.mechanisms[1:]), tally),
    "switches": Column(lambda item: item.sealed.switches, span),
    "ordered": Column(lambda item: (item.sealed.mechanisms[0].order is not None,), share),
    "p": Column(lambda item: (item.sealed.p,), tally),
    "informed": Column(lambda item: (item.task.condition is not None,), share),
    "count": Column(lambda item: (item.task.count,), tally),
    "steps": Column(_steps, spread),
}
