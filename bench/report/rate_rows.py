"""Paper-shaped tables: one row per pool and system. The rates and their conventions are in bench.replayscm.verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.metrics import InvalidHandling, MetricSet
from calibrant.bench.core.rates import UNDEFINED
from calibrant.bench.core.samples import Sample, Sampled, SampleList
from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.tally import Tally, Values


class Grouping(Enum):
    """What gets a row of its own besides the system."""

    POOL = "pool"
    SETTING = "setting"
    STRATUM = "stratum"


_Group = tuple[str, str, str, str, str, str]  # setting, pool name, pool digest, system, options, stratum


class CalibrationTable:
    """Collects scored answers and gives the rows; the order in which they are added does not matter."""

    def __init__(
        self,
        measures: MetricSet = METRICS,
        *,
        by: Grouping = Grouping.POOL,
        means: InvalidHandling = InvalidHandling.PUBLISHED,
    ) -> None:
        self.measures = measures
        self._columns = measures.columns
        self._by = by
        self._means = means
        self._tallies: dict[_Group, Tally] = {}
        self._counted: dict[tuple[str, Hashable], tuple[Values, Sample]] = {}
        self._equal: dict[Values, Values] = {}  # each once: most answers count the same as some other one

    def add(self, origin: AnswerContext, score: Mapping[str, Any]) -> None:
        """Count one answer under the setting that its origin names."""
        self.count(origin, *self.read(origin.setting, score))

    def count(self, origin: AnswerContext, read: Values, sample: Sample) -> None:
        """Count one answer of which this was read."""
        pool, digest = ("", "") if self._by is Grouping.SETTING else (origin.pool, origin.pool_digest)
        stratum = origin.stratum if self._by is Grouping.STRATUM else ""
        options = repr(sorted(origin.config.items()))
        group = origin.setting, pool, digest, origin.system, options, stratum
        tally = self._tallies.get(group)
        if tally is None:
            tally = self._tallies[group] = Tally(origin.config, self._columns)
        item = origin.pool_digest, origin.instance
        tally.pools[origin.pool_digest] = origin.pool, origin.pool_size
        tally.answers.setdefault(item, []).append(read)
        samples = tally.samples.get(item)
        if samples is None:
            samples = tally.samples[item] = SampleList()
        samples.append(sample)
        if origin.outcome is not None:
            tally.outcomes[origin.outcome] += 1
        if origin.seconds is not None:
            tally.seconds.append(origin.seconds)

    def read(self, setting: str, score: Mapping[str, Any]) -> tuple[Values, Sample]:
        """Return what an answer counts in every column, and as one of several samples."""
        if isinstance(score, LazyVerdict):
            found = self._counted.get((setting, score.bulk_key))
            if found is not None:
                return found[0], Sample(*found[1][:-1], score.meaning)
        verdict = self.measures.verdict(score, setting, self._means)
        read = tuple(None if (v := column.value(verdict)) is None else float(v) for column in self._columns)
        made = self._equal.setdefault(read, read), self.measures.sample(verdict)
        if isinstance(score, LazyVerdict):
            self._counted[setting, score.bulk_key] = made
        return made

    def rows(self) -> list[dict[str, str]]:
        """One mapping per row, every value as it is printed."""
        placed = self._placed()
        answered = self._answered(placed)
        return [self._place_cells(place, tally, answered) | tally.cells() for place, tally in placed]

    def figures(self) -> list[dict[str, Any]]:
        """One mapping per row for JSON: numbers as numbers, null for what is undefined or suppressed."""
        made = []
        placed = self._placed()
        answered = self._answered(placed)
        for place, tally in placed:
            labels = {
                key: None if text == UNDEFINED else text
                for key, text in self._place_cells(place, tally, answered).items()
            }
            sizes = [len(answers) for answers in tally.answers.values()]
            numbers = {"n": tally.num_items, "answers": tally.num_answers, "samples": [min(sizes), max(sizes)]}
            numbers["coverage"] = answered[place] / tally.num_expected if labels["coverage"] else None
            digests = {"pools": [{"name": name, "digest": d} for d, (name, _) in sorted(tally.pools.items())]}
            if self.measures.benchmark != METRICS.benchmark:
                labels = {"benchmark": self.measures.benchmark, **labels}
            made.append(labels | numbers | digests | {"options": dict(tally.config)} | tally.figures())
        keys = [column.key for column in self.measures.views["attribution"].metrics]
        if all(row[key] is None for row in made for key in keys):  # asked for by an option, or a matter of episodes
            made = [{key: value for key, value in row.items() if key not in keys} for row in made]
        return made

    def sampled(self) -> list[Sampled]:
        """Every row's samples, for the table of those that have several."""
        return [
            Sampled(
                place.setting,
                place.system,
                place.pool,
                tally.samples,
                {item: self.measures.unit(item[1]) for item in tally.samples},
                self.measures.rights,
            )
            for place, tally in self._placed()
        ]

    def _placed(self) -> list[tuple[_RowPlace, Tally]]:
        """The rows in order, each with how it is called; rows that would be called the same are told apart."""
        configs: dict[str, list[Mapping[str, Any]]] = {}
        for (_, _, _, system, _, _), tally in self._tallies.items():
            configs.setdefault(system, []).append(tally.config)
        differing = {system: differing_names(listed) for system, listed in configs.items()}
        labels = pool_labels({d: name for tally in self._tallies.values() for d, (name, _) in tally.pools.items()})
        made = []
        for group, tally in sorted(self._tallies.items(), key=self._place):
            setting, _, _, system, _, stratum = group
            name = system + option_suffix(tally.config, differing[system])
            names = sorted({labels[digest] for digest in tally.pools})
            made.append(
                (_RowPlace(setting, name, names[0] if len(names) == 1 else f"{len(names)} pools", stratum), tally)
            )
        return made

    def _place(self, item: tuple[_Group, Tally]) -> tuple[Any, ...]:
        setting, *rest = item[0]
        return *self.measures.place(setting), *(natural(part) for part in rest)

    def _place_cells(self, place: _RowPlace, tally: Tally, answered: Mapping[_RowPlace, int]) -> dict[str, str]:
        row = {"setting": place.setting, "system": place.system, "pool": place.pool}
        if self._by is Grouping.STRATUM:
            row["stratum"] = place.stratum or UNDEFINED
        row |= {"n": str(tally.num_items), "samples": tally.num_samples}
        whole = self._by is not Grouping.STRATUM and tally.num_expected
        row["coverage"] = f"{answered[place] / tally.num_expected:.3f}" if whole else UNDEFINED
        return row

    def _answered(self, placed: Sequence[tuple[_RowPlace, Tally]]) -> dict[_RowPlace, int]:
        """Return how many items of its pools each row's system has answered.

        Where rows are of pools, under all settings.
        """
        if self._by is not Grouping.POOL:
            return {place: tally.num_items for place, tally in placed}
        found: Counter[tuple[str, str]] = Counter()
        for place, tally in placed:
            found[place.system, place.pool] += tally.num_items
        return {place: found[place.system, place.pool] for place, _ in placed}

    def incomplete(self) -> list[str]:
        """A line for every row that does not cover its pools, and for every row with answers that are crashes."""
        told: dict[str, None] = {}  # each once, in order
        placed = self._placed()
        answered = self._answered(placed)
        for place, tally in placed:
            if answered[place] < tally.num_expected and self._by is not Grouping.STRATUM:
                scored = f"{answered[place]} of {tally.num_expected} instances scored for {place.system}"
                told[f"{place.pool}: {scored}; rates are over those"] = None
            if tally.outcomes["crashed"]:
                crashed = f"{tally.outcomes['crashed']} of {tally.num_answers} answers of {place.system} are crashes"
                told[f"{place.pool}: {crashed}; rates count them as not valid"] = None
        return list(told)


class _RowPlace(NamedTuple):
    """What a row is called."""

    setting: str
    system: str
    pool: str
    stratum: str


SHORT_DIGEST = 8


def pool_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return what tables call the pools of these digests: the name, with the digest's beginning where two have one
    name.
    """
    times = Counter(names.values())
    return {digest: name if times[name] == 1 else f"{name} ({digest[:SHORT_DIGEST]})" for digest, name in names.items()}


def differing_options(config: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> str:
    """The options in which the configurations of one system differ, as a suffix of its name; empty for one alone."""
    return option_suffix(config, differing_names(configs))


def differing_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The options in which configurations differ."""
    names = sorted({name for other in configs for name in other})
    return [name for name in names if any(other.get(name) != configs[0].get(name) for other in configs)]


def option_suffix(config: Mapping[str, Any], names: Sequence[str]) -> str:
    return f" ({', '.join(f'{name}={config.get(name)}' for name in names)})" if names else ""


def ladder_place(setting: str) -> tuple[int, str]:
    """Sorts ReplaySCM's settings by the disclosure ladder."""
    return METRICS.place(setting)


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Sorts numbers inside names by value: n8 before n10."""
    parts = re.split(r"(\d+)", text)
    return tuple((part, 0) if not part.isdecimal() else ("", int(part)) for part in parts)
