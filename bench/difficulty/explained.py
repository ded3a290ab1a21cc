"""Difficulty in words, as JSON and as a page; and the subset of a pool with its error."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.difficulty.features import MEANINGS, item_features
from calibrant.bench.difficulty.logistic import DifficultyFit, HeldOut, fit_difficulty
from calibrant.bench.difficulty.outcomes import OutcomeTable, read_outcomes
from calibrant.bench.difficulty.response_theory import ModelName, ResponseModel, fit_responses
from calibrant.bench.difficulty.subsets import Subset, choose_subset
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pools.parts import write_part
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import PoolError
from calibrant.dsl.parse_limits import TooLargeError, read_bounded
from calibrant.dsl.text import plural

MAX_PRINTED = 20  # items of an item response model


@dataclass(frozen=True)
class Explained:
    """Difficulty of the items of some runs; features: of each item; responses: None if it was not asked for."""

    table: OutcomeTable
    features: Sequence[Mapping[str, float]]
    fit: DifficultyFit
    responses: ResponseModel | None

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        fit = self.fit
        answers, systems = plural(fit.num_answers, "answers"), plural(len(fit.systems), "systems")
        yield f"{answers} of {systems} to {plural(fit.num_items, 'items')}"
        for name, number in fit.left_out.items():
            yield f"left out: {plural(number, 'items')} without {name}"
        yield ""
        rows = [
            [c.feature, f"{c.log_odds:+.3f}", f"{c.mean:.2f}", f"{c.deviation:.2f}", MEANINGS.get(c.feature, "")]
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

    def _response_lines(self, model: ResponseModel) -> Iterator[str]:
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
            "coefficients": [asdict(c) | {"meaning": MEANINGS.get(c.feature, "")} for c in fit.coefficients],
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
        from calibrant.bench.difficulty.page import difficulty_page

        write_atomically(path, difficulty_page(self.table, self.features, self.fit, self.responses))


def _held_out(name: str, figures: HeldOut) -> list[str]:
    return [name, "\N{EN DASH}" if figures.auc is None else f"{figures.auc:.3f}", f"{figures.log_loss:.3f}"]


def explain_difficulty(runs: Sequence[Path], pools: Sequence[Path], model: ModelName | None) -> Explained:
    """Return the difficulty of the items of pools under runs; `CalibrantError` where there is too little."""
    table = read_outcomes(runs, pools)
    responses = None
    if model is not None:
        rows, answers = table.binary()
        responses = fit_responses(answers, model, rows)
    features = [item_features(table.benchmark, item) for item in table.items]
    return Explained(table, features, fit_difficulty(table, features), responses)


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
    table = read_outcomes(runs, [source])
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
