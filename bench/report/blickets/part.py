"""What a report says of blickets."""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.blickets.figures import attribution_plot
from bench.report.blickets.rows import condition_rows, named_answers
from bench.report.blickets.tables import Items, blicket_tables
from bench.report.part import Answer, Part, ReportContents
from bench.report.rate_rows import Grouping
from dsl.errors import in_one_line

ABOUT = (
    "In brackets: 95 % score (Wilson) intervals of shares and normal intervals of means, over episodes."
    " * stands for a conditional rate over 1 to 5 answers, \N{EN DASH} for one over none."
)


def blicket_part(title: str, answers: Sequence[Answer], wanted: ReportContents, items: Items) -> Part:
    """Tables and plots of these answers; `CalibrantError` if they belong into none of the wanted tables."""
    tables = blicket_tables(answers, wanted, items)
    plot = attribution_plot(condition_rows(named_answers(answers), Grouping.SETTING)) if wanted.with_plots else None
    return Part(
        title,
        ABOUT,
        frozenset(in_one_line(origin.system) for origin, _ in answers),
        tuple(sorted({(in_one_line(origin.pool), origin.pool_digest) for origin, _ in answers})),
        len(answers),
        tables,
        () if plot is None else (plot,),
    )
