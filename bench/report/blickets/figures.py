"""The plot of a report on blickets: how many answers were earned, by condition and system."""

from __future__ import annotations

from collections.abc import Sequence

from audits.attribution import Kind
from bench.answers.attribution import KEY
from bench.report.blickets.rows import ConditionRow
from bench.report.figures.drawing import drawn_svg, legend, new_figure, plain, style
from bench.report.part import Plot

COLUMNS = 3
COLOURS = {Kind.EARNED: "#2f8f5b", Kind.MISSED: "#b4562b", Kind.LUCKY: "#c79a1b", Kind.SHORT: "#8b95a3"}
CAPTION = (
    "Shares of answers by what the readings had decided: earned and missed where they left one answer, right and"
    " wrong; lucky and short where they left several, right and wrong. A panel for each condition and suite."
)


def kind_shares(rows: Sequence[ConditionRow]) -> dict[str, dict[str, dict[Kind, float]]]:
    """By condition and suite, then system: the share of each kind among the answers that say theirs."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        said = [str(one.score[KEY]["kind"]) for one in row.answers if KEY in one.score]
        if said:
            place = row.setting if row.stratum in ("", row.setting) else f"{row.setting}, {row.stratum}"
            kinds.setdefault(place, {}).setdefault(row.system, []).extend(said)
    return {
        place: {
            system: {kind: listed.count(kind) / len(listed) for kind in Kind} for system, listed in of_systems.items()
        }
        for place, of_systems in kinds.items()
    }


def attribution_plot(rows: Sequence[ConditionRow]) -> Plot | None:
    """Stacked shares; None where no answer has an attribution. `MissingExtraError` without matplotlib."""
    shares = kind_shares(rows)
    if not shares:
        return None
    with style():
        columns = min(COLUMNS, len(shares))
        figure, grid = new_figure(-(-len(shares) // columns), columns, extra=0.8)
        panels = [axes for line in grid for axes in line]
        for axes, (place, of_systems) in zip(panels, shares.items(), strict=False):
            systems = list(of_systems)
            left = [0.0] * len(systems)
            for kind, colour in COLOURS.items():
                widths = [of_systems[system][kind] for system in systems]
                axes.barh(range(len(systems)), widths, left=left, color=colour, label=str(kind))
                left = [start + width for start, width in zip(left, widths, strict=True)]
            axes.set_yticks(range(len(systems)), [plain(system) for system in systems])
            axes.set_xlim(0, 1)
            axes.set_title(plain(place))
            axes.invert_yaxis()
        for axes in panels[len(shares) :]:
            axes.set_visible(False)
        legend(figure, panels[:1])
        return Plot("attribution", "Earned, missed, lucky, short", CAPTION, drawn_svg(figure))
