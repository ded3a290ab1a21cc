"""The plot of the error profile: what becomes of answers as programs grow, and where wrong ones first go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from calibrant.bench.causim.paper_tables.tables import level_of
from calibrant.bench.causim.verdict import first_reason, is_answered, is_right
from calibrant.bench.pages.design.saved_figures import light
from calibrant.bench.report.answers.named import NamedAnswer
from calibrant.bench.report.figures.drawing import drawn_svg, legend, new_figure, plain, style
from calibrant.bench.report.sections import Plot

RIGHT, UNTOLD, NOTHING = "right", "wrong, no reason by node", "no answer"
COLOURS: Final = {
    RIGHT: light("good"),
    "do ignored": light("warn"),
    "impossible": light("bad"),
    "wrong noise": light("gold"),
    UNTOLD: light("edge"),
    NOTHING: light("sunk"),
}
COLUMNS: Final = 3
_CAPTION = (
    "Share of answers by number of nodes: right, or by the reason of the first node in topological order that is not."
    " Do ignored: an intervened node has another value; impossible: no noise gives the value from the answer's own"
    " parents; wrong noise: some does, none that the evidence allows. Abductions have no reason by node."
)


def fate(score: Mapping[str, Any]) -> str:
    """Return what became of an answer: one of COLOURS."""
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
        shares = by_system.setdefault(system, {}).setdefault(nodes, dict.fromkeys(COLOURS, 0.0))
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
    """Draw a panel for each system, a stacked bar for each number of nodes; `MissingExtraError` without matplotlib."""
    shares = fates(named)
    if not shares:
        return None
    with style():
        columns = min(COLUMNS, len(shares))
        figure, grid = new_figure(-(-len(shares) // columns), columns)
        panels = [axes for line in grid for axes in line]
        for axes, (system, levels) in zip(panels, shares.items(), strict=False):
            low = [0.0] * len(levels)
            for name, colour in COLOURS.items():
                heights = [levels[nodes][name] for nodes in levels]
                axes.bar(range(len(levels)), heights, bottom=low, color=colour, label=name, width=0.8)
                low = [start + height for start, height in zip(low, heights, strict=True)]
            axes.set_xticks(range(len(levels)), [str(nodes) for nodes in levels])
            axes.set_ylim(0, 1)
            axes.set_title(plain(system))
            axes.set_xlabel("nodes")
        for axes in panels[len(shares) :]:
            axes.set_visible(False)
        legend(figure, panels[:1])
        return Plot("causim-profile", "Error profile", _CAPTION, drawn_svg(figure))
