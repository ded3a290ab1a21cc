"""Experiments that separate two SCMs: single-variable hard interventions, simulated over every assignment of the roots.

These are the measures of the Alternative-SCM task: share of root assignments with any different prediction, share of
different cells, and the best intervention of the menu (every observed variable, each value).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from calibrant.dsl.formulas.table import projection
from calibrant.dsl.replayscm.evaluator import lay_out, simulate
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column
from calibrant.dsl.text import natural_key


@dataclass(frozen=True, slots=True)
class Experiment:
    """do(variable = value)."""

    variable: str
    value: int

    def to_dict(self) -> dict[str, object]:
        return {"type": "hard_do", "assignments": {self.variable: self.value}}


@dataclass(frozen=True, slots=True)
class Separation:
    """The separation of two SCMs by an experiment.

    disagreement_rate: share of root assignments with at least one different non-target endogenous variable
    cell_rate: different over compared cells
    """

    experiment: Experiment
    disagreement_rate: float
    cell_rate: float

    @property
    def separates(self) -> bool:
        return self.disagreement_rate > 0


class MenuResponses:
    """The responses of one SCM to every experiment of the menu, for pairwise comparison of many SCMs.

    columns: variable -> a bit per experiment and root assignment, experiments one after another in the menu's order
    """

    def __init__(self, model: Scm) -> None:
        self.endogenous = model.endogenous
        self.roots = model.roots
        self.num_assignments = 1 << len(model.roots)
        self.menu = menu(model)
        self._layout = lay_out(model.variables, model.roots, [{e.variable: e.value} for e in self.menu])
        self.columns = self._layout.simulate(model)

    def best(self, alternative: MenuResponses) -> Separation:
        """Return the highest disagreement rate, then the highest cell rate, then the first in the menu."""
        separations = self.separations(alternative)
        return max(separations, key=lambda s: (s.disagreement_rate, s.cell_rate))  # max keeps the first of equals

    def separations(self, alternative: MenuResponses) -> list[Separation]:
        """Return the separation by each experiment of the menu; `ValueError` as of `PairwiseExperiments`."""
        if (self.roots, self.endogenous) != (alternative.roots, alternative.endogenous):
            raise ValueError("the SCMs do not have the same roots and endogenous variables")
        differing = [self.columns[v] ^ alternative.columns[v] for v in self.endogenous]  # a target never differs
        counts = map(self._layout.counts, [reduce(or_, differing, 0), *differing])
        separations = []
        for experiment, rows, *cells_by_variable in zip(self.menu, *counts, strict=True):
            cells = sum(cells_by_variable)
            compared = len(self.endogenous) - (experiment.variable in self.endogenous)
            rate = cells / (compared * self.num_assignments) if compared else 0.0
            separations.append(Separation(experiment, rows / self.num_assignments, rate))
        return separations


def menu(model: Scm) -> tuple[Experiment, ...]:
    """Every observed variable with each value, natural order, 0 before 1."""
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
        """Every variable's values under the experiment, a bit per root assignment."""
        columns = self._contexts | {experiment.variable: self._rows * experiment.value}
        return simulate(model, columns, {experiment.variable: self._rows}, self._rows)

    def separation(self, experiment: Experiment) -> Separation:
        reference_values, alternative_values = (
            self.simulate(self.reference, experiment),
            self.simulate(self.alternative, experiment),
        )
        compared = [v for v in self.reference.endogenous if v != experiment.variable]
        differing = [reference_values[v] ^ alternative_values[v] for v in compared]
        anywhere = 0
        for column in differing:
            anywhere |= column
        cells = len(compared) * self.num_assignments
        different = sum(column.bit_count() for column in differing)
        return Separation(experiment, anywhere.bit_count() / self.num_assignments, different / cells if cells else 0.0)

    def menu(self) -> tuple[Experiment, ...]:
        """Every observed variable with each value, natural order, 0 before 1."""
        return menu(self.reference)

    def separations(self) -> list[Separation]:
        """Return the separation by each experiment of the menu."""
        return MenuResponses(self.reference).separations(MenuResponses(self.alternative))

    def best(self) -> Separation:
        """Return the highest disagreement rate, then the highest cell rate, then the first in the menu."""
        return MenuResponses(self.reference).best(MenuResponses(self.alternative))

    def values_at(self, experiment: Experiment, roots: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Both SCMs' values of every variable at one root assignment."""
        assignment = sum(1 << i for i, root in enumerate(self.roots) if roots[root])
        simulations = (self.simulate(model, experiment) for model in (self.reference, self.alternative))
        reference_values, alternative_values = (
            {v: column >> assignment & 1 for v, column in values.items()} for values in simulations
        )
        return reference_values, alternative_values
