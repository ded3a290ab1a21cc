"""Printed rows of the paper beside what can be computed: abstention, mixtures, denominators, duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from calibrant.audits.causalab.certificates import NOT_A_MEAN
from calibrant.audits.claims import ClaimStatus, Finding, certify
from calibrant.dsl.causalab.mechanism import Edge, Mechanism
from calibrant.dsl.causalab.score import imec_size, into_frequency
from calibrant.dsl.graph_metrics import edge_scores

NARROW = 0.125  # spread of graph figures that a mixture of perfect and empty records would show
MUCH = 0.25  # accuracy above all graph figures
ROWS_CLAIMED = 50


class PrintedRow(NamedTuple):
    """One row of a table, figures as printed texts by column name."""

    where: str
    figures: Mapping[str, str]


def abstention_finding(row: PrintedRow, graphs: Sequence[frozenset[Edge]]) -> Finding:
    """Return whether a printed row is that of stating the frequency's edges correctly and no other edge.

    graphs: the true edges of every item that the row is about
    """
    scores = [edge_scores(edges, into_frequency(edges)) for edges in graphs]
    abstaining = {
        f"all_edge_{name}": f"{sum(getattr(s, name) for s in scores) / len(scores):.3f}"
        for name in ("precision", "recall", "f1")
    }
    printed = {name: row.figures[name] for name in abstaining}
    is_abstention = printed == abstaining
    figures = "/".join(printed.values())
    agreement = "digit for digit" if is_abstention else "not"
    return Finding(
        "abstention",
        ClaimStatus.PROVED if is_abstention else ClaimStatus.REFUTED,
        row.where,
        f"P/R/F1 {figures} are {agreement} those of correct abstention on all other edges",
        {"graphs": len(graphs), **{f"printed_{k}": v for k, v in printed.items()}, **abstaining},
    )


def mean_class_sizes(mechanisms: Sequence[Mechanism]) -> list[float]:
    """Return the mean size of the interventional equivalence class over mechanisms and all sets of so many properties.

    Position j: j distinct properties set, from none to all of them; the mechanisms have equally many.
    """
    properties = [mechanism.properties for mechanism in mechanisms]
    return [
        fmean(
            imec_size(mechanism.edges, targets)
            for mechanism, names in zip(mechanisms, properties, strict=True)
            for targets in combinations(names, number)
        )
        for number in range(len(properties[0]) + 1)
    ]


def class_size_finding(row: PrintedRow, column: str, sizes: Sequence[float]) -> Finding:
    """Return between which numbers of properties set a printed class size of Table 8 lies; why is left open.

    sizes: of `mean_class_sizes`
    """
    printed = float(row.figures[column])
    most = max((number for number, size in enumerate(sizes) if size >= printed), default=None)
    listed = ", ".join(f"{size:.2f}" for size in sizes)
    place = "above that of none set" if most is None else f"between those of {most} and {most + 1} properties set"
    claim = f"class size {row.figures[column]} lies {place} ({listed} with none, one, .. set)"
    return Finding("class size", ClaimStatus.OPEN, f"{row.where}, {column}", claim, {"printed": printed})


def mixture_finding(row: PrintedRow) -> Finding:
    """Return whether graph figures are so alike that perfect and empty records mixed would explain them.

    An inference only.
    """
    names = ("all_edge_precision", "all_edge_recall", "all_edge_f1", "freq_edge_f1", "freq_weight_f1")
    figures = [float(row.figures[name]) for name in names]
    accuracy = float(row.figures["accuracy_percent"]) / 100
    spread = max(figures) - min(figures)
    alike = spread <= NARROW and accuracy - max(figures) > MUCH
    range_of = f"figures from {min(figures):.3f} to {max(figures):.3f} at {accuracy:.0%} accuracy"
    verdict = "look like perfect and empty records mixed: an inference, no proof" if alike else "show no such mixture"
    claim = f"{range_of} {verdict}"
    data = {"lowest": min(figures), "highest": max(figures), "accuracy": accuracy}
    return Finding("mixture", ClaimStatus.OPEN, row.where, claim, data)


def denominator_findings(rows: Iterable[PrintedRow], column: str = "shd") -> Iterator[Finding]:
    """Yield printed means of whole numbers that no sum over the claimed rows gives, with the denominators that do.

    The evidence of their certificates is {"printed": text, "rows": number}.
    """
    for row in rows:
        printed, claimed = row.figures[column], int(row.figures.get("rows", ROWS_CLAIMED))
        possible = [n for n in range(1, claimed + 1) if _sum_over(printed, n) is not None]
        if claimed in possible:
            continue
        sums = {n: _sum_over(printed, n) for n in possible}
        best = max(possible, default=0)
        evidence = {"printed": printed, "rows": claimed}
        certificate = certify(NOT_A_MEAN, "means of whole numbers", evidence, {"denominators": possible})
        claim = f"{column} {printed} is no mean over {claimed} rows; {sums.get(best)}/{best} is printed so"
        data: dict[str, int | float | str] = {
            "printed": printed,
            "rows": claimed,
            "denominator": best,
            "total": sums.get(best) or 0,
        }
        yield Finding("misprint", ClaimStatus.PROVED, row.where, claim, data, certificate)


def _sum_over(printed: str, rows: int) -> int | None:
    """Return the whole number whose share of the rows is printed so; None if there is none."""
    places = len(printed.partition(".")[2])
    near = round(float(printed) * rows)
    fitting = (total for total in (near, near - 1, near + 1) if f"{total / rows:.{places}f}" == printed)
    return next(fitting, None)
