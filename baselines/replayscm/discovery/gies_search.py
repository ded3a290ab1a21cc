"""GIES as the package gies has it: from a task's rows and intervention targets to an essential graph.

The search over interventional equivalence classes is the package's; the score is ours, because its own one is of
linear Gaussian models and inverts covariance matrices that are singular where mechanisms have no noise. It takes no
background knowledge, so the graph is made to agree with the disclosure afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.discovery.extras import library, one_thread
from calibrant.baselines.structure_learning.frame import Frame
from calibrant.baselines.structure_learning.graph import Graph, graph_from_matrix
from calibrant.baselines.structure_learning.scores import LocalScores, NetworkScore, mbde
from calibrant.dsl.replayscm.world import Panel


def gies_graph(frame: Frame, targets: Sequence[Sequence[int]], *, score: NetworkScore | None = None) -> Graph:
    """Return the interventional essential graph of GIES (Hauser and Bühlmann 2012).

    targets: the variables that are set, a list per world; every two worlds may share one
    score: `mbde()` unless given; it has to give equivalent structures the same score
    """
    family = _DiscreteScore(LocalScores(frame, score or mbde()), [list(target) for target in targets])
    with one_thread():
        matrix, _ = library("gies").fit(family)
    return graph_from_matrix(matrix)


def intervention_targets(panel: Panel) -> list[list[int]]:
    """Return the targets of every world as indices into the panel's variables."""
    return [[panel.variables.index(v) for v in world.intervention.targets] for world in panel.worlds]


class _DiscreteScore:
    """The three things that gies asks of a score: `p` variables, the targets `interv`, and the score of a family."""

    def __init__(self, scores: LocalScores, targets: list[list[int]]) -> None:
        self.scores = scores
        self.p = scores.frame.num_vars
        self.interv = targets

    def local_score(self, variable: int, parents: Collection[int]) -> float:
        return self.scores.local(int(variable), sum(1 << int(parent) for parent in parents))

    def full_score(self, matrix: npt.NDArray[np.float64]) -> float:
        return self.scores.total(graph_from_matrix(matrix))
