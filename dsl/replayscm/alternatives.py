"""The Alternative-SCM task: experiments that separate two SCMs, and scores of an alternative.

An experiment is rated by the share of root assignments with any different prediction, and by the share of different
cells. The menu of experiments sets every observed variable to each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from calibrant.dsl.errors import short_repr
from calibrant.dsl.formulas.table import projection
from calibrant.dsl.replayscm.evaluator import lay_out, simulate
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column
from calibrant.dsl.text import natural_key

# --- Experiments that separate two SCMs: hard interventions on one variable, over every assignment of the roots -------


@dataclass(frozen=True, slots=True)
class Experiment:
    """do(variable = value)."""

    variable: str
    value: int

    def to_dict(self) -> dict[str, object]:
        return {"type": "hard_do", "assignments": {self.variable: self.value}}


@dataclass(frozen=True, slots=True)
class Separation:
    """Rates at which an experiment separates two SCMs.

    disagreement_rate: share of root assignments with at least one different non-target endogenous variable
    cell_rate: share of different cells among those of non-target endogenous variables
    """

    experiment: Experiment
    disagreement_rate: float
    cell_rate: float

    @property
    def separates(self) -> bool:
        return self.disagreement_rate > 0


class MenuResponses:
    """The responses of one SCM to every experiment of the menu, for pairwise comparison of many SCMs.

    columns: variable -> bit column over blocks of root assignments, one block for each experiment of the menu
    """

    def __init__(self, model: Scm) -> None:
        self.endogenous = model.endogenous
        self.roots = model.roots
        self.num_assignments = 1 << len(model.roots)
        self.menu = menu(model)
        self._layout = lay_out(model.variables, model.roots, [{e.variable: e.value} for e in self.menu])
        self.columns = self._layout.simulate(model)

    def best(self, alternative: MenuResponses) -> Separation:
        """Return the separation of highest disagreement rate, then cell rate; of equals the first in the menu."""
        separations = self.separations(alternative)
        return max(separations, key=lambda s: (s.disagreement_rate, s.cell_rate))  # max keeps the first of equals

    def separations(self, alternative: MenuResponses) -> list[Separation]:
        """Return the separation by each experiment of the menu; `ValueError` for SCMs over other variables."""
        if (self.roots, self.endogenous) != (alternative.roots, alternative.endogenous):
            raise ValueError("the SCMs do not have the same roots and endogenous variables")
        differing = [self.columns[v] ^ alternative.columns[v] for v in self.endogenous]  # 0 for a target
        counts = map(self._layout.counts, [reduce(or_, differing, 0), *differing])
        separations = []
        for experiment, rows, *cells_by_variable in zip(self.menu, *counts, strict=True):
            cells = sum(cells_by_variable)
            compared = len(self.endogenous) - (experiment.variable in self.endogenous)
            rate = cells / (compared * self.num_assignments) if compared else 0.0
            separations.append(Separation(experiment, rows / self.num_assignments, rate))
        return separations


def menu(model: Scm) -> tuple[Experiment, ...]:
    """Return the experiments on every observed variable, in natural order, with 0 before 1."""
    names = sorted((*model.roots, *model.endogenous), key=natural_key)
    return tuple(Experiment(name, value) for name in names for value in (0, 1))


class PairwiseExperiments:
    """Two SCMs over the same roots, simulated side by side; root assignment a gives root i the bit (a >> i) & 1."""

    def __init__(self, reference: Scm, alternative: Scm) -> None:
        if reference.roots != alternative.roots or reference.endogenous != alternative.endogenous:
            raise ValueError("the SCMs do not have the same roots and endogenous variables")
        self.reference = reference
        self.alternative = alternative
        self.roots = reference.roots
        self.num_assignments = 1 << len(self.roots)
        self._contexts = {root: projection(i, len(self.roots)).bits for i, root in enumerate(self.roots)}
        self._rows = (1 << self.num_assignments) - 1

    def simulate(self, model: Scm, experiment: Experiment) -> dict[str, Column]:
        """Return the values of every variable under the experiment: variable -> a bit per root assignment."""
        columns = self._contexts | {experiment.variable: self._rows * experiment.value}
        return simulate(model, columns, {experiment.variable: self._rows}, self._rows)

    def separation(self, experiment: Experiment) -> Separation:
        reference_values, alternative_values = (
            self.simulate(self.reference, experiment),
            self.simulate(self.alternative, experiment),
        )
        compared = [v for v in self.reference.endogenous if v != experiment.variable]
        differing = [reference_values[v] ^ alternative_values[v] for v in compared]
        any_differs = 0
        for column in differing:
            any_differs |= column
        cells = len(compared) * self.num_assignments
        different = sum(column.bit_count() for column in differing)
        return Separation(
            experiment, any_differs.bit_count() / self.num_assignments, different / cells if cells else 0.0
        )

    def menu(self) -> tuple[Experiment, ...]:
        """Return the experiments on every observed variable, in natural order, with 0 before 1."""
        return menu(self.reference)

    def separations(self) -> list[Separation]:
        """Return the separation by each experiment of the menu."""
        return MenuResponses(self.reference).separations(MenuResponses(self.alternative))

    def best(self) -> Separation:
        """Return the separation of highest disagreement rate, then cell rate; of equals the first in the menu."""
        return MenuResponses(self.reference).best(MenuResponses(self.alternative))

    def values_at(self, experiment: Experiment, roots: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the values of every variable at one root assignment, of the reference and of the alternative."""
        assignment = sum(1 << i for i, root in enumerate(self.roots) if roots[root])
        simulations = (self.simulate(model, experiment) for model in (self.reference, self.alternative))
        reference_values, alternative_values = (
            {v: column >> assignment & 1 for v, column in values.items()} for values in simulations
        )
        return reference_values, alternative_values


# --- Scoring of Alternative-SCM answers: distinct from the reference, separated by an experiment, shown by a witness


@dataclass(frozen=True)
class AlternativeScore:
    """Verdicts on a valid alternative; fields are None if an earlier check failed.

    distinct: some variable has other functional parents or another truth table than in the reference
    success: distinct and train-exact
    experiment: as parsed, None if malformed; submitted_experiment: as submitted
    failure: the first check that failed, None if none did
    separation, best: of the submitted experiment, and of the best one of the menu
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
        """Disagreement rate over that of the best experiment; 0 if no experiment separates the two."""
        if self.separation is None or self.best is None:
            return None
        return self.separation.disagreement_rate / self.best.disagreement_rate if self.best.separates else 0.0

    @property
    def joint(self) -> bool | None:
        """Whether alternative, experiment and witness are all right: the task's `correct`."""
        if self.separation is None:
            return None
        return self.success and self.separation.separates and bool(self.witness_valid)


def score_alternative(
    reference: Scm, alternative: Scm, answer: Mapping[str, Any], *, train_exact: bool
) -> AlternativeScore:
    """Run the Alternative-SCM checks in the published order; the first that fails is named in `failure`."""
    experiment, problem = _parse_experiment(answer.get("experiment"))
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
    """Return 0 or 1 for a number equal to it, a boolean, "0" or "1", as the published scorer reads them; else None."""
    if isinstance(value, str):
        return {"0": 0, "1": 1}.get(value)
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return int(value)
    return None


def _parse_experiment(raw: Any) -> tuple[Experiment | None, str | None]:
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
    """Return whether at least one claimed difference is real; wrong claims are ignored."""
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


def find_separation(reference: Scm, alternative: Scm) -> tuple[Separation, dict[str, Any]] | None:
    """Return the best experiment of the menu and a witness for it.

    None if no experiment of the menu separates the two.
    """
    pair = PairwiseExperiments(reference, alternative)
    best = pair.best()
    witness = witness_for(pair, best.experiment)
    return None if witness is None else (best, witness)


def witness_for(pair: PairwiseExperiments, experiment: Experiment) -> dict[str, Any] | None:
    """Return a witness for an experiment, at the smallest root assignment that shows a difference.

    None if no assignment does.
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
