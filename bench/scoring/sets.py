"""Scores of sets of k hypotheses for an item: validity, distinctness, and recovery of all consistent hypotheses.

The metrics are those of HypoSpace (arXiv 2510.15614). There all consistent hypotheses are listed; here they are only
counted and may exceed 10^12, so recovery is also reported as a share of what k entries can recover at most. Missing and
unreadable entries count in k.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import fsum, log10
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.answers.rates import mean_if_known
from calibrant.bench.core.attribution import HYPOTHESES, Hypotheses
from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.core.scoring import AnswerContext, Scorable
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.scoring.files import PredictionFile, shown_name
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.json_objects import last_object
from calibrant.dsl.records import items_by_id, pool_digest

FIELD = "hypotheses"  # field with the list, in a line or in the last object of its response
TEXT_FIELDS = ("response", "rawResponse", "text", "completion", "output", "answer")
MISSING = "-"  # stand-in for a missing entry: a text without an answer
MIN_LOG_COUNT = 10**6  # least number of hypotheses that is also given as its decimal logarithm


@dataclass(frozen=True, kw_only=True)
class SetScore:
    """The score of one set.

    size: k; num_read: number of entries that are hypotheses; num_fitting: number of these that fit the evidence
    num_distinct: number of equivalence classes among the fitting entries; count: number of all classes that fit
    mass: share of the members of the version space that are in one of the distinct classes
    draws_mass: expected `mass` of k independent uniform draws of members
    prior: name of a prior, empty if there is none; prior_mass: posterior probability of the distinct entries under it
    draws_prior_mass: expected posterior probability of the distinct ones among k draws from the posterior
    """

    benchmark: str
    system: str
    instance: str
    pool: str
    noun: str
    in_words: str
    size: int
    num_read: int
    num_fitting: int
    num_distinct: int
    count: int
    mass: Fraction
    draws_mass: float = 0.0
    prior: str = ""
    prior_mass: float | None = None
    draws_prior_mass: float | None = None

    @property
    def valid(self) -> float:
        """Share of fitting entries among the k entries."""
        return self.num_fitting / self.size

    @property
    def distinct(self) -> float | None:
        """Number of distinct fitting entries over that of fitting ones; None if none fits."""
        return self.num_distinct / self.num_fitting if self.num_fitting else None

    @property
    def recovery(self) -> float:
        """Share of all classes of fitting hypotheses that the set holds."""
        return float(Fraction(self.num_distinct, self.count)) if self.count else 0.0

    @property
    def reach(self) -> float:
        """Number of distinct fitting entries, divided by the largest number that k entries can hold."""
        return self.num_distinct / min(self.size, self.count) if self.count else 0.0

    @property
    def draws_reach(self) -> float:
        """Expected `reach` of k independent uniform draws of fitting hypotheses."""
        if not self.count:
            return 0.0
        expected = self.count * (1 - (1 - Fraction(1, self.count)) ** self.size)
        return float(expected / min(self.size, self.count))

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict line; the number of hypotheses is a text because it may exceed 64 bits."""
        return {
            "set_size": self.size,
            "instanceId": self.instance,
            "model": self.system,
            "pool": self.pool,
            "benchmark": self.benchmark,
            "read": self.num_read,
            "fitting": self.num_fitting,
            "distinct": self.num_distinct,
            "count": str(self.count),
            "count_log10": log10(self.count) if self.count >= MIN_LOG_COUNT else None,
            "hypotheses": self.noun,
            "class": self.in_words,
            "valid_rate": self.valid,
            "distinct_rate": self.distinct,
            "recovery": self.recovery,
            "reach": self.reach,
            "mass": float(self.mass),
            "draws_reach": self.draws_reach,
            "draws_mass": self.draws_mass,
            "prior": self.prior or None,
            "prior_mass": self.prior_mass,
            "draws_prior_mass": self.draws_prior_mass,
        }


def score_sets(pools: Sequence[Path], predictions: Path, size: int) -> Iterator[SetScore]:
    """Yield the score of every set in a file of predictions, in its order.

    `CalibrantError` names the line of a set that is no list, is longer than `size`, or is given twice
    """
    bench = one_benchmark(pools)
    make = bench.require(HYPOTHESES)
    items = {
        (pool_digest(path), name): item
        for path in pools
        for name, item in items_by_id(bench.items.read_pool(path).items).items()
    }
    scorer = PoolScorer(pools)
    hypotheses: dict[tuple[str, str], Hypotheses] = {}
    with tempfile.TemporaryDirectory(prefix="calibrant-sets-") as folder:
        lines, locations = Path(folder) / "lines.jsonl", []
        with lines.open("w", encoding="utf-8") as file:
            for location, line in _expand_sets(predictions, size):
                locations.append(location)
                file.write(json.dumps(line) + "\n")
        scored = _score_entries(lines, scorer, shown_name(predictions), locations)
        for (system, digest, instance), group in _by_set(scored, size):
            key = (digest, instance)
            if key not in hypotheses:
                hypotheses[key] = make(items[key])
            read_answer = partial(_read_answer, bench.scoring, items[key])
            yield _score_set(hypotheses[key], group, system, instance, read_answer)


class _Entry(NamedTuple):
    """A scored entry of a set, and its answer."""

    context: AnswerContext
    line: Mapping[str, Any]
    answer: Any


def _score_entries(lines: Path, scorer: PoolScorer, name: str, locations: Sequence[str]) -> Iterator[_Entry]:
    """Yield the verdicts on single entries; errors name the line of the user's file, not that of `lines`."""
    try:
        for prediction in Predictions(lines, scorer):
            yield _Entry(*scorer.score(prediction), prediction.answer)
    except CalibrantError as error:
        stated = re.fullmatch(r".*lines\.jsonl: line (\d+): (.*)", str(error), re.DOTALL)
        if stated is None:
            raise
        raise CalibrantError(f"{name}: {locations[int(stated[1]) - 1]}: {stated[2]}") from None


def _expand_sets(predictions: Path, size: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (location of the set, line with one entry) for the k entries of each set; missing ones are MISSING."""
    for location, line in PredictionFile(predictions).objects():
        where = f"{shown_name(predictions)}: {location}"
        if line is None:
            raise CalibrantError(f"{where}: no object")
        entries = _entries(line)
        if entries is None:
            raise CalibrantError(
                f"{where}: no list of hypotheses; give a field '{FIELD}', or a response that holds one"
            )
        if len(entries) > size:
            raise CalibrantError(f"{where}: {len(entries)} hypotheses; --set-size allows {size}, as the prompt stated")
        shared_fields = {name: value for name, value in line.items() if name not in (FIELD, *TEXT_FIELDS)}
        for index in range(size):
            entry = entries[index] if index < len(entries) else MISSING
            text = entry if isinstance(entry, str) else json.dumps(entry)
            yield location, shared_fields | {"response": text if text.strip() else MISSING}


def _entries(line: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(line.get(FIELD), list):
        return list(line[FIELD])
    for name in TEXT_FIELDS:
        value = line.get(name)
        stated = last_object(value) if isinstance(value, str) else value
        if isinstance(stated, Mapping) and isinstance(stated.get(FIELD), list):
            return list(stated[FIELD])
    return None


def _by_set(scored: Iterable[_Entry], size: int) -> Iterator[tuple[tuple[str, str, str], list[_Entry]]]:
    """Yield ((system, pool digest, item), the k scored entries) of each set."""
    scored_sets: set[tuple[str, str, str]] = set()
    group: list[_Entry] = []
    for entry in scored:
        group.append(entry)
        if len(group) == size:
            context = entry.context
            key = (context.system, context.pool_digest, context.instance)
            if key in scored_sets:
                raise CalibrantError(f"{key[0]} has two sets for {short_repr(key[2])}; a set is one line")
            scored_sets.add(key)
            yield key, group
            group = []


def _read_answer(scoring: Scorable[Any], item: Any, answer: Any) -> Mapping[str, Any]:
    """Return an answer as an object, extracted if it is the text of a response; {} if the text has none."""
    if isinstance(answer, Mapping):
        return answer
    try:
        return scoring.extract(item, answer)
    except CalibrantError:
        return {}


def _score_set(
    hypotheses: Hypotheses,
    group: Sequence[_Entry],
    system: str,
    instance: str,
    read_answer: Callable[[Any], Mapping[str, Any]],
) -> SetScore:
    keys = [
        hypotheses.key(entry.line)
        if hypotheses.answer_key is None
        else hypotheses.answer_key(read_answer(entry.answer))
        for entry in group
    ]
    read = [(entry, key) for entry, key in zip(group, keys, strict=True) if key is not None]
    fitting = [(entry, key) for entry, key in read if hypotheses.fits(entry.line, key)]
    distinct = {key: entry.answer for entry, key in reversed(fitting)}
    prior = hypotheses.prior
    return SetScore(
        benchmark=group[0].context.benchmark,
        system=system,
        instance=instance,
        pool=group[0].context.pool,
        noun=hypotheses.noun,
        in_words=hypotheses.in_words,
        size=len(group),
        num_read=len(read),
        num_fitting=len(fitting),
        num_distinct=len(distinct),
        count=hypotheses.count,
        mass=sum((hypotheses.mass(key) for key in distinct), Fraction(0)),
        draws_mass=hypotheses.draws_mass(len(group)),
        prior="" if prior is None else prior.name,
        prior_mass=None if prior is None else fsum(map(prior.probability, map(read_answer, distinct.values()))),
        draws_prior_mass=None if prior is None else prior.draws_mass(len(group)),
    )


# --- Tables of sets: a row for each system, beside the expected values of independent draws ---------------------------
MARK = "set_size"  # field that only verdicts on sets have
RATES = ("valid_rate", "distinct_rate", "recovery", "reach", "draws_reach", "mass", "prior_mass", "draws_prior_mass")
REQUIRED = RATES[:6]  # rates that verdicts of earlier versions have too
LABELS = ("Pool", "System", "n", "k")
HEADINGS = (*LABELS, "Valid", "Distinct", "Recovery", "Reach", "Draws", "Mass", "Prior", "PriorDraws")
MEANINGS = (
    "Valid: entries that fit; Distinct: different ones among these; Recovery: of all that fit; Reach: of the most that",
    "k entries can be; Draws: the same of k independent draws of what fits; Mass: of the members that they stand for;",
    "Prior: posterior probability under the generator's prior, or that of the noise; PriorDraws: of k draws from it.",
)


def is_set_file(path: Path) -> bool:
    """Return whether a file's first line is a verdict on a set."""
    if not path.is_file():
        return False
    try:
        first = next((line for _, line in PredictionFile(path).objects()), None)
    except CalibrantError:  # the file's reader raises it again
        return False
    return isinstance(first, Mapping) and MARK in first


def read_set_lines(paths: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the verdicts in files of sets; `CalibrantError` names any other line."""
    for path in paths:
        for place, line in PredictionFile(path).objects():
            if line is None or any(name not in line for name in (MARK, "model", "pool", *REQUIRED)):
                raise CalibrantError(f"{shown_name(path)}: {place}: no verdict of `calibrant score --set-size`")
            yield line


def group_sets(lines: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, str, int], list[Mapping[str, Any]]]]:
    """Return verdicts grouped and sorted by (pool, system, size of the sets)."""
    groups: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault((str(line["pool"]), str(line["model"]), int(line[MARK])), []).append(line)
    return sorted(groups.items())


def rate_values(lines: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """Return the values of a rate in the verdicts that have it."""
    return [float(line[name]) for line in lines if line.get(name) is not None]


def set_rows(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row of means over items for each pool, system and size of sets; None if no item has the rate."""
    rows = []
    for (pool, system, size), group in group_sets(lines):
        row: dict[str, Any] = {"pool": pool, "system": system, "n": len(group), MARK: size}
        for name in RATES:
            row[name] = mean_if_known(rate_values(group, name))
        rows.append(row)
    return rows


def set_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table and its legend."""
    cells = [
        [
            str(row["pool"]),
            str(row["system"]),
            str(row["n"]),
            str(row[MARK]),
            *(short_rate(row[name]) for name in RATES),
        ]
        for row in rows
    ]
    yield aligned(list(HEADINGS), cells)
    yield from MEANINGS


def short_rate(value: float | None) -> str:
    """Return a rate with three decimals, below 0.001 in scientific notation; a dash for None."""
    if value is None:
        return "\N{EN DASH}"
    return f"{value:.1e}" if 0 < value < 0.001 else f"{value:.3f}"
