"""The page of difficulty: bars of the coefficients, success against the strongest feature, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from calibrant.bench.difficulty.features import MEANINGS
from calibrant.bench.difficulty.logistic import DifficultyFit
from calibrant.bench.difficulty.outcomes import OutcomeTable
from calibrant.bench.difficulty.response_theory import ResponseModel
from calibrant.bench.pages.charts import Axis, BarRow, Line, Mark, Panel, bar_rows, panels_svg
from calibrant.bench.pages.design.page import design_page

GUESS_AUC = 0.5  # of a model that ranks answers by chance


def difficulty_page(
    table: OutcomeTable,
    features: Sequence[Mapping[str, float]],
    fit: DifficultyFit,
    responses: ResponseModel | None,
) -> str:
    """Return one HTML file; features: of each item of the table."""
    content = {
        "title": "Which items are hard?",
        "crumbs": ["Difficulty", table.benchmark.title],
        "fit": fit,
        "meanings": MEANINGS,
        "reason": difficulty_reason(fit),
        "bars": Markup(coefficient_bars(fit)),
        "scatter": Markup(success_plot(table, features, fit)),
        "responses": [] if responses is None else _response_rows(table, responses),
        "model": "" if responses is None else responses.name,
    }
    return design_page("difficulty.html", content)


def difficulty_reason(fit: DifficultyFit) -> str:
    """Return what makes items hard, in a sentence or two; nothing does where a guess predicts as well."""
    if not fit.coefficients:
        return "No feature varies between these items."
    auc = fit.by_features.auc
    if auc is None or auc <= GUESS_AUC:
        measured = "cannot be measured" if auc is None else f"is {auc:.3f}, and a guess has {GUESS_AUC}"
        return f"No feature tells which items are hard: the AUC for systems that were left out {measured}."
    best = fit.coefficients[0]
    more = "harder" if best.log_odds < 0 else "easier"
    gain = fit.by_stratum.log_loss - fit.by_features.log_loss
    words = "better" if gain > 0 else "no better"
    return (
        f"Items with a larger {best.feature} are {more}. Features predict a system that was left out {words} than the"
        f" stratum alone: log loss {fit.by_features.log_loss:.3f} against {fit.by_stratum.log_loss:.3f}."
    )


def coefficient_bars(fit: DifficultyFit) -> str:
    """Return bars of log odds, to the right where a feature makes items easier."""
    if not fit.coefficients:
        return ""
    label = "Log odds of a right answer for one standard deviation more: " + ", ".join(
        f"{c.feature} {c.log_odds:+.2f}" for c in fit.coefficients
    )
    rows = [
        BarRow(c.feature, c.log_odds, f"{c.log_odds:+.2f}", "bar-3" if c.log_odds < 0 else "bar-2")
        for c in fit.coefficients
    ]
    return bar_rows(rows, label)


def success_plot(table: OutcomeTable, features: Sequence[Mapping[str, float]], fit: DifficultyFit) -> str:
    """Return a point for each item: share of systems that are right against the strongest feature."""
    if not fit.coefficients:
        return ""
    name = fit.coefficients[0].feature
    values = [of.get(name) for of in features]
    rates = np.nanmean(table.rates, axis=1)
    marks = tuple(Mark(v, float(r)) for v, r in zip(values, rates, strict=True) if v is not None)
    label = f"Share of systems that are right by {name}, a point an item: {len(marks)} items"
    panel = Panel("", (Line("", marks, kind="points"),))
    return panels_svg([panel], Axis(name), Axis("share of systems", 0, 1), label)


def _response_rows(table: OutcomeTable, model: ResponseModel) -> list[tuple[str, str, str, str]]:
    order = sorted(range(len(model.items)), key=lambda k: -model.difficulty[k])
    return [
        (
            table.keys[model.items[k]][1],
            f"{model.difficulty[k]:+.2f}",
            f"{model.standard_error[k]:.2f}",
            f"{model.discrimination[k]:.2f}",
        )
        for k in order
    ]
