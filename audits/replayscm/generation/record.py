"""The audit that an accepted instance carries: how its worlds were found, and what they leave open.

The bounded searches are the paper's (audits.replayscm.bounded), each with the exact number beside it; the counts are
exact for the disclosure of the instance. No solver sees any of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from calibrant.audits.replayscm.bounded import LOCAL, STRONGER, BoundedAudit, LocalFinding, PairFinding, Shortcut
from calibrant.audits.replayscm.exposure import (
    Exposure,
    HeldoutBalance,
    InterventionMix,
    exposure,
    heldout_balance,
    intervention_mix,
)
from calibrant.audits.replayscm.local_patterns import all_probes, coverage
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

CLASSES = (3, 4, 5)  # bounds of the number of functional parents for which members are counted


@dataclass(frozen=True, slots=True)
class Effort:
    """Numbers of attempts until acceptance.

    scms: latent SCMs that were tried; those that can never pass are dropped before and not counted
    populations: of the accepted SCM, and training_sets of the accepted population, the accepted ones included
    """

    scms: int
    populations: int
    training_sets: int


@dataclass(frozen=True, slots=True)
class EvidenceAudit:
    """Alternatives that one set of training worlds leaves open, and its exposure.

    counts: bound of the number of functional parents -> SCMs of that class that fit, any formula size
    bounds: the same, as far as it is certain, where counting ran out of budget
    coverage: share of the local predecessor patterns that rows show
    local: the targeted search; stronger: the audit after generation; pairs along gold's edges; shortcuts
    """

    num_worlds: int
    counts: Mapping[int, int]
    bounds: Mapping[int, Bounds]
    coverage: float
    local: tuple[LocalFinding, ...]
    stronger: tuple[LocalFinding, ...]
    pairs: tuple[PairFinding, ...]
    shortcuts: tuple[Shortcut, ...]
    exposure: tuple[Exposure, ...]
    mix: InterventionMix
    balance: HeldoutBalance | None


@dataclass(frozen=True, slots=True)
class GenerationAudit:
    """The record of one instance.

    stages: training world -> why it is there
    survivors: shortcut functions that fit the seed worlds, then after each step of the reduction, then all worlds
    variables_with_shortcut: the same, in variables
    alternatives: local alternatives before targeted disambiguation, then after each world it added
    base, final: what is open without and with those worlds; the same where none was added
    """

    effort: Effort
    stages: Mapping[str, str]
    survivors: tuple[int, ...]
    variables_with_shortcut: tuple[int, ...]
    alternatives: tuple[int, ...]
    base: EvidenceAudit
    final: EvidenceAudit

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; counts become text, because they exceed the integers of many readers."""
        record: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        for part in ("base", "final"):
            record[part]["counts"] = {k: str(count) for k, count in record[part]["counts"].items()}
            uncounted = record[part].pop("bounds")
            if uncounted:
                record[part]["bounds"] = {k: [str(bound) for bound in bounds] for k, bounds in uncounted.items()}
        return record


def count_members(problem: Problem) -> dict[int, Bounds]:
    """Return how many SCMs fit the training worlds, by bound of the number of functional parents."""
    return {k: VersionSpace(problem.task, ModelClass(k)).bounds for k in CLASSES}


def evidence_audit(stratum: Stratum, problem: Problem) -> EvidenceAudit:
    """Measure one set of training worlds. Reads gold and the latent order."""
    audit = BoundedAudit(problem)
    windows = {variable: audit.window(variable) for variable in audit.gold.endogenous}
    worlds: tuple[World, ...] = problem.task.training.worlds
    bounds_by_parents = count_members(problem)
    return EvidenceAudit(
        len(worlds),
        {k: bounds.lower for k, bounds in bounds_by_parents.items() if bounds.lower == bounds.upper},
        {k: bounds for k, bounds in bounds_by_parents.items() if bounds.lower != bounds.upper},
        coverage(worlds, all_probes(windows)),
        tuple(audit.local_alternatives(LOCAL)),
        tuple(audit.local_alternatives(STRONGER)),
        tuple(audit.coordinated_pairs()),
        tuple(audit.shortcuts(floor=stratum.shortcut_floor)),
        tuple(exposure(problem)),
        intervention_mix(problem),
        heldout_balance(problem),
    )
