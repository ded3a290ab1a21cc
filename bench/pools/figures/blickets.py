"""What blicket items are made of: sizes, rules, switches, noise, and the labels that they have."""

from __future__ import annotations

from collections.abc import Sequence

from bench.pools.figures.numbers import Figure, share, span, spread, tally
from dsl.blickets.item import BlicketItem


def figures(items: Sequence[BlicketItem]) -> dict[str, Figure]:
    firsts = [item.sealed.mechanisms[0] for item in items]
    later = [mechanism for item in items for mechanism in item.sealed.mechanisms[1:]]
    steps = [item.labels["steps"] for item in items if "steps" in item.labels]
    return {
        "n": len(items),
        "objects": span(item.task.n for item in items),
        "budget": span(item.task.budget for item in items),
        "first_rule": tally(f"{one.rule.form}-{one.rule.blickets.bit_count()}" for one in firsts),
        "later_rules": tally(f"{one.rule.form}-{one.rule.blickets.bit_count()}" for one in later),
        "switches": span(number for item in items for number in item.sealed.switches),
        "ordered": share(one.order is not None for one in firsts),
        "p": tally(item.sealed.p for item in items),
        "informed": share(item.task.condition is not None for item in items),
        "count": tally(item.task.count for item in items),
        "steps": spread([float(number) for number in steps if _is_number(number)]),
    }


def _is_number(text: str) -> bool:
    """Labels are free texts."""
    return text.replace(".", "", 1).isdecimal() and text.isascii()
