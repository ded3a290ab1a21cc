"""The page of difficulty: bars of the coefficients, success against the strongest feature, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from markupsafe import Markup

from calibrant.bench.difficulty.features import MEANINGS
from calibrant.bench.difficulty.logistic import DifficultyFit
from calibrant.bench.difficulty.outcomes import OutcomeTable
from calibrant.bench.difficulty.response_theory import ResponseModel
from calibrant.bench.pages.design.page import design_page
from calibrant.bench.pages.design.plots import LETTER, Scale, axis, figure

ROW, HALF = 26, 150  # height of a bar, longest bar
GUESS_AUC = 0.5  # of a model that ranks answers by chance
WIDTH, HEIGHT = 520, 260  # of the scatter plot


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
    most = max(abs(c.log_odds) for c in fit.coefficients) or 1.0
    margin = 24 + 1.15 * max(LETTER * len(c.feature) for c in fit.coefficients)
    middle = margin + HALF + 50
    marks = [f'<line class="rule" x1="{middle:.1f}" x2="{middle:.1f}" y1="4" y2="{ROW * len(fit.coefficients) + 8}"/>']
    for k, c in enumerate(fit.coefficients):
        y, width = 8 + ROW * k, max(1.0, HALF * abs(c.log_odds) / most)
        x = middle if c.log_odds >= 0 else middle - width
        at, anchor = (x + width + 6, "start") if c.log_odds >= 0 else (x - 6, "end")
        marks.append(
            f'<text x="{margin - 8:.1f}" y="{y + 14}" text-anchor="end">{escape(c.feature)}</text>'
            f'<rect class="bar-{3 if c.log_odds < 0 else 2}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="18"/>'
            f'<text x="{at:.1f}" y="{y + 14}" text-anchor="{anchor}">{c.log_odds:+.2f}</text>'
        )
    label = "Log odds of a right answer for one standard deviation more: " + ", ".join(
        f"{c.feature} {c.log_odds:+.2f}" for c in fit.coefficients
    )
    return figure(middle + HALF + 60, ROW * len(fit.coefficients) + 16, label, marks)


def success_plot(table: OutcomeTable, features: Sequence[Mapping[str, float]], fit: DifficultyFit) -> str:
    """Return a point for each item: share of systems that are right against the strongest feature."""
    if not fit.coefficients:
        return ""
    name = fit.coefficients[0].feature
    values = [of.get(name) for of in features]
    rates = np.nanmean(table.rates, axis=1)
    points = [(v, float(r)) for v, r in zip(values, rates, strict=True) if v is not None]
    low, high = min(v for v, _ in points), max(v for v, _ in points)
    across, up = Scale(low, high, 56, WIDTH - 16), Scale(0, 1, HEIGHT - 44, 12)
    marks = list(axis(up, 48, WIDTH - 8))
    marks += [
        f'<text class="soft" x="{across.at(t):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{t:g}</text>'
        for t in across.ticks()
    ]
    marks.append(f'<text x="{WIDTH / 2:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(name)}</text>')
    marks += [
        f'<circle cx="{across.at(v):.1f}" cy="{up.at(r):.1f}" r="4" style="fill:var(--scale-2);fill-opacity:.6"/>'
        for v, r in points
    ]
    label = f"Share of systems that are right by {name}, a point an item: {len(points)} items"
    return figure(WIDTH, HEIGHT, label, marks)


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
