"""ReplaySCM: a whole audit, and whole answers of the rows that are not exact, against variables.

Problems are those of bench.lab.limits.replayscm, their order hidden; an item has MAX_SECONDS.
"""

from __future__ import annotations

from functools import partial

from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.lab.limits.replayscm import sampled
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.bench.protocols.base import Protocol
from calibrant.bench.replayscm.rows.exact import StagedExactSearch
from calibrant.bench.replayscm.rows.listed import MostPosterior
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit

VARIABLES = (10, 12, 16, 20, 30, 40)
MAX_SECONDS = 120.0
PROBLEMS = 3
ROWS: tuple[Protocol, ...] = (StagedExactSearch(), BnlearnThenFit(), MostPosterior())


def sweeps() -> tuple[Sweep, ...]:
    rows = [Curve(row.name, VARIABLES, partial(_answer, row)) for row in ROWS]
    audit = [Curve("audit", VARIABLES, _audit)]
    return (
        Sweep("audit", "a whole audit, order hidden", "variables", audit, PROBLEMS, MAX_SECONDS),
        Sweep("rows", "rows that are not exact, order hidden", "variables", rows, PROBLEMS, MAX_SECONDS),
    )


def _audit(num_variables: int, seed: int) -> Ask:
    problem = sampled(num_variables, seed)

    def ask() -> str | None:
        audit_instance(problem, AuditOptions())
        return None

    return ask


def _answer(row: Protocol, num_variables: int, seed: int) -> Ask:
    task = sampled(num_variables, seed).task

    def ask() -> str | None:
        result = row.answer(task)
        return None if result.answer is not None else result.outcome.replace("_", " ")

    return ask
