"""Paper-shaped tables: one row per pool and system. The rates and their conventions are in bench.answers.columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import Any, NamedTuple

from bench.answers.columns import COLUMNS, OUTCOMES, UNDEFINED, Means, Verdict, rate_text

SETTINGS = (
    "Ordered",
    "Ord-",
    "Block",
    "Hidden-order",
    "Hid-",
    "Hidden-roots",
    "Hid-Roots",
    "Alt-",
)  # order of rows: the disclosure ladder


class Grouping(Enum):
    """What gets a row of its own besides the system."""

    POOL = "pool"
    SETTING = "setting"
    STRATUM = "stratum"


class Run(NamedTuple):
    """What a table needs to know about one scored answer besides its score.

    config: the options of a protocol, empty for models; outcome and seconds: of a protocol only
    """

    system: str
    pool: str
    pool_digest: str
    pool_size: int
    instance: str
    setting: str
    stratum: str
    config: Mapping[str, Any] = {}
    outcome: str | None = None
    seconds: float | None = None


@dataclass
class Tally:
    """What has been counted for one row. Its memory does not grow with the number of answers, but for their seconds."""

    config: Mapping[str, Any]
    num: int = 0
    pools: dict[str, tuple[str, int]] = field(default_factory=dict)
    values: dict[str, Counter[float]] = field(default_factory=lambda: {c.key: Counter() for c in COLUMNS})
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, run: Run, verdict: Verdict) -> None:
        self.num += 1
        self.pools[run.pool_digest] = run.pool, run.pool_size
        for column in COLUMNS:
            value = column.value(verdict)
            if value is not None:
                self.values[column.key][float(value)] += 1
        if run.outcome is not None:
            self.outcomes[run.outcome] += 1
        if run.seconds is not None:
            self.seconds.append(run.seconds)

    @property
    def num_expected(self) -> int:
        """How many instances its pools have."""
        return sum(size for _, size in self.pools.values())

    def cells(self) -> dict[str, str]:
        made = {c.key: rate_text(self.values[c.key], conditional=c.conditional, decimals=c.decimals) for c in COLUMNS}
        made["structure_scored"] = str(self.values["parent_f1"].total())
        made |= {name: str(self.outcomes[name]) if self.outcomes else UNDEFINED for name in OUTCOMES}
        made["seconds_median"] = f"{median(self.seconds):.4f}" if self.seconds else UNDEFINED
        made["seconds_max"] = f"{max(self.seconds):.4f}" if self.seconds else UNDEFINED
        return made


_Group = tuple[str, str, str, str, str, str]  # setting, pool name, pool digest, system, options, stratum


class CalibrationTable:
    """Collects scored answers and gives the rows; the order in which they are added does not matter."""

    def __init__(self, *, by: Grouping = Grouping.POOL, means: Means = Means.PUBLISHED) -> None:
        self._by = by
        self._means = means
        self._tallies: dict[_Group, Tally] = {}

    def add(self, run: Run, score: Mapping[str, Any]) -> None:
        """Count one answer under the setting that its run names."""
        pool, digest = ("", "") if self._by is Grouping.SETTING else (run.pool, run.pool_digest)
        stratum = run.stratum if self._by is Grouping.STRATUM else ""
        options = repr(sorted(run.config.items()))
        group = run.setting, pool, digest, run.system, options, stratum
        tally = self._tallies.get(group)
        if tally is None:
            tally = self._tallies[group] = Tally(run.config)
        tally.add(run, Verdict(score, run.setting, self._means))

    def rows(self) -> list[dict[str, str]]:
        """One mapping per row, every value as it is printed."""
        return [self._row(group, tally) for group, tally in sorted(self._tallies.items(), key=_place)]

    def _row(self, group: _Group, tally: Tally) -> dict[str, str]:
        setting, _, _, system, _, stratum = group
        names = sorted({name for name, _ in tally.pools.values()})
        row = {"setting": setting, "system": system + self._option_suffix(system, tally.config)}
        row["pool"] = names[0] if len(names) == 1 else f"{len(names)} pools"
        if self._by is Grouping.STRATUM:
            row["stratum"] = stratum or UNDEFINED
        row["n"] = str(tally.num)
        whole = self._by is not Grouping.STRATUM and tally.num_expected
        row["coverage"] = f"{tally.num / tally.num_expected:.3f}" if whole else UNDEFINED
        return row | tally.cells()

    def _option_suffix(self, system: str, config: Mapping[str, Any]) -> str:
        configs = [tally.config for group, tally in self._tallies.items() if group[3] == system]
        return differing_options(config, configs)

    def incomplete(self) -> list[str]:
        """A line for every row that does not cover its pools, and for every row with answers that are crashes."""
        told = []
        for group, tally in sorted(self._tallies.items(), key=_place):
            row = self._row(group, tally)
            if tally.num < tally.num_expected and self._by is not Grouping.STRATUM:
                scored = f"{tally.num} of {tally.num_expected} instances scored for {row['system']}"
                told.append(f"{row['pool']}: {scored}; rates are over those")
            if tally.outcomes["crashed"]:
                crashed = f"{tally.outcomes['crashed']} of {tally.num} answers of {row['system']} are crashes"
                told.append(f"{row['pool']}: {crashed}; rates count them as not valid")
        return told


def differing_options(config: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> str:
    """The options in which the configurations of one system differ, as a suffix of its name; empty for one alone."""
    names = sorted({name for other in configs for name in other})
    differing = [name for name in names if any(other.get(name) != configs[0].get(name) for other in configs)]
    return f" ({', '.join(f'{name}={config.get(name)}' for name in differing)})" if differing else ""


def _place(item: tuple[_Group, Tally]) -> tuple[Any, ...]:
    setting, *rest = item[0]
    return *ladder_place(setting), *(natural(part) for part in rest)


def ladder_place(setting: str) -> tuple[int, str]:
    """Sorts settings by the disclosure ladder."""
    ladder = max((len(prefix), -i) for i, prefix in enumerate(("", *SETTINGS)) if setting.startswith(prefix))
    return -ladder[1], setting


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Sorts numbers inside names by value: n8 before n10."""
    parts = re.split(r"(\d+)", text)
    return tuple((part, 0) if not part.isdecimal() else ("", int(part)) for part in parts)
