"""Graphs that other libraries learn from a task, as proposals for the exact fitter.

Only the disclosure changes a library's graph: edges may lose, gain or turn their direction, and no parent is added to
make a fit possible. Libraries are imported when a method needs them.

PC and GES (causal-learn) ignore interventions: all rows are treated as observational, which biases both. PC gets the
arcs that the disclosure forbids; GES takes no background knowledge, so its graph is made to agree afterwards.

GIES (gies) searches interventional equivalence classes. The score is of this project: the package's own is for linear
Gaussian models and inverts covariance matrices that are singular if mechanisms have no noise. Its graph is made to
agree with the disclosure afterwards.

Hill climbing (pgmpy) scores each variable on the rows in which it was not set, and gets the forbidden arcs.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.fit import disclosed_constraints
from calibrant.baselines.structure_learning.constraints import (
    Constraints,
    Frame,
    Graph,
    Mask,
    Placement,
    adjacent,
    disclosed_graph,
    graph_from_matrix,
    orient,
)
from calibrant.baselines.structure_learning.scores import LocalScores, NetworkScore, mbde
from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.replayscm.roots_and_parents import nested_variables

# --- From a graph that a library learned to proposals for the exact fitter: roots, and parents of the other variables
Parents: TypeAlias = Mapping[str, tuple[tuple[str, ...], ...]]


class GraphProposal(NamedTuple):
    """Roots and parent sets that a graph proposes.

    roots: in column order, of the disclosed number
    parents: variable that is no root -> parent sets to try, best first
    """

    roots: tuple[str, ...]
    parents: Parents


def dag_proposal(task: Task, frame: Frame, graph: Graph) -> GraphProposal:
    """Propose one parent set per variable, of a DAG in the graph that agrees with the disclosure."""
    roots, constraints = _find_roots(task, frame, graph)
    dag = orient(disclosed_graph(graph, constraints), constraints).dag
    parents = {v: (frame.names(dag[i]),) for i, v in enumerate(frame.variables) if not roots >> i & 1}
    return GraphProposal(frame.names(roots), parents)


def adjacency_proposal(task: Task, frame: Frame, graph: Graph) -> GraphProposal:
    """Propose the parent sets of the DAG, then all adjacent variables that the disclosure allows as parents."""
    roots, constraints = _find_roots(task, frame, graph)
    dag_sets = dag_proposal(task, frame, graph).parents
    neighbours = {v: frame.names(adjacent(graph, i) & constraints.allowed[i]) for i, v in enumerate(frame.variables)}
    parents = {v: tuple(dict.fromkeys((*sets, neighbours[v]))) for v, sets in dag_sets.items()}
    return GraphProposal(frame.names(roots), parents)


def _find_roots(task: Task, frame: Frame, graph: Graph) -> tuple[Mask, Constraints]:
    """Return the roots, learned if they are hidden, and the constraints of roots and disclosure."""
    constraints = disclosed_constraints(task.disclosure, frame.variables)
    disclosed_roots = task.disclosure.roots
    if disclosed_roots is not None:
        return frame.mask(disclosed_roots), constraints
    roots = _learned_roots(task, frame, orient(graph, constraints), task.disclosure.num_roots)
    return roots, constraints.with_roots(roots)


def _learned_roots(task: Task, frame: Frame, learned: Placement, num_roots: int) -> Mask:
    """Return the variables without parents if their number is the disclosed one.

    Otherwise rank all variables: those that the panel admits as roots (columns of ones nested over worlds) first, then
    by number of learned parents, then by the learned order.
    """
    parentless = sum(1 << v for v, parents in enumerate(learned.dag) if not parents)
    if parentless.bit_count() == num_roots:
        return parentless
    nested = frame.mask(nested_variables(task))
    ranked = sorted(learned.order, key=lambda v: (not nested >> v & 1, learned.dag[v].bit_count()))
    return sum(1 << v for v in ranked[:num_roots])


# --- Optional libraries: import, and use of a single thread -----------------------------------------------------------
MAX_REASON_CHARS = 200  # of the message of a failed import


def library(module: str, *, extra: str = "discovery") -> Any:
    """Return a module of an optional library, which has no types; `MissingExtraError` if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name
        why = f"{missing} is missing" if missing else " ".join(str(error).split())[:MAX_REASON_CHARS]
        raise MissingExtraError(
            f"{package} cannot be imported ({why}); run: pip install 'calibrant[{extra}]'"
        ) from None


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: sums are added in a fixed order, and worker processes do not compete.

    Enter it after the libraries are imported, since it acts on loaded thread pools only.
    """
    with _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> Any:
    return library("threadpoolctl").ThreadpoolController()


# --- PC and GES of causal-learn: from the pooled rows of a task to a graph --------------------------------------------
IndependenceTest: TypeAlias = Literal["gsq", "chisq"]
GesScore: TypeAlias = Literal["bdeu", "bic"]

_GES_SCORES = {"bdeu": "local_score_BDeu", "bic": "local_score_BIC"}


def pc_graph(frame: Frame, constraints: Constraints, *, alpha: float = 0.05, test: IndependenceTest = "gsq") -> Graph:
    """Return the CPDAG of PC (Spirtes and Glymour 1991), stable version, given the forbidden arcs.

    alpha: level of the independence tests, "gsq" (likelihood ratio) or "chisq" (Pearson)
    """
    pc = library("causallearn.search.ConstraintBased.PC").pc
    rows = table(frame)
    with one_thread():
        learned = pc(
            rows,
            alpha,
            test,
            background_knowledge=_forbidden(constraints),
            show_progress=False,
            node_names=_node_names(frame.num_vars),
        )
    return _graph(learned.G.graph)


def ges_graph(frame: Frame, *, max_parents: int = 5, score: GesScore = "bdeu") -> Graph:
    """Return the CPDAG of GES (Chickering 2002).

    score: "bdeu" of causal-learn, with one imaginary row and its own structure prior, or "bic" of a linear Gaussian
        model, which is the library's default
    """
    ges = library("causallearn.search.ScoreBased.GES").ges
    rows = table(frame)
    with one_thread(), warnings.catch_warnings(), np.errstate(all="ignore"):
        # mechanisms without noise make residual variances of 0: the logarithm of the "bic" score warns about it
        warnings.simplefilter("ignore", RuntimeWarning)
        learned = ges(rows, _GES_SCORES[score], maxP=max_parents, node_names=_node_names(frame.num_vars))
    return _graph(learned["G"].graph)


def table(frame: Frame) -> npt.NDArray[np.int64]:
    """Return the values of a frame as [rows, variables] of 0 and 1."""
    columns = np.arange(frame.num_vars, dtype=np.uint64)
    return (frame.values[:, None] >> columns & np.uint64(1)).astype(np.int64)


def _node_names(num_vars: int) -> list[str]:
    """Return neutral names, so that the names of a task cannot influence a library."""
    return [f"X{v + 1}" for v in range(num_vars)]


def _forbidden(constraints: Constraints) -> Any:
    """Return background knowledge that forbids every arc outside of the constraints."""
    knowledge = library("causallearn.utils.PCUtils.BackgroundKnowledge").BackgroundKnowledge()
    node = library("causallearn.graph.GraphNode").GraphNode
    nodes = [node(name) for name in _node_names(len(constraints.allowed))]
    for v, allowed in enumerate(constraints.allowed):
        for u in range(len(nodes)):
            if u != v and not allowed >> u & 1:
                knowledge.add_forbidden_by_node(nodes[u], nodes[v])
    return knowledge


def _graph(marks: npt.NDArray[np.int64]) -> Graph:
    """Return the graph of end marks: [j, i] is the mark at j of the edge between i and j, 1 an arrowhead, -1 a tail.

    An edge with two arrowheads counts as undirected, as it states no direction in a DAG.
    """
    edge = marks != 0
    arrow_only_back = (marks == -1) & (marks.T == 1)  # [j, i]: j -> i
    return graph_from_matrix((edge & ~arrow_only_back).T)


# --- GIES of the package gies: from a task's rows and intervention targets to an essential graph ----------------------


def gies_graph(frame: Frame, targets: Sequence[Sequence[int]], *, score: NetworkScore | None = None) -> Graph:
    """Return the interventional essential graph of GIES (Hauser and Bühlmann 2012).

    targets: one list of set variables for each world; lists may be equal
    score: has to give equivalent structures the same score; None for `mbde()`
    """
    family = _DiscreteScore(LocalScores(frame, score or mbde()), [list(target) for target in targets])
    with one_thread():
        matrix, _ = library("gies").fit(family)
    return graph_from_matrix(matrix)


def intervention_targets(panel: Panel) -> list[list[int]]:
    """Return the targets of every world as indices into the panel's variables."""
    return [[panel.variables.index(v) for v in world.intervention.targets] for world in panel.worlds]


class _DiscreteScore:
    """The interface that gies needs of a score: number of variables `p`, targets `interv`, and two methods."""

    def __init__(self, scores: LocalScores, targets: list[list[int]]) -> None:
        self.scores = scores
        self.p = scores.frame.num_vars
        self.interv = targets

    def local_score(self, variable: int, parents: Collection[int]) -> float:
        return self.scores.local(int(variable), sum(1 << int(parent) for parent in parents))

    def full_score(self, matrix: npt.NDArray[np.float64]) -> float:
        return self.scores.total(graph_from_matrix(matrix))


# --- Hill climbing of pgmpy, with pgmpy's own scores: from a task's rows to a DAG -------------------------------------
PgmpyScore: TypeAlias = Literal["bdeu", "bic", "k2"]

_STATES = (0, 1)


def hill_climbing_graph(
    frame: Frame, constraints: Constraints, *, score: PgmpyScore = "bdeu", imaginary_rows: float = 1.0
) -> Graph:
    """Return the DAG of pgmpy's hill climbing from no arcs, with its default list of 100 tabu operations.

    Columns are numbers: pgmpy iterates over a set of arcs, whose order would differ from run to run for strings.

    imaginary_rows: the equivalent sample size of "bdeu"
    """
    discovery = library("pgmpy.causal_discovery")
    forbidden = {
        (u, v)
        for v, allowed in enumerate(constraints.allowed)
        for u in range(frame.num_vars)
        if u != v and not allowed >> u & 1
    }
    rows = library("pandas").DataFrame(table(frame))
    with one_thread():
        search = discovery.HillClimbSearch(
            scoring_method=unclamped_score(frame, score, imaginary_rows),
            max_indegree=constraints.max_parents,
            expert_knowledge=discovery.ExpertKnowledge(forbidden_edges=forbidden),
            return_type="dag",
            show_progress=False,
        ).fit(rows)
    arcs = set(search.causal_graph_.edges())
    return tuple(sum(1 << u for u in range(frame.num_vars) if (u, v) in arcs) for v in range(frame.num_vars))


def unclamped_score(frame: Frame, score: PgmpyScore, imaginary_rows: float) -> Any:
    """Return a pgmpy score that scores each variable on the rows in which it was not set.

    pgmpy's "bdeu" and "k2" are too low for a variable with one observed value and parents, so it gets no parents.
    """
    scores = library("pgmpy.structure_score")
    pandas = library("pandas")
    rows = table(frame)
    states = {v: list(_STATES) for v in range(frame.num_vars)}

    def structure_score(variable: int) -> Any:
        free = rows[(frame.clamped >> np.uint64(variable) & np.uint64(1)) == 0]
        data = pandas.DataFrame(free).astype("category")
        match score:
            case "bdeu":
                return scores.BDeu(data, equivalent_sample_size=imaginary_rows, state_names=states)
            case "bic":
                return scores.BIC(data, state_names=states)
            case "k2":
                return scores.K2(data, state_names=states)

    by_variable = [structure_score(variable) for variable in range(frame.num_vars)]

    class Unclamped(scores.BaseStructureScore):  # type: ignore[misc, name-defined]  # pgmpy has no types
        """Score in the form that pgmpy's search takes: `local_score`, and a uniform prior over structures."""

        def __init__(self) -> None:
            super().__init__(data=pandas.DataFrame(rows), state_names=states)

        def local_score(self, variable: int, parents: Sequence[int]) -> float:
            return float(by_variable[variable].local_score(variable, tuple(sorted(parents))))

    return Unclamped()
