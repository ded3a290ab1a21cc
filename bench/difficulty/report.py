"""Difficulty of items in words, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.bench.difficulty import models
from calibrant.bench.pages.charts import Axis, BarRow, Line, Mark, Panel, bar_rows, panels_svg
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.text import plural

# --- The page of difficulty: bars of the coefficients, success against the strongest feature, and tables --------------
GUESS_AUC = 0.5  # AUC of a model that ranks answers by chance
BAR_LENGTH, SCATTER = 80.0, (400.0, 280.0)  # pixels: length of the longest bar, width and height that fit a phone


def difficulty_page(
    table: models.OutcomeTable,
    features: Sequence[Mapping[str, float]],
    fit: models.DifficultyFit,
    responses: models.ResponseModel | None,
) -> str:
    """Return the page as one HTML file; features: feature -> value, for each item of the table."""
    content = {
        "title": "Which items are hard?",
        "crumbs": ["Difficulty", table.benchmark.title],
        "fit": fit,
        "meanings": models.MEANINGS,
        "reason": difficulty_reason(fit),
        "samples": samples_line(fit) if fit.has_samples else "",
        "bars": Markup(coefficient_bars(fit)),
        "scatter": Markup(success_plot(table, features, fit)),
        "responses": [] if responses is None else _response_rows(table, responses),
        "model": "" if responses is None else responses.name,
    }
    return design_page("difficulty.html", content)


def difficulty_reason(fit: models.DifficultyFit) -> str:
    """Return the reason for difficulty in a sentence or two, or that features predict no better than chance."""
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


def samples_line(fit: models.DifficultyFit) -> str:
    """Return how several answers of a system to an item count."""
    return f"of several answers of a system to an item their mean counts: {plural(fit.num_outcomes, 'means')}"


def coefficient_bars(fit: models.DifficultyFit) -> str:
    """Return bars of log odds; those of features that make items easier point to the right."""
    if not fit.coefficients:
        return ""
    label = "Log odds of a right answer for one standard deviation more: " + ", ".join(
        f"{c.feature} {c.log_odds:+.2f}" for c in fit.coefficients
    )
    rows = [
        BarRow(c.feature, c.log_odds, f"{c.log_odds:+.2f}", "bar-3" if c.log_odds < 0 else "bar-2")
        for c in fit.coefficients
    ]
    return bar_rows(rows, label, length=BAR_LENGTH)


def success_plot(table: models.OutcomeTable, features: Sequence[Mapping[str, float]], fit: models.DifficultyFit) -> str:
    """Return a point for each item: share of right systems against the strongest feature."""
    if not fit.coefficients:
        return ""
    name = fit.coefficients[0].feature
    values = [of.get(name) for of in features]
    rates = np.nanmean(table.rates, axis=1)
    marks = tuple(Mark(v, float(r)) for v, r in zip(values, rates, strict=True) if v is not None)
    label = f"Share of systems that are right by {name}, a point an item: {plural(len(marks), 'items')}"
    panel = Panel("", (Line("", marks, kind="points"),))
    return panels_svg([panel], Axis(name), Axis("share of systems", 0, 1), label, size=SCATTER)


def _response_rows(table: models.OutcomeTable, model: models.ResponseModel) -> list[tuple[str, str, str, str]]:
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


# --- Difficulty in words and as JSON ----------------------------------------------------------------------------------
MAX_PRINTED = 20  # items of an item response model in the terminal


@dataclass(frozen=True)
class Explained:
    """Difficulty of the items of runs; features: of each item; responses: None unless such a model is requested."""

    table: models.OutcomeTable
    features: Sequence[Mapping[str, float]]
    fit: models.DifficultyFit
    responses: models.ResponseModel | None

    def lines(self) -> Iterator[str]:
        """Yield lines for a terminal."""
        fit = self.fit
        answers, systems = plural(fit.num_answers, "answers"), plural(len(fit.systems), "systems")
        yield f"{answers} of {systems} to {plural(fit.num_items, 'items')}"
        if fit.has_samples:
            yield samples_line(fit)
        for name, number in fit.left_out.items():
            yield f"left out: {plural(number, 'items')} without {name}"
        yield ""
        rows = [
            [c.feature, f"{c.log_odds:+.3f}", f"{c.mean:.2f}", f"{c.deviation:.2f}", models.MEANINGS.get(c.feature, "")]
            for c in fit.coefficients
        ]
        yield "Log odds of a right answer for one standard deviation more of a feature, systems apart"
        yield aligned(["feature", "log odds", "mean", "deviation", "meaning"], rows)
        yield ""
        yield "Prediction of a system that was left out, from the others"
        yield aligned(
            ["by", "AUC", "log loss"],
            [_held_out("features", fit.by_features), _held_out("stratum", fit.by_stratum)],
        )
        if self.responses is not None:
            yield ""
            yield from self._response_lines(self.responses)

    def _response_lines(self, model: models.ResponseModel) -> Iterator[str]:
        title = "Rasch difficulties" if model.name == "rasch" else "Difficulties and discriminations"
        yield f"{title}, hardest first; abilities of systems are standard normal"
        if self.fit.has_samples:
            yield "an item is right of a system of which at least half of the answers to it are"
        order = sorted(range(len(model.items)), key=lambda k: -model.difficulty[k])
        rows = [
            [self.table.keys[model.items[k]][1], f"{model.difficulty[k]:+.2f}", f"{model.standard_error[k]:.2f}"]
            + ([f"{model.discrimination[k]:.2f}"] if model.name == "2pl" else [])
            for k in order[:MAX_PRINTED]
        ]
        yield aligned(["item", "difficulty", "s.e.", *(["discrimination"] if model.name == "2pl" else [])], rows)
        if len(order) > MAX_PRINTED:
            yield f"and {len(order) - MAX_PRINTED} more; --json has all"
        if model.constant:
            yield f"{len(model.constant)} items that all systems answered alike have none"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        fit = self.fit
        record: dict[str, Any] = {
            "items": fit.num_items,
            "answers": fit.num_answers,
            "means": fit.num_outcomes,
            "systems": list(fit.systems),
            "left_out": dict(fit.left_out),
            "coefficients": [asdict(c) | {"meaning": models.MEANINGS.get(c.feature, "")} for c in fit.coefficients],
            "held_out": {"features": asdict(fit.by_features), "stratum": asdict(fit.by_stratum)},
        }
        if self.responses is not None:
            model = self.responses
            record["responses"] = {
                "model": model.name,
                "items": [
                    {
                        "item": self.table.keys[row][1],
                        "difficulty": float(model.difficulty[k]),
                        "standard_error": float(model.standard_error[k]),
                        "discrimination": float(model.discrimination[k]),
                    }
                    for k, row in enumerate(model.items)
                ],
                "constant": [self.table.keys[row][1] for row in model.constant],
                "abilities": dict(zip(self.table.systems, map(float, model.ability), strict=True)),
            }
        return record

    def write_page(self, path: Path) -> None:
        """Write the page of difficulty."""
        write_atomically(path, difficulty_page(self.table, self.features, self.fit, self.responses))


def _held_out(name: str, figures: models.HeldOut) -> list[str]:
    return [name, "\N{EN DASH}" if figures.auc is None else f"{figures.auc:.3f}", f"{figures.log_loss:.3f}"]


def explain_difficulty(runs: Sequence[Path], pools: Sequence[Path], model: models.ModelName | None) -> Explained:
    """Return the difficulty of the items of pools under runs; `CalibrantError` for too few systems or items."""
    table = models.read_outcomes(runs, pools)
    responses = None
    if model is not None:
        rows, answers = table.binary()
        responses = models.fit_responses(answers, model, rows)
    features = [models.item_features(table.benchmark, item) for item in table.items]
    return Explained(table, features, models.fit_difficulty(table, features), responses)
