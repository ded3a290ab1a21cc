"""The plot of kinds for answers to ReplaySCM: earned, missed, lucky and short, by disclosure and system."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.core.attribution import KEY
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.figures.kinds import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.rows import Answer, Grouping, section_rows
from calibrant.bench.report.sections import Plot

CAPTION = (
    "Shares of answers by what the training worlds had decided: earned and missed where every SCM that fits them"
    " replays the held-out worlds alike, held-out exact and not; lucky and short where they do not, held-out exact and"
    " not."
)


def kinds_plot(answers: Sequence[Answer]) -> Plot | None:
    """None where no answer has an attribution; `MissingExtraError` without matplotlib."""
    attributed = [(origin, score) for origin, score in answers if score.get(KEY)]
    if not attributed:
        return None
    rows = section_rows(attributed, METRICS, Grouping.SETTING)
    about = KindPlot("attribution", "Earned, missed, lucky, short", CAPTION, KIND_METRICS, lambda row: row.setting)
    return attribution_plot(rows, about)
