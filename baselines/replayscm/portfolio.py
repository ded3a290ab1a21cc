"""Common parts of the structure portfolios: root hypotheses, their constraints, and the fitting of proposals.

A portfolio is a lazy sequence of train-exact models in a fixed order of stages. Who needs one answer takes the first,
and nothing of the later stages is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from calibrant.baselines.replayscm.constraints import disclosed_constraints
from calibrant.baselines.replayscm.fit import Fitter
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Dag, Frame, Mask
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.replayscm.roots import list_root_sets, possible_roots

MAX_HYPOTHESES = 12  # root sets that are looked at after the first stage, best score first

Roots: TypeAlias = tuple[str, ...]


class FittedModel(NamedTuple):
    """A train-exact model and the stage that found it."""

    stage: str
    model: Scm


class RootedDag(NamedTuple):
    """A proposed structure under a root hypothesis, and its network score."""

    roots: Roots
    dag: Dag
    score: float


def root_hypotheses(task: Task) -> list[Roots]:
    """Return the known root set alone.

    Where roots are hidden every set that the panel evidence leaves, or else every set.

    The evidence counts where units are shared and leaves at least one set (solvers.replayscm.roots).
    """
    return list_root_sets(task, possible_roots(task)) or all_root_sets(task)


def all_root_sets(task: Task) -> list[Roots]:
    """Every root set that the disclosure admits, whatever the evidence says."""
    return list_root_sets(task)


def rooted_constraints(task: Task, frame: Frame, roots: Roots, *, max_parents: int) -> Constraints:
    """Return the constraints on a structure under the disclosure and a root hypothesis."""
    return disclosed_constraints(task.disclosure, frame.variables, max_parents=max_parents).with_roots(
        frame.mask(roots)
    )


def by_score(dags: Iterable[RootedDag]) -> list[RootedDag]:
    """Each structure once, by falling score; equal ones in the order given."""
    distinct: dict[tuple[Roots, Dag], RootedDag] = {}
    for dag in dags:
        distinct.setdefault((dag.roots, dag.dag), dag)
    return sorted(distinct.values(), key=lambda dag: -dag.score)


def fitted_dags(fitter: Fitter, frame: Frame, dags: Iterable[RootedDag]) -> Iterator[Scm]:
    """Yield the models of those structures that explain every row, in their order."""
    for roots, dag, _ in dags:
        model = fitter.fit_dag(named_parents(frame, dag), roots)
        if isinstance(model, Scm):
            yield model


def named_parents(frame: Frame, dag: Dag) -> dict[str, tuple[str, ...]]:
    """Return the parents of every variable by name."""
    return {v: frame.names(dag[i]) for i, v in enumerate(frame.variables)}


def named_sets(frame: Frame, sets: Mapping[int, Sequence[Mask]]) -> dict[str, list[tuple[str, ...]]]:
    """Proposed parent sets by name, each once, in their order."""
    return {frame.variables[v]: [frame.names(mask) for mask in dict.fromkeys(masks)] for v, masks in sets.items()}


def best_supported(support: Sequence[float], count: int | None) -> Mask:
    """Return the variables of highest positive support, at most so many if that is given.

    Among equals those that come first.

    support: of one child, per possible parent
    """
    ranked = sorted((v for v, value in enumerate(support) if value > 0), key=lambda v: -support[v])
    return sum(1 << v for v in ranked[:count])
