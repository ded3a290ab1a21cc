"""Is the ceiling calibrated on a pool, and how far below it do answers stay.

Calibrated: of the instances for which the prior gives its best answer a probability p, a share p should have it right.
A row of answers is compared with the mean ceiling of the same instances, so an unfinished run is compared fairly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

from audits.replayscm.findings import Ceiling
from bench.audit.records import AuditRecord
from bench.runs.records import config_digest, folder_records
from bench.statistics import Forecast, Reliability, reliability
from dsl.errors import CalibrantError

PRIORS = {None: "uniform", 1: "by size"}  # size penalty -> what the prior is called


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The answers of one protocol, with one set of options, to instances that have a ceiling under a prior.

    heldout_exact: how many are; ceiling: mean of the lower and upper bounds over the same instances
    """

    protocol: str
    config: dict[str, Any]
    prior: str
    number: int
    heldout_exact: int
    ceiling: tuple[float, float]

    @property
    def rate(self) -> float:
        return self.heldout_exact / self.number

    @property
    def below(self) -> float:
        """How far below the upper bound; negative for rows above it."""
        return self.ceiling[1] - self.rate

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rate": self.rate, "below": self.below}


@dataclass(frozen=True)
class Calibration:
    """What the priors say of a pool.

    means: prior -> instances that have a ceiling, and the mean bounds; reliability: prior -> predicted against realised
    rows: answers beside either ceiling
    """

    means: dict[str, tuple[int, float, float]]
    reliability: dict[str, Reliability]
    rows: tuple[AnswerRow, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("number", "lower", "upper")
        means = {prior: dict(zip(names, found, strict=True)) for prior, found in self.means.items()}
        known = {prior: asdict(found) for prior, found in self.reliability.items()}
        return {"ceilings": means, "reliability": known, "answers": [row.to_dict() for row in self.rows]}


def calibration(records: Sequence[AuditRecord], runs: Sequence[Path] = ()) -> Calibration:
    """From the audits of one pool, and the folders of runs on the same pool file."""
    found = {prior: _ceilings(records, penalty) for penalty, prior in PRIORS.items()}
    means = {
        prior: (len(known), fmean(c.lower for c in known.values()), fmean(c.upper for c in known.values()))
        for prior, known in found.items()
        if known
    }
    forecasts = {
        prior: [Forecast(Fraction(c.lower), c.realised) for c in known.values() if c.realised is not None]
        for prior, known in found.items()
    }
    return Calibration(
        means,
        {prior: reliability(listed) for prior, listed in forecasts.items() if listed},
        tuple(row for folder in runs for row in _rows(folder, records, found)),
    )


def _ceilings(records: Sequence[AuditRecord], penalty: int | None) -> dict[str, Ceiling]:
    """Instance -> its ceiling under a prior, of those that have one."""
    listed = [(record.instance, c) for record in records if record.findings for c in record.findings.ceilings]
    return {instance: c for instance, c in listed if c.size_penalty == penalty}


def _rows(folder: Path, records: Sequence[AuditRecord], ceilings: dict[str, dict[str, Ceiling]]) -> list[AnswerRow]:
    """For each protocol and its options, by name. Exact answers are train-exact too, and name the right roots."""
    audited = {(record.pool_digest, record.instance) for record in records}
    exact: dict[tuple[str, str], dict[str, bool]] = {}
    configs: dict[tuple[str, str], dict[str, Any]] = {}
    for record in folder_records(folder):
        if (record.pool_digest, record.instance) in audited:
            group = record.protocol, config_digest(record.config)
            configs[group] = record.config
            exact.setdefault(group, {})[record.instance] = record.score.get("heldoutExact") is True
    if not exact:
        raise CalibrantError(f"{folder}: no answers to this pool's instances; was it run on the same file?")
    return [
        _row(group[0], configs[group], prior, {i: answers[i] for i in answers if i in known}, known)
        for group, answers in sorted(exact.items())
        for prior, known in ceilings.items()
        if not known.keys().isdisjoint(answers)
    ]


def _row(
    protocol: str, config: dict[str, Any], prior: str, answers: dict[str, bool], known: dict[str, Ceiling]
) -> AnswerRow:
    mean = fmean(known[i].lower for i in answers), fmean(known[i].upper for i in answers)
    return AnswerRow(protocol, config, prior, len(answers), sum(answers.values()), mean)
