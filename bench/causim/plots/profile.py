"""The plot of the error profile: what becomes of answers as programs grow, and where wrong ones first go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from calibrant.bench.causim.paper_tables.tables import level_of
from calibrant.bench.causim.verdict import first_reason, is_answered, is_right
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.report.answers.named import NamedAnswer
from calibrant.bench.report.sections import Plot

RIGHT, UNTOLD, NOTHING = "right", "wrong, no reason by node", "no answer"
PARTS: Final = {
    RIGHT: Part("good"),
    "do ignored": Part("warn"),
    "impossible": Part("bad"),
    "wrong noise": Part("gold"),
    UNTOLD: Part("edge"),
    NOTHING: Part("sunk"),
}
_CAPTION = (
    "Share of answers by number of nodes: right, or by the reason of the first node in topological order that is not."
    " Do ignored: an intervened node has another value; impossible: no noise gives the value from the answer's own"
    " parents; wrong noise: some does, none that the evidence allows. Abductions have no reason by node."
)


def fate(score: Mapping[str, Any]) -> str:
    """Return what became of an answer: one of PARTS."""
    if is_right(score):
        return RIGHT
    return first_reason(score) or UNTOLD if is_answered(score) else NOTHING


def fates(named: Iterable[NamedAnswer]) -> dict[str, dict[int, dict[str, float]]]:
    """By system and number of nodes the share of answers of each fate; a question weighs one."""
    questions: dict[tuple[str, int, str, str], list[str]] = {}
    for answer in named:
        key = answer.system, level_of(answer.context.stratum).nodes, answer.context.pool_digest, answer.context.instance
        questions.setdefault(key, []).append(fate(answer.score))
    by_system: dict[str, dict[int, dict[str, float]]] = {}
    numbers: dict[tuple[str, int], int] = {}
    for (system, nodes, _, _), listed in questions.items():
        shares = by_system.setdefault(system, {}).setdefault(nodes, dict.fromkeys(PARTS, 0.0))
        numbers[system, nodes] = numbers.get((system, nodes), 0) + 1
        for one_fate in listed:
            shares[one_fate] += 1 / len(listed)
    return {
        system: {
            nodes: {name: share / numbers[system, nodes] for name, share in shares.items()}
            for nodes, shares in sorted(levels.items())
        }
        for system, levels in by_system.items()
    }


def profile_plot(named: Iterable[NamedAnswer]) -> Plot | None:
    """Draw a panel for each system, a divided bar for each number of nodes; None without answers."""
    panels = {
        system: {f"{nodes} nodes": list(shares.values()) for nodes, shares in levels.items()}
        for system, levels in fates(named).items()
    }
    if not panels:
        return None
    svg = stacked_svg(panels, PARTS, "Error profile", "share of answers")
    return Plot("causim-profile", "Error profile", _CAPTION, svg)
