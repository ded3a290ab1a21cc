"""The most informative subset of a pool, and the error of the pool's mean that is estimated from it.

Items are chosen by information, p (1 - p) averaged over fitted abilities. The error is measured on families of systems
that are left out of choice and fit (as in tinyBenchmarks, Polo et al. 2024): the pool's mean is estimated from the
answers to chosen items and, for other items, from the ability that is estimated from those answers.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.difficulty import models
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.pools.generated import write_part
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.parse_limits import TooLargeError, read_bounded
from calibrant.dsl.text import plural

RANDOM_SUBSETS = 20  # number of random subsets of equal size, whose mean error is stated for comparison


@dataclass(frozen=True)
class SubsetError:
    """Absolute error of a pool's estimated mean, as a share: mean and maximum over systems that were left out."""

    mean: float
    worst: float


@dataclass(frozen=True)
class Subset:
    """Chosen items, in the pool's order.

    rows: rows of the table of outcomes; error: error of this choice; random_error: that of random subsets of equal size
    families: number of families that were left out, one at a time
    """

    rows: tuple[int, ...]
    error: SubsetError
    random_error: SubsetError
    families: int


def choose_subset(table: models.OutcomeTable, number: int, families: Mapping[str, str], seed: int = 0) -> Subset:
    """Return the most informative items; `CalibrantError` if nothing can be fitted.

    number: number of items; families: system -> family; a system without entry is a family of its own
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
    """Return the most informative fitted items, of equal ones the first."""
    information = model.information
    order = sorted(range(len(model.items)), key=lambda k: (-information[k], k))
    return [model.items[k] for k in order[:number]]


def _estimate(
    model: models.ResponseModel, chosen: Sequence[int], answers: models.IntArray, fitted_answers: models.IntArray
) -> float:
    """Return a system's estimated mean over all items from its answers to the chosen ones.

    fitted_answers: [item, system] of the fitted systems, used for items that all of them answered alike
    """
    fitted_index = {row: k for k, row in enumerate(model.items)}
    ability = models.estimate_ability(model, [fitted_index[row] for row in chosen], answers[list(chosen)])
    predicted = model.probabilities(np.array([ability]))[:, 0]
    answered, total = set(chosen), 0.0
    for row in range(len(answers)):
        if row in answered:
            total += float(answers[row])
        else:
            total += float(predicted[fitted_index[row]]) if row in fitted_index else float(fitted_answers[row].mean())
    return total / len(answers)


def _summary(errors: Sequence[float]) -> SubsetError:
    return SubsetError(float(np.mean(errors)), float(np.max(errors)))


@dataclass(frozen=True)
class WrittenSubset:
    """A written subset with its error; names: ids of its items; num_items: number of items of the pool."""

    names: tuple[str, ...]
    num_items: int
    subset: Subset
    path: Path

    def lines(self) -> Iterator[str]:
        """Yield lines for a terminal."""
        subset = self.subset
        yield f"{len(self.names)} of {plural(self.num_items, 'items')} written to {self.path}"
        yield f"Error of the pool's estimated mean, over {subset.families} families of systems left out in turn"
        rows = [
            [name, f"{error.mean:.3f}", f"{error.worst:.3f}"]
            for name, error in (("these items", subset.error), ("random items", subset.random_error))
        ]
        yield aligned(["from", "mean error", "worst"], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
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
    """Write a pool of the most informative items of a pool, in its order."""
    table = models.read_outcomes(runs, [source])
    chosen = choose_subset(table, number, {} if families is None else read_families(families), seed)
    bench = benchmark_of(source)
    pool: Any = bench.items.read_pool(source)
    names = tuple(table.keys[row][1] for row in chosen.rows)
    chosen_ids = set(names)
    write_part(bench, pool, (item for item in pool.items if item.id in chosen_ids), target)
    return WrittenSubset(names, len(pool.items), chosen, target)


def read_families(path: Path) -> Mapping[str, str]:
    """Return the family of each system from a CSV file of two columns, with or without a header."""
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
