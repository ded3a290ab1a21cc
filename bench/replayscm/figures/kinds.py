"""The plot of kinds for answers to ReplaySCM: earned, missed, lucky and short, by disclosure and system."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.core.attribution import KEY
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.figures.kinds import KindPlot, attribution_plot
from calibrant.bench.report.rate_rows import Grouping
from calibrant.bench.report.rows import Named, named_answers, setting_rows
from calibrant.bench.report.sections import Answer, Plot

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
    rows = setting_rows(named_answers(attributed), Grouping.SETTING, METRICS)
    about = KindPlot("attribution", "Earned, missed, lucky, short", CAPTION, _kind, lambda row: row.setting)
    return attribution_plot(rows, about)


def _kind(answer: Named) -> str | None:
    return str(answer.score[KEY]["kind"])
