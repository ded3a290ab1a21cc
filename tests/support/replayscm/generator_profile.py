"""Do two pools come from the same generator? Figures of one instance, and how far the means of two sets lie apart.

Every figure is one number an instance, so instances are independent draws and the difference of two means has the usual
standard error, from the variance within both sets together: what the sets have in common if nothing has drifted.
Figures that are fixed by the configuration have to be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10, sqrt
from statistics import fmean, variance

from calibrant.audits.replayscm.bounded import (
    LOCAL,
    BoundedAudit,
    Probe,
    all_probes,
    coverage,
    exposure,
    heldout_balance,
    latent_scm,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.replayscm.roots_and_parents import nested_variables
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace


def fixed(problem: Problem) -> dict[str, int]:
    """Return the figures that the configuration fixes."""
    gold, training, heldout = latent_scm(problem), problem.task.training, problem.sealed.heldout
    return {
        "variables": len(problem.task.variables),
        "roots": len(gold.roots),
        "rows of a world": max(world.num_rows for world in problem.worlds),
        "training worlds": len(training.worlds),
        "held-out worlds": len(heldout.worlds),
        "window": problem.sealed.max_predecessors or 0,
    }


def figures(problem: Problem, *, shortcut_floor: int = 3) -> dict[str, float]:
    """Return the figures that vary by instance; shares of intervention worlds, mechanisms or endogenous variables."""
    return {
        **_mechanisms(latent_scm(problem)),
        **_interventions("training", problem.task.training.worlds),
        **_interventions("held-out", problem.sealed.heldout.worlds),
        **_exposure(problem),
        **_support(problem),
        **_openness(problem, shortcut_floor),
    }


def _mechanisms(gold: Scm) -> dict[str, float]:
    formulas = gold.mechanisms.values()
    return {
        "formula size": fmean(formula.size for formula in formulas),
        "parents": fmean(len(formula.variables) for formula in formulas),
        "share of exclusive or of two": fmean(formula.size == 3 for formula in formulas),
    }


def _interventions(split: str, worlds: Iterable[World]) -> dict[str, float]:
    made = [world.intervention for world in worlds if world.intervention.targets]
    numbers = [len(intervention.targets) for intervention in made]
    return {
        f"{split} share hard_assigned": fmean(bool(intervention.assigned) for intervention in made),
        f"{split} targets": fmean(numbers),
        f"{split} share with one target": fmean(number == 1 for number in numbers),
        f"{split} share with four targets": fmean(number == 4 for number in numbers),
    }


def _exposure(problem: Problem) -> dict[str, float]:
    rows = exposure(problem)
    balance = heldout_balance(problem)
    return {
        "scored training worlds": fmean(row.scored_worlds for row in rows),
        "least scored training worlds": min(row.scored_worlds for row in rows),
        "held-out target novelty": balance.mean if balance else 0.0,
        "least held-out target novelty": balance.smallest if balance else 0.0,
    }


def _support(problem: Problem) -> dict[str, float]:
    worlds, gold, audit = problem.task.training.worlds, latent_scm(problem), BoundedAudit(problem)
    windows = {variable: audit.window(variable) for variable in gold.endogenous}
    parents = [Probe(variable, formula.variables) for variable, formula in gold.mechanisms.items()]
    return {
        "local patterns seen": coverage(worlds, all_probes(windows)),
        "patterns of a gold parent set seen": fmean(coverage(worlds, [probe]) for probe in parents),
        "patterns of a window seen": fmean(coverage(worlds, [Probe(v, window)]) for v, window in windows.items()),
        "variables nested like roots": len(nested_variables(problem.task)),
    }


def _openness(problem: Problem, shortcut_floor: int) -> dict[str, float]:
    audit = BoundedAudit(problem)
    counts = {k: VersionSpace(problem.task, ModelClass(k)).count for k in (3, 4, 5)}
    return {
        "variables with a shortcut": sum(s.size is not None for s in audit.shortcuts(floor=shortcut_floor)),
        "local alternatives, log10": log10(1 + sum(finding.found for finding in audit.local_alternatives(LOCAL))),
        **{f"consistent SCMs of at most {k} parents, log10": log10(1 + count) for k, count in counts.items()},
    }


@dataclass(frozen=True, slots=True)
class Distance:
    """Means of one figure in two sets of instances.

    spread: standard error of the difference; 0 where neither set varies
    """

    figure: str
    ours: float
    theirs: float
    spread: float

    @property
    def errors(self) -> float:
        """The difference in standard errors; infinite if there is one that chance cannot make."""
        difference = abs(self.ours - self.theirs)
        return difference / self.spread if self.spread else (inf if difference else 0.0)


def distances(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> list[Distance]:
    """Return the figures of two sets of at least two instances each, one distance a figure."""
    found = []
    for figure in ours[0]:
        one, other = [row[figure] for row in ours], [row[figure] for row in theirs]
        within = (variance(one) * (len(one) - 1) + variance(other) * (len(other) - 1)) / (len(one) + len(other) - 2)
        spread = sqrt(within * (1 / len(one) + 1 / len(other)))
        found.append(Distance(figure, fmean(one), fmean(other), spread))
    return found
