"""Difficulty in words, as JSON and as a page; and the subset of a pool that says most about systems.

Items are taken by information, p (1 - p) averaged over fitted abilities. Its error is measured on families of systems
that were left out of choice and fit (as in tinyBenchmarks, Polo et al. 2024): the mean of the pool is estimated from
the answers to the chosen items, and for the others from the ability that these give.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.difficulty import models
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.charts import Axis, BarRow, Line, Mark, Panel, bar_rows, panels_svg
from calibrant.bench.pages.page import design_page
from calibrant.bench.pools.generated import write_part
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.parse_limits import TooLargeError, read_bounded
from calibrant.dsl.text import plural

# --- The page of difficulty: bars of the coefficients, success against the strongest feature, and tables --------------
GUESS_AUC = 0.5  # of a model that ranks answers by chance
BAR_LENGTH, SCATTER = 80.0, (400.0, 280.0)  # of charts, which a phone shows whole: pixels


def difficulty_page(
    table: models.OutcomeTable,
    features: Sequence[Mapping[str, float]],
    fit: models.DifficultyFit,
    responses: models.ResponseModel | None,
) -> str:
    """Return one HTML file; features: of each item of the table."""
    content = {
        "title": "Which items are hard?",
        "crumbs": ["Difficulty", table.benchmark.title],
        "fit": fit,
        "meanings": models.MEANINGS,
        "reason": difficulty_reason(fit),
        "bars": Markup(coefficient_bars(fit)),
        "scatter": Markup(success_plot(table, features, fit)),
        "responses": [] if responses is None else _response_rows(table, responses),
        "model": "" if responses is None else responses.name,
    }
    return design_page("difficulty.html", content)


def difficulty_reason(fit: models.DifficultyFit) -> str:
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


def coefficient_bars(fit: models.DifficultyFit) -> str:
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
    return bar_rows(rows, label, length=BAR_LENGTH)


def success_plot(table: models.OutcomeTable, features: Sequence[Mapping[str, float]], fit: models.DifficultyFit) -> str:
    """Return a point for each item: share of systems that are right against the strongest feature."""
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


# --- A part of a pool that says most about systems, and by how much its estimate of the whole pool's mean is off ------
RANDOM_SUBSETS = 20


@dataclass(frozen=True)
class SubsetError:
    """Absolute error of the estimated mean of a pool over systems that were left out: its mean, and the worst."""

    mean: float
    worst: float


@dataclass(frozen=True)
class Subset:
    """Chosen items, in the pool's order.

    rows: of the table of outcomes; error: of this way of choosing; random_error: of random subsets of equal size
    families: that were left out one at a time
    """

    rows: tuple[int, ...]
    error: SubsetError
    random_error: SubsetError
    families: int


def choose_subset(table: models.OutcomeTable, number: int, families: Mapping[str, str], seed: int = 0) -> Subset:
    """Return the most informative items; `CalibrantError` where nothing can be fitted.

    families: of systems; one that is not named is a family of its own
    """
    rows, answers = table.binary()
    if not 1 <= number < len(rows):
        raise CalibrantError(
            f"{number} items of the {len(rows)} that all systems answered; 1 to {len(rows) - 1} can be taken"
        )
    model = models.fit_responses(answers, "rasch", rows)
    family_of = [families.get(system, system) for system in table.systems]
    names = sorted(set(family_of))
    if len(names) < 2:
        raise CalibrantError(
            "one family of systems: the error is measured on families that are left out, two are needed"
        )
    errors: list[float] = []
    random_errors: list[float] = []
    rng = random.Random(seed)
    for name in names:
        tested = [k for k, family in enumerate(family_of) if family == name]
        fitted_systems = [k for k in range(len(family_of)) if k not in tested]
        inner = models.fit_responses(answers[:, fitted_systems], "rasch", range(len(rows)))
        chosen = _most_informative(inner, number)
        random_subsets = [sorted(rng.sample(range(len(rows)), number)) for _ in range(RANDOM_SUBSETS)]
        for system in tested:
            truth = float(answers[:, system].mean())
            errors.append(abs(_estimate(inner, chosen, answers[:, system], answers[:, fitted_systems]) - truth))
            random_errors += [abs(float(answers[subset, system].mean()) - truth) for subset in random_subsets]
    return Subset(
        tuple(sorted(_most_informative(model, number))), _summary(errors), _summary(random_errors), len(names)
    )


def _most_informative(model: models.ResponseModel, number: int) -> list[int]:
    """Return the most informative fitted items, the first of equals."""
    information = model.information
    order = sorted(range(len(model.items)), key=lambda k: (-information[k], k))
    return [model.items[k] for k in order[:number]]


def _estimate(
    model: models.ResponseModel, chosen: Sequence[int], answers: models.IntArray, fitted_answers: models.IntArray
) -> float:
    """Return the estimated mean over all items of a system that answered the chosen ones.

    fitted_answers: [item, system] of the fitted systems, for items that all of these answered alike
    """
    place = {row: k for k, row in enumerate(model.items)}
    ability = models.estimate_ability(model, [place[row] for row in chosen], answers[list(chosen)])
    predicted = model.probabilities(np.array([ability]))[:, 0]
    answered, total = set(chosen), 0.0
    for row in range(len(answers)):
        if row in answered:
            total += float(answers[row])
        else:
            total += float(predicted[place[row]]) if row in place else float(fitted_answers[row].mean())
    return total / len(answers)


def _summary(errors: Sequence[float]) -> SubsetError:
    return SubsetError(float(np.mean(errors)), float(np.max(errors)))


# --- Difficulty in words, as JSON and as a page; and the subset of a pool with its error ------------------------------
MAX_PRINTED = 20  # items of an item response model


@dataclass(frozen=True)
class Explained:
    """Difficulty of the items of some runs; features: of each item; responses: None if it was not asked for."""

    table: models.OutcomeTable
    features: Sequence[Mapping[str, float]]
    fit: models.DifficultyFit
    responses: models.ResponseModel | None

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        fit = self.fit
        answers, systems = plural(fit.num_answers, "answers"), plural(len(fit.systems), "systems")
        yield f"{answers} of {systems} to {plural(fit.num_items, 'items')}"
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
        """Return everything, ready for JSON."""
        fit = self.fit
        record: dict[str, Any] = {
            "items": fit.num_items,
            "answers": fit.num_answers,
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
        """Write the page."""
        write_atomically(path, difficulty_page(self.table, self.features, self.fit, self.responses))


def _held_out(name: str, figures: models.HeldOut) -> list[str]:
    return [name, "\N{EN DASH}" if figures.auc is None else f"{figures.auc:.3f}", f"{figures.log_loss:.3f}"]


def explain_difficulty(runs: Sequence[Path], pools: Sequence[Path], model: models.ModelName | None) -> Explained:
    """Return the difficulty of the items of pools under runs; `CalibrantError` where there is too little."""
    table = models.read_outcomes(runs, pools)
    responses = None
    if model is not None:
        rows, answers = table.binary()
        responses = models.fit_responses(answers, model, rows)
    features = [models.item_features(table.benchmark, item) for item in table.items]
    return Explained(table, features, models.fit_difficulty(table, features), responses)


@dataclass(frozen=True)
class WrittenSubset:
    """A subset that was written, with its error; names: ids of its items."""

    names: tuple[str, ...]
    num_items: int
    subset: Subset
    path: Path

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        subset = self.subset
        yield f"{len(self.names)} of {plural(self.num_items, 'items')} written to {self.path}"
        yield f"Error of the pool's estimated mean, over {subset.families} families of systems left out in turn"
        rows = [
            [name, f"{error.mean:.3f}", f"{error.worst:.3f}"]
            for name, error in (("these items", subset.error), ("random items", subset.random_error))
        ]
        yield aligned(["from", "mean error", "worst"], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "items": list(self.names),
            "of": self.num_items,
            "families": self.subset.families,
            "error": asdict(self.subset.error),
            "random_error": asdict(self.subset.random_error),
        }


def write_subset(
    source: Path, target: Path, runs: Sequence[Path], number: int, families: Path | None, seed: int
) -> WrittenSubset:
    """Write the most informative items of a pool, in its order."""
    table = models.read_outcomes(runs, [source])
    chosen = choose_subset(table, number, {} if families is None else read_families(families), seed)
    of = benchmark_of(source)
    pool: Any = of.items.read_pool(source)
    names = tuple(table.keys[row][1] for row in chosen.rows)
    chosen_ids = set(names)
    write_part(of, pool, (item for item in pool.items if item.id in chosen_ids), target)
    return WrittenSubset(names, len(pool.items), chosen, target)


def read_families(path: Path) -> Mapping[str, str]:
    """Return the family of each system from a CSV file of two columns, with or without a header line."""
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except (TooLargeError, UnicodeDecodeError) as error:
        raise PoolError(f"no CSV file of system,family: {error}", file=path.name) from None
    families: dict[str, str] = {}
    for number, fields in enumerate(csv.reader(text.splitlines()), 1):
        if not fields or (number == 1 and [field.strip() for field in fields] == ["system", "family"]):
            continue
        if len(fields) != 2 or not fields[0].strip():
            raise PoolError(f"{len(fields)} fields; a line is system,family", file=path.name, instance=f"line {number}")
        families[fields[0].strip()] = fields[1].strip()
    return families
