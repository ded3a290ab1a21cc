"""Statistics of laboratories: nodes, edges, allowances, visible parts, noise and labels."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.bench.core.statistics import Column, share, span, spread, tally
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.reactor import winnable


def _label(name: str) -> Column[LabItem]:
    return Column(lambda item: (item.sealed.labels[name],) if name in item.sealed.labels else (), spread)


COLUMNS: Mapping[str, Column[LabItem]] = {
    "n": Column(lambda item: (True,), len),
    "nodes": Column(lambda item: (len(item.task.nodes),), span),
    "edges": Column(lambda item: (len(item.sealed.mechanism.edges),), spread),
    "allowance": Column(lambda item: (item.task.allowance,), span),
    "settable": Column(lambda item: (len(item.task.settable),), span),
    "records": Column(lambda item: (len(item.task.records),), span),
    "traced": Column(lambda item: (len(item.task.trace),), span),
    "family": Column(lambda item: (item.task.family,), tally),
    "noise": Column(lambda item: (item.task.noise,), share),
    "freq_parent": Column(lambda item: (item.task.freq_parent,), share),
    "target": Column(lambda item: (item.sealed.target,), spread),
    "winnable": Column(lambda item: (winnable(item.sealed.target, item.task.tries),), share),
    "members": _label("members"),
    "fewest_settings": _label("fewest_settings"),
}
