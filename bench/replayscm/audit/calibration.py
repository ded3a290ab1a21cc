"""Is the ceiling calibrated on a pool, and how far below it do answers stay.

Calibrated: of the instances for which the prior gives its best answer a probability p, a share p should have it right.
A row of answers is compared with the mean ceiling of the same instances, so an unfinished run is compared fairly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.verdict import has_heldout
from calibrant.bench.runs.records import config_digest, folder_records
from calibrant.bench.statistics import Forecast, Reliability, reliability
from calibrant.dsl.errors import CalibrantError

WEIGHTS = {None: "uniform", 1: "by size"}  # size penalty -> what the weights of members are called
PRIORS = {
    "generator": "gold drawn by the published process; an estimate",
    "uniform": "every member alike, as no pool is drawn; certified",
    "by size": "members weighed by 2^-size, as no pool is drawn; certified",
}  # what a ceiling is about, and what is assumed


class Bounds(NamedTuple):
    """A ceiling under some prior: the same twice where it is one number; realised as in the audit."""

    lower: float
    upper: float
    realised: bool | None


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
        """Return how far below the upper bound; negative for rows above it."""
        return self.ceiling[1] - self.rate

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rate": self.rate, "below": self.below}


@dataclass(frozen=True)
class Calibration:
    """Calibration of the priors on a pool.

    means: prior -> instances that have a ceiling, and the mean bounds; reliability: prior -> predicted against realised
    rows: answers beside either ceiling
    """

    means: dict[str, tuple[int, float, float]]
    reliability: dict[str, Reliability]
    rows: tuple[AnswerRow, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("number", "lower", "upper")
        means = {prior: dict(zip(names, values, strict=True)) for prior, values in self.means.items()}
        reliability = {prior: asdict(values) for prior, values in self.reliability.items()}
        return {"ceilings": means, "reliability": reliability, "answers": [row.to_dict() for row in self.rows]}


def calibration(records: Sequence[AuditRecord], runs: Sequence[Path] = ()) -> Calibration:
    """From the audits of one pool, and the folders of runs on the same pool file."""
    ceilings = _ceilings(records)
    means = {
        prior: (len(bounds), fmean(c.lower for c in bounds.values()), fmean(c.upper for c in bounds.values()))
        for prior, bounds in ceilings.items()
        if bounds
    }
    forecasts = {
        prior: reliability(Forecast(Fraction(c.lower), c.realised) for c in bounds.values() if c.realised is not None)
        for prior, bounds in ceilings.items()
    }
    return Calibration(
        means,
        {prior: forecast for prior, forecast in forecasts.items() if forecast.number},
        tuple(row for folder in runs for row in _rows(folder, records, ceilings)),
    )


def ceiling_under(prior: str, record: AuditRecord) -> Bounds | None:
    """Return the ceiling of one instance under one of PRIORS; None where there is none."""
    if record.findings is None or record.generator is None:
        return None
    if prior == "generator":
        share = record.generator.probability
        return None if share is None else Bounds(share, share, record.generator.realised)
    ceilings = (c for c in record.findings.ceilings if WEIGHTS[c.size_penalty] == prior)
    return next((Bounds(c.lower, c.upper, c.realised) for c in ceilings), None)


def _ceilings(records: Iterable[AuditRecord]) -> dict[str, dict[str, Bounds]]:
    """Prior -> instance -> its ceiling, of those that have one."""
    ceilings: dict[str, dict[str, Bounds]] = {prior: {} for prior in PRIORS}
    for record in records:
        for prior, by_instance in ceilings.items():
            bounds = ceiling_under(prior, record)
            if bounds is not None:
                by_instance[record.instance] = bounds
    return ceilings


def _rows(folder: Path, records: Sequence[AuditRecord], ceilings: dict[str, dict[str, Bounds]]) -> list[AnswerRow]:
    """For each protocol and its options, by name. Exact answers are train-exact too, and name the right roots."""
    audited = {(record.pool_digest, record.instance) for record in records}
    exact: dict[tuple[str, str], dict[str, bool]] = {}
    configs: dict[tuple[str, str], dict[str, Any]] = {}
    for record in folder_records(folder):
        if (record.pool_digest, record.instance) in audited and has_heldout(record.score, record.setting):
            group = record.protocol, config_digest(record.config)
            configs[group] = record.config
            exact.setdefault(group, {})[record.instance] = record.score.get("heldoutExact") is True
    if not exact:
        raise CalibrantError(f"{folder}: no answers to this pool's instances; was it run on the same file?")
    return [
        _row(group[0], configs[group], prior, {i: answers[i] for i in answers if i in bounds}, bounds)
        for group, answers in sorted(exact.items())
        for prior, bounds in ceilings.items()
        if not bounds.keys().isdisjoint(answers)
    ]


def _row(
    protocol: str, config: dict[str, Any], prior: str, answers: dict[str, bool], bounds: dict[str, Bounds]
) -> AnswerRow:
    mean = fmean(bounds[i].lower for i in answers), fmean(bounds[i].upper for i in answers)
    return AnswerRow(protocol, config, prior, len(answers), sum(answers.values()), mean)
