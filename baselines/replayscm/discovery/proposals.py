"""From a graph that a library learned to proposals for the exact fitter: roots, and parents of the other variables.

The libraries' graphs are taken as they are: edges only lose, gain or turn their direction where the disclosure decides,
and no parent is ever added to save a fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from calibrant.baselines.replayscm.constraints import disclosed_constraints
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Frame, Mask
from calibrant.baselines.structure_learning.graph import Graph, Placement, adjacent, disclosed_graph, orient
from calibrant.dsl.replayscm.problem import Task
from calibrant.solvers.replayscm.roots import nested_variables

Parents: TypeAlias = Mapping[str, tuple[tuple[str, ...], ...]]


class GraphProposal(NamedTuple):
    """Roots and parent sets that a graph proposes.

    roots: in column order, as many as are disclosed
    parents: for every other variable the parent sets to try, best first
    """

    roots: tuple[str, ...]
    parents: Parents


def dag_proposal(task: Task, frame: Frame, graph: Graph) -> GraphProposal:
    """One parent set per variable: those of the DAG in the graph that agrees with the disclosure."""
    roots, constraints = _find_roots(task, frame, graph)
    dag = orient(disclosed_graph(graph, constraints), constraints).dag
    parents = {v: (frame.names(dag[i]),) for i, v in enumerate(frame.variables) if not roots >> i & 1}
    return GraphProposal(frame.names(roots), parents)


def adjacency_proposal(task: Task, frame: Frame, graph: Graph) -> GraphProposal:
    """After those of the DAG, everything adjacent that the disclosure allows as a parent, whatever its direction."""
    roots, constraints = _find_roots(task, frame, graph)
    of_dag = dag_proposal(task, frame, graph).parents
    around = {v: frame.names(adjacent(graph, i) & constraints.allowed[i]) for i, v in enumerate(frame.variables)}
    return GraphProposal(
        frame.names(roots), {v: tuple(dict.fromkeys((*dag_parents, around[v]))) for v, dag_parents in of_dag.items()}
    )


def _find_roots(task: Task, frame: Frame, graph: Graph) -> tuple[Mask, Constraints]:
    """Return the roots, learned where they are hidden, and the constraints that they and the disclosure make."""
    constraints = disclosed_constraints(task.disclosure, frame.variables)
    disclosed_roots = task.disclosure.roots
    if disclosed_roots is not None:
        return frame.mask(disclosed_roots), constraints
    roots = _learned_roots(task, frame, orient(graph, constraints), task.disclosure.num_roots)
    return roots, constraints.with_roots(roots)


def _learned_roots(task: Task, frame: Frame, learned: Placement, num_roots: int) -> Mask:
    """Return the variables without parents, if they are as many as disclosed.

    Otherwise those come first that can be roots by the panel (columns of ones that are nested over worlds), and among
    equals those with fewer learned parents, then those that come earlier in the learned order.
    """
    parentless = sum(1 << v for v, parents in enumerate(learned.dag) if not parents)
    if parentless.bit_count() == num_roots:
        return parentless
    nested = frame.mask(nested_variables(task))
    ranked = sorted(learned.order, key=lambda v: (not nested >> v & 1, learned.dag[v].bit_count()))
    return sum(1 << v for v in ranked[:num_roots])
