"""Hill climbing as pgmpy has it, with pgmpy's own scores: from a task's rows to a DAG.

Each variable is scored on the rows in which it was not set. Arcs that the disclosure rules out are forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant.baselines.replayscm.discovery.causal_learn import table
from calibrant.baselines.replayscm.discovery.extras import library, one_thread
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Frame
from calibrant.baselines.structure_learning.graph import Graph

PgmpyScore: TypeAlias = Literal["bdeu", "bic", "k2"]

_STATES = (0, 1)


def hill_climbing_graph(
    frame: Frame, constraints: Constraints, *, score: PgmpyScore = "bdeu", imaginary_rows: float = 1.0
) -> Graph:
    """Return the DAG where pgmpy's hill climbing ends, from no arcs and with its default list of 100 tabu operations.

    Columns are numbers: pgmpy scans a set of arcs, whose order would differ from run to run if they were texts.
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
    """Return a pgmpy score that asks one score object per variable, each with the rows in which that variable is free.

    pgmpy's "bdeu" and "k2" are too low for a variable that shows one value only and has parents, which then gets none.
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
