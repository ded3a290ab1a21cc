"""PC and GES as causal-learn has them: from the pooled rows of a task to a graph.

Neither knows interventions: all rows are taken as if nobody had set anything, which biases both. PC is told what the
disclosure forbids; causal-learn's GES takes no background knowledge, so its graph is made to agree afterwards.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.discovery.extras import library, one_thread
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Frame
from calibrant.baselines.structure_learning.graph import Graph, graph_from_matrix

IndependenceTest: TypeAlias = Literal["gsq", "chisq"]
GesScore: TypeAlias = Literal["bdeu", "bic"]

_GES_SCORES = {"bdeu": "local_score_BDeu", "bic": "local_score_BIC"}


def pc_graph(frame: Frame, constraints: Constraints, *, alpha: float = 0.05, test: IndependenceTest = "gsq") -> Graph:
    """Return the CPDAG of PC (Spirtes and Glymour 1991), stable version, with the arcs that are not allowed forbidden.

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
    """[rows, variables] 0 or 1."""
    columns = np.arange(frame.num_vars, dtype=np.uint64)
    return (frame.values[:, None] >> columns & np.uint64(1)).astype(np.int64)


def _node_names(num_vars: int) -> list[str]:
    """Names of our own, so that what variables are called in a task cannot matter."""
    return [f"X{v + 1}" for v in range(num_vars)]


def _forbidden(constraints: Constraints) -> Any:
    """Background knowledge that forbids every arc that the constraints do not allow."""
    knowledge = library("causallearn.utils.PCUtils.BackgroundKnowledge").BackgroundKnowledge()
    node = library("causallearn.graph.GraphNode").GraphNode
    nodes = [node(name) for name in _node_names(len(constraints.allowed))]
    for v, allowed in enumerate(constraints.allowed):
        for u in range(len(nodes)):
            if u != v and not allowed >> u & 1:
                knowledge.add_forbidden_by_node(nodes[u], nodes[v])
    return knowledge


def _graph(marks: npt.NDArray[np.int64]) -> Graph:
    """From end marks: [j, i] is the mark at j of the edge between i and j, 1 an arrowhead and -1 a tail.

    An edge with two arrowheads, which is no claim about direction in a DAG, counts as undirected.
    """
    edge = marks != 0
    arrow_only_back = (marks == -1) & (marks.T == 1)  # [j, i]: j -> i
    return graph_from_matrix((edge & ~arrow_only_back).T)
