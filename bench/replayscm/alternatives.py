"""Train-exact SCMs of runs that differ from gold, one of each equivalence class, for `calibrant alternatives`.

Two answers to one instance have the same meaning (are equivalent) if they name the same roots, where these are hidden,
and every variable has the same functional parents and truth table. An alternative is a train-exact answer that is not
equivalent to gold (paper, Table F.12). Runs of one protocol that differ only in their seed are one system.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from calibrant.bench.answers.rates import differing_options, natural, pool_labels
from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED, InvalidHandling
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.bench.replayscm.verdict import METRICS, MetricReader
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.pools.official import table_setting
from calibrant.dsl.replayscm.scm import local_function

# --- Train-exact answers of runs, one of each meaning; and how often each system found an alternative -----------------
# allows every operator, because the run has already checked its answers by the item's grammar
ANY_GRAMMAR = Grammar(tuple(OPERATORS), True)
SEED = "seed"
LABELS = ("Setting", "System", "Pool")

Meaning: TypeAlias = bytes


@dataclass(slots=True)
class FoundModel:
    """One meaning (equivalence class) among the answers to an instance.

    answer: shortest answer of this meaning: mechanisms, and roots if hidden; None for gold's meaning
    is_gold: whether it is gold's meaning, None without gold
    heldout_exact: whether it replays the held-out worlds
    found_by: (pool, system with the options in which runs of its protocol differ)
    systems: names of the protocols
    """

    instance: str
    answer: dict[str, Any] | None
    is_gold: bool | None
    heldout_exact: bool
    found_by: set[tuple[str, str]] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)

    def to_dict(self) -> dict[str, Any]:
        found_by = sorted(self.found_by, key=lambda source: (natural(source[1]), source[0]))
        return {
            "instance": self.instance,
            **(self.answer or {}),
            "found_by": [f"{name} on {pool}" for pool, name in found_by],
            "systems": sorted(self.systems, key=natural),
        }


@dataclass
class Discoveries:
    """Distinct answers of one system in one pool.

    runs: names of its configurations; attempted: instances with an answer
    meanings: instance -> meaning -> model, for instances with a train-exact answer
    """

    runs: set[str] = field(default_factory=set)
    attempted: set[str] = field(default_factory=set)
    meanings: dict[str, dict[Meaning, FoundModel]] = field(default_factory=lambda: defaultdict(dict))

    def cells(self) -> dict[str, str]:
        num_solved = len(self.meanings)
        models = [model for by_meaning in self.meanings.values() for model in by_meaning.values()]
        has_gold = all(model.is_gold is not None for model in models)
        num_with_alternative = sum(
            any(not model.is_gold for model in by_meaning.values()) for by_meaning in self.meanings.values()
        )
        not_gold = [model for model in models if not model.is_gold]
        cells = {
            "Runs": str(len(self.runs)),
            "Attempted": str(len(self.attempted)),
            "TrainExact": str(num_solved),
            "Alternatives": str(num_with_alternative),
            "Alt/attempt": _rate(num_with_alternative, len(self.attempted)),
            "Alt/TE": SUPPRESSED if 0 < num_solved <= MAX_SUPPRESSED else _rate(num_with_alternative, num_solved),
            "SCMs": str(len(models)),
            "SCMs/TE": f"{len(models) / num_solved:.2f}" if num_solved else UNDEFINED,
            "most": str(max((len(by_meaning) for by_meaning in self.meanings.values()), default=0)),
            "not gold": str(len(not_gold)),
            "not held-out exact": str(sum(not model.heldout_exact for model in models)),
        }
        unknown = {} if has_gold else dict.fromkeys(("Alternatives", "Alt/attempt", "Alt/TE", "not gold"), UNDEFINED)
        return cells | unknown


class FoundModels:
    """Models found by the runs of a folder, whatever the order of the records."""

    def __init__(self, records: Callable[[], Iterable[Record]]) -> None:
        """Read the records of a run.

        records: yields all records at each call. They are read twice, to hold none in memory; a configuration or pool
            that a run adds between the two readings is left out.
        """
        pools: dict[str, str] = {}
        configs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for record in filter(_is_scm, records()):
            pools[record.pool_digest] = record.pool
            if record.config not in configs[record.protocol]:
                configs[record.protocol].append(record.config)
        self._labels = pool_labels(pools)
        self.models: dict[tuple[str, Meaning], FoundModel] = {}
        self._systems: dict[tuple[str, str, str], Discoveries] = defaultdict(Discoveries)
        for record in filter(_is_scm, records()):
            if record.pool_digest in pools and record.config in configs[record.protocol]:
                self._add(record, configs[record.protocol])

    def _add(self, record: Record, configs: list[Mapping[str, Any]]) -> None:
        name = record.protocol + differing_options(record.config, configs)
        unseeded = [_without_seed(config) for config in configs]
        system = record.protocol + differing_options(_without_seed(record.config), unseeded)
        setting = table_setting(record.pool_digest, record.setting)
        pool = self._labels[record.pool_digest]
        discoveries = self._systems[setting, pool, system]
        discoveries.runs.add(name)
        discoveries.attempted.add(record.instance)
        verdict = MetricReader(record.score, setting, InvalidHandling.PUBLISHED)
        if not verdict.train_exact:
            return
        meaning, is_gold = meaning_of(record.answer), _is_gold(verdict)
        model = FoundModel(record.instance, None if is_gold else record.answer, is_gold, verdict.heldout_exact)
        discoveries.meanings[record.instance].setdefault(meaning, model)
        stored = self.models.setdefault((record.instance, meaning), model)
        if stored.answer is not None:
            stored.answer = min(stored.answer, record.answer, key=_length_key)
        stored.found_by.add((pool, name))
        stored.systems.add(record.protocol)

    def alternatives(self) -> list[FoundModel]:
        """Return the models that are not equivalent to gold, by instance, shortest text first."""
        answered = [(model, model.answer) for model in self.models.values() if model.answer is not None]
        answered.sort(key=lambda pair: (natural(pair[0].instance), _length_key(pair[1])))
        return [model for model, _ in answered]

    def rows(self) -> list[dict[str, str]]:
        """Return a row for every pool and system, in the order of disclosures."""
        keys = sorted(
            self._systems, key=lambda key: (METRICS.setting_order_key(key[0]), natural(key[1]), natural(key[2]))
        )
        return [
            {"Setting": setting, "System": system, "Pool": pool} | self._systems[setting, pool, system].cells()
            for setting, pool, system in keys
        ]

    def json_rows(self) -> list[dict[str, Any]]:
        """Return the rows for JSON, cells as numbers, null where undefined or suppressed."""
        return [{key: text if key in LABELS else _parse_cell(text) for key, text in row.items()} for row in self.rows()]

    def counts(self) -> list[dict[str, Any]]:
        """Return numbers of meanings, alternatives and models not held-out exact, by pool, system and instance."""
        return [
            {
                "pool": pool,
                "system": system,
                "instance": instance,
                "found": len(by_meaning),
                "not_gold": sum(not model.is_gold for model in by_meaning.values()),
                "not_heldout_exact": sum(not model.heldout_exact for model in by_meaning.values()),
            }
            for (_, pool, system), discoveries in sorted(self._systems.items())
            for instance, by_meaning in sorted(discoveries.meanings.items(), key=lambda item: natural(item[0]))
        ]


def meaning_of(answer: Mapping[str, Any]) -> Meaning:
    """Return a key that is equal for two answers to one instance iff they have the same meaning."""
    functions = {variable: local_function(parse(text, ANY_GRAMMAR)) for variable, text in answer["mechanisms"].items()}
    key = [(variable, function.parents, hex(function.table.bits)) for variable, function in sorted(functions.items())]
    return msgspec.msgpack.encode((sorted(answer.get("roots", ())), key))


def _is_scm(record: Record) -> bool:
    return "alternative" not in record.answer


def _is_gold(verdict: MetricReader) -> bool | None:
    """Return whether a train-exact answer is equivalent to gold; None without structure metrics, as without gold."""
    if verdict.root_exact is False:
        return False
    return verdict.structure["local_match"] == 1.0 if verdict.structure else None


def _without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != SEED}


def _length_key(answer: Mapping[str, Any]) -> tuple[int, str]:
    text = repr(sorted(answer["mechanisms"].items()))
    return len(text), text


def _parse_cell(text: str) -> float | None:
    return None if text in (UNDEFINED, SUPPRESSED) else int(text) if text.isdecimal() else float(text)


def _rate(count: int, total: int) -> str:
    return f"{count / total:.3f}" if total else UNDEFINED


# --- What `calibrant alternatives` calls ------------------------------------------------------------------------------


class ScmAlternatives:
    """Implements AlternativesCollectable (bench.pools.capabilities)."""

    def sweep_protocol(self, seed: int) -> Protocol:
        return BnlearnThenFit(seed=seed)

    def collect(self, folders: Sequence[Path]) -> FoundModels:
        return FoundModels(lambda: map(_require_scm, chain.from_iterable(map(folder_records, folders))))


def _require_scm(record: Record) -> Record:
    if isinstance(record.benchmark, str):
        raise CalibrantError(f"a run on a pool of {record.benchmark}; alternatives are SCMs, answers to ReplaySCM")
    return record


ALTERNATIVES = ScmAlternatives()
