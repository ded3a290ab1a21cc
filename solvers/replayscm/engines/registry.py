"""Registry of the engines, and choice of the fastest for a task; engines share a contract and no search.

subset_dp   dynamic programming over subsets of the endogenous variables (solvers.acyclic.count)
sat         CNF through python-sat (solvers.replayscm.engines.sat)
smt         bit vectors and integers through pysmt and z3 (solvers.replayscm.engines.smt)
"""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Budget, Outcome, OutOfBudget
from calibrant.solvers.replayscm.engines.contract import Counted, Engine, Enumeration
from calibrant.solvers.replayscm.roots import MAX_ROOT_SETS
from calibrant.solvers.replayscm.space import ModelClass


def create_engine(name: str) -> Engine:
    """Create the engine of that name; its packages are imported only now."""
    match name:
        case "auto":
            return Automatic()
        case "subset_dp":
            from calibrant.solvers.replayscm.engines.subset_dp import SubsetDp

            return SubsetDp()
        case "sat":
            from calibrant.solvers.replayscm.engines.sat import SatMembers

            return Enumeration("sat", SatMembers)
        case "smt":
            from calibrant.solvers.replayscm.engines.smt import SmtMembers

            return Enumeration("smt", SmtMembers)
    raise ValueError(f"no engine '{name}'; there are auto, {', '.join(ENGINES)}")


ENGINES = ("subset_dp", "sat", "smt")
MAX_SUBSET_DP = 13  # variables that may lie on a cycle together; with more the subsets cost more than SAT


def choose_engine(task: Task, model_class: ModelClass) -> Engine:
    """Choose the fastest engine for a task: dynamic programming unless too many variables compete for an order.

    Measured with `python -m calibrant.bench.lab.speed engines`: docs/speed.md has the table for MAX_SUBSET_DP.
    """
    if task.disclosure.num_root_sets() > MAX_ROOT_SETS:  # the others go through them
        return create_engine("sat")
    # cheap bound first: components need the counts of all parent sets
    if task.disclosure.num_unordered <= MAX_SUBSET_DP:
        return create_engine("subset_dp")
    from calibrant.solvers.replayscm.engines.subset_dp import largest_component

    return create_engine("subset_dp" if largest_component(task, model_class) <= MAX_SUBSET_DP else "sat")


@dataclass(frozen=True)
class Automatic:
    """Engine that passes each question to the one that `choose_engine` names for its task."""

    name: str = "auto"

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        return choose_engine(task, model_class).first(task, model_class, budget=budget)

    def second(
        self, task: Task, model_class: ModelClass, excluded: Scm, *, budget: Budget | None = None
    ) -> Outcome[Scm]:
        return choose_engine(task, model_class).second(task, model_class, excluded, budget=budget)

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        return choose_engine(task, model_class).count_up_to(task, model_class, limit, budget=budget)
