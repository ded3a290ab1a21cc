"""Overlap of an Alternative-SCM answer with the reference that its item supplies (paper, Tables G.4 and G.5).

Parents are functional ones; depth counts endogenous variables of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.replayscm.scm import Scm, structure_metrics
from calibrant.dsl.replayscm.score import Score

NUM_DEPTHS = 3  # 1, 2, and 3 or deeper


class Overlap(Struct, forbid_unknown_fields=True, frozen=True):
    """An alternative against its reference. Lists have an entry for each depth in the reference: 1, 2, 3 or deeper."""

    f1: Annotated[float, Meta(description="of functional parents against the reference's")]
    exact_map: Annotated[bool, Meta(description="all variables have the reference's parents")]
    local_match: Annotated[float, Meta(description="share of variables with the reference's local function")]
    variables: Annotated[list[int], Meta(description="endogenous variables by depth in the reference")]
    changed_parents: Annotated[list[int], Meta(description="those with other functional parents")]
    changed_function: Annotated[list[int], Meta(description="those with the same parents and another function")]

    @property
    def num_changed(self) -> int:
        return sum(self.changed_parents) + sum(self.changed_function)


def reference_overlap(score: Score) -> Overlap | None:
    """Return the overlap of a valid alternative; None for other answers.

    Also None where a mechanism mentions more variables than a truth table has.
    """
    reference, model = score.problem.task.reference, score.model
    if reference is None or model is None or model.roots != reference.roots:
        return None
    if any(len(f.mentioned) > MAX_TABLE_VARS for f in (*reference.mechanisms.values(), *model.mechanisms.values())):
        return None
    metrics = structure_metrics(reference, model)
    variables, parents, functions = ([0] * NUM_DEPTHS for _ in range(3))
    for variable, depth in depths(reference).items():
        place = min(depth, NUM_DEPTHS) - 1
        answer, stated = model.local_functions[variable], reference.local_functions[variable]
        variables[place] += 1
        parents[place] += answer.parents != stated.parents
        functions[place] += answer.parents == stated.parents and answer != stated
    return Overlap(metrics.f1, metrics.exact_map, metrics.local_match, variables, parents, functions)


def depths(model: Scm) -> Mapping[str, int]:
    """Return the depth of each endogenous variable: 1 without endogenous functional parents, else 1 + the deepest's."""
    by_variable: dict[str, int] = {}
    for variable in model.order:
        parents = model.local_functions[variable].parents
        by_variable[variable] = 1 + max((by_variable.get(parent, 0) for parent in parents), default=0)
    return by_variable
