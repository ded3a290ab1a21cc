"""Scoring of Alternative-SCM answers: distinct from the reference, separated by an experiment, shown by a witness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.errors import short_repr
from calibrant.dsl.replayscm.alternatives.separation import Experiment, PairwiseExperiments, Separation
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.text import natural_key


@dataclass(frozen=True)
class AlternativeScore:
    """Verdicts on a valid alternative; None where an earlier check already failed.

    distinct: some variable has other functional parents or another truth table than in the reference
    success: distinct and train-exact
    experiment: the experiment as understood, or what was submitted where it is malformed
    separation, best: of the submitted experiment and of the menu's best one
    """

    distinct: bool
    success: bool
    experiment: Experiment | None
    submitted_experiment: Any
    witness_provided: bool
    failure: str | None
    separation: Separation | None = None
    best: Separation | None = None
    witness_valid: bool | None = None

    @property
    def optimality(self) -> float | None:
        """Disagreement rate over the best of the menu; 0 where nothing separates."""
        if self.separation is None or self.best is None:
            return None
        return self.separation.disagreement_rate / self.best.disagreement_rate if self.best.separates else 0.0

    @property
    def joint(self) -> bool | None:
        """Everything together: the task's `correct`."""
        if self.separation is None:
            return None
        return self.success and self.separation.separates and bool(self.witness_valid)


def score_alternative(
    reference: Scm, alternative: Scm, answer: Mapping[str, Any], *, train_exact: bool
) -> AlternativeScore:
    """Run the Alternative-SCM checks in the published order; the first that fails is named in `failure`."""
    experiment, problem = _experiment(answer.get("experiment"))
    distinct = not alternative.equivalent(reference)
    success = distinct and train_exact
    witness = answer.get("witness")

    def verdict(failure: str | None, **measured: Any) -> AlternativeScore:
        submitted = answer.get("experiment")
        return AlternativeScore(
            distinct, success, experiment, submitted, isinstance(witness, dict), failure, **measured
        )

    if not distinct:
        return verdict("the alternative means the same as the reference")
    if not train_exact:
        return verdict("the alternative does not fit the training worlds exactly")
    if experiment is None:
        return verdict(problem)
    pair = PairwiseExperiments(reference, alternative)
    if experiment not in pair.menu():
        return verdict(
            f"do({short_repr(experiment.variable)}) is not a single-variable intervention on an observed variable"
        )
    separation = pair.separation(experiment)
    shows = _witness_shows(pair, experiment, witness)
    if not separation.separates:
        failure: str | None = "the experiment does not separate the reference from the alternative"
    else:
        failure = None if shows else "the witness does not show a difference that the experiment makes"
    return verdict(failure, separation=separation, best=pair.best(), witness_valid=shows)


def as_bit(value: Any) -> int | None:
    """0 and 1 as the scorer reads them: numbers equal to 0 or 1, booleans, and the texts "0" and "1"."""
    if isinstance(value, str):
        return {"0": 0, "1": 1}.get(value)
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return int(value)
    return None


def _experiment(raw: Any) -> tuple[Experiment | None, str | None]:
    if not isinstance(raw, dict):
        return None, f"the experiment is {short_repr(raw)}, not an object"
    kind = raw.get("type")
    if not isinstance(kind, str) or kind.strip() != "hard_do":
        return None, f"experiment type {short_repr(kind)}; known: 'hard_do'"
    assignments = raw.get("assignments")
    if not isinstance(assignments, dict) or len(assignments) != 1:
        return None, "the experiment has to assign exactly one variable"
    ((variable, value),) = assignments.items()
    bit = as_bit(value)
    if bit is None:
        return None, f"the experiment sets {short_repr(variable)} to {short_repr(value)}; it has to be 0 or 1"
    return Experiment(variable, bit), None


def _witness_shows(pair: PairwiseExperiments, experiment: Experiment, witness: Any) -> bool:
    """Return whether at least one claimed difference is real; entries that are wrong do no harm."""
    if not isinstance(witness, dict) or not isinstance(witness.get("rootAssignment"), dict):
        return False
    stated_bits = {root: as_bit(value) for root, value in witness["rootAssignment"].items()}
    roots = {root: bit for root, bit in stated_bits.items() if bit is not None}  # entries that are no bit are ignored
    differences = witness.get("differences")
    if roots.keys() != set(pair.roots) or not isinstance(differences, list):
        return False
    reference, alternative = pair.values_at(experiment, roots)
    return any(
        isinstance(claim, dict) and _claim_holds(claim, experiment, pair, reference, alternative)
        for claim in differences
    )


def _claim_holds(
    claim: Mapping[str, Any],
    experiment: Experiment,
    pair: PairwiseExperiments,
    reference: Mapping[str, int],
    alternative: Mapping[str, int],
) -> bool:
    variable = claim.get("variable")
    if not isinstance(variable, str) or variable not in pair.reference.mechanisms or variable == experiment.variable:
        return False
    claimed = as_bit(claim.get("reference")), as_bit(claim.get("alternative"))
    return claimed == (reference[variable], alternative[variable]) and claimed[0] != claimed[1]


def told_apart(reference: Scm, alternative: Scm) -> tuple[Separation, dict[str, Any]] | None:
    """Return the best experiment of the menu and a witness for it.

    None if no experiment of the menu tells the two apart.
    """
    pair = PairwiseExperiments(reference, alternative)
    best = pair.best()
    witness = witness_for(pair, best.experiment)
    return None if witness is None else (best, witness)


def witness_for(pair: PairwiseExperiments, experiment: Experiment) -> dict[str, Any] | None:
    """Return a witness for an experiment, at the smallest root assignment that shows a difference.

    None if none does.
    """
    for assignment in range(pair.num_assignments):
        roots = {root: assignment >> i & 1 for i, root in enumerate(pair.roots)}
        reference_values, alternative_values = pair.values_at(experiment, roots)
        differing = [
            v
            for v in pair.reference.endogenous
            if v != experiment.variable and reference_values[v] != alternative_values[v]
        ]
        if differing:
            claims = [
                {"variable": v, "reference": reference_values[v], "alternative": alternative_values[v]}
                for v in sorted(differing, key=natural_key)
            ]
            return {"rootAssignment": roots, "differences": claims}
    return None
