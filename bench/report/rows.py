"""Answers to items, grouped as a report shows them: by setting, stratum, pool and system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.report.rate_rows import (
    Grouping,
    differing_names,
    natural,
    option_suffix,
    pool_labels,
)
from calibrant.bench.report.sections import Answer
from calibrant.dsl.errors import in_one_line


class Named(NamedTuple):
    """One scored answer. system: what the report calls it, with the options in which its runs differ"""

    system: str
    origin: AnswerContext
    score: Mapping[str, Any]


@dataclass(frozen=True)
class SettingRow:
    """One system's answers under one setting, of one pool or of all."""

    setting: str
    stratum: str
    system: str
    pools: tuple[str, ...]
    answers: tuple[Named, ...]

    @property
    def items(self) -> tuple[tuple[Named, ...], ...]:
        """The answers to each item together: several are its samples."""
        found: dict[tuple[str, str], list[Named]] = {}
        for one in self.answers:
            found.setdefault((one.origin.pool_digest, one.origin.instance), []).append(one)
        return tuple(map(tuple, found.values()))

    @property
    def pool(self) -> str:
        return self.pools[0] if len(self.pools) == 1 else f"{len(self.pools)} pools"


def named_answers(answers: Iterable[Answer]) -> list[Named]:
    """The answers with what their systems are called; by system, pool and item, however they came in."""
    answers = list(answers)
    configs: dict[str, list[Mapping[str, Any]]] = {}
    for origin, _ in answers:
        configs.setdefault(origin.system, []).append(origin.config)
    differing = {system: differing_names(listed) for system, listed in configs.items()}
    named = [
        Named(in_one_line(origin.system + option_suffix(origin.config, differing[origin.system])), origin, score)
        for origin, score in answers
    ]
    return sorted(named, key=lambda one: (natural(one.system), one.origin.pool_digest, natural(one.origin.instance)))


def setting_rows(answers: Sequence[Named], by: Grouping, measures: MetricSet) -> list[SettingRow]:
    """In the order of the settings, then by stratum, pool and system."""
    labels = pool_labels({one.origin.pool_digest: one.origin.pool for one in answers})
    groups: dict[tuple[str, str, str, str], list[Named]] = {}
    for one in answers:
        digest = one.origin.pool_digest if by is Grouping.POOL else ""
        groups.setdefault((one.origin.setting, one.origin.stratum, digest, one.system), []).append(one)
    rows = [
        SettingRow(
            in_one_line(setting),
            in_one_line(stratum),
            system,
            tuple(sorted({in_one_line(labels[one.origin.pool_digest]) for one in group})),
            tuple(group),
        )
        for (setting, stratum, _, system), group in groups.items()
    ]
    return sorted(
        rows, key=lambda row: (measures.place(row.setting), natural(row.stratum), row.pools, natural(row.system))
    )


def coverage_notes(answers: Sequence[Named]) -> tuple[str, ...]:
    """Return what systems left out of pools, and what crashed."""
    found: dict[tuple[str, str], list[AnswerContext]] = {}
    for one in answers:
        found.setdefault((one.system, one.origin.pool_digest), []).append(one.origin)
    notes = []
    for (system, _), origins in found.items():
        answered = len({origin.instance for origin in origins})
        crashed = sum(origin.outcome == "crashed" for origin in origins)
        pool = in_one_line(origins[0].pool)
        if answered < origins[0].pool_size:
            notes.append(f"{system}: {answered} of {origins[0].pool_size} items of {pool}; rates are over those.")
        if crashed:
            notes.append(f"{crashed} of {len(origins)} answers of {system} to {pool} are crashes; rates count them.")
    return tuple(notes)
