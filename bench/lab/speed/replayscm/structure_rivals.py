"""Libraries that learn structures from tables: what they are asked to do when speed is compared with them.

All of them see the rows as if nobody had set anything; gies also sees the interventions. pyAgrum scores in bits, with
a logarithm of the gamma function that is approximate: K2 to six digits, BDeu less well where cells are rare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from calibrant.baselines.replayscm.discovery import (
    ges_graph,
    gies_graph,
    hill_climbing_graph,
    library,
    one_thread,
    table,
    unclamped_score,
)
from calibrant.baselines.structure_learning.frame import Frame
from calibrant.baselines.structure_learning.graph import free_constraints
from calibrant.bench.lab.speed.comparison import Rival

LIBRARIES = {"pgmpy": "pgmpy", "causal-learn": "causallearn", "gies": "gies", "pyAgrum": "pyagrum"}

SOME = 40  # at 1 to 4 ms each, beside which it is little to make a score object
ALL = 1_000_000

LocalScore = Callable[[int, Sequence[int]], float]


class ScoreRival(NamedTuple):
    """A library's local score of one kind.

    make: a new score object, with nothing cached, for the rows of a frame
    tolerance: to what share of its value it is the number that we compute; None if it is known to be another one
    num_families: how many families at most it scores when it is timed
    """

    library: str
    make: Callable[[Frame], LocalScore]
    tolerance: float | None
    num_families: int


def missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if not is_installed(name)]


def is_installed(name: str) -> bool:
    return find_spec(LIBRARIES[name]) is not None


@contextmanager
def on_one_core() -> Iterator[None]:
    """Linear algebra of the libraries on one thread, if the library that arranges that is there."""
    with one_thread() if find_spec("threadpoolctl") else nullcontext():
        yield


def score_rivals(kind: str) -> list[ScoreRival]:
    """Return the libraries that have the local score `bic`, `k2` or `bdeu` (one imaginary row)."""
    rivals = [
        ScoreRival("pgmpy", lambda frame: _pgmpy(frame, kind), 1e-9, SOME),
        ScoreRival("pyAgrum", lambda frame: _agrum_score(frame, kind), {"bic": 1e-9, "k2": 1e-5}.get(kind), ALL),
    ]
    if kind == "bdeu":
        rivals.append(ScoreRival("causal-learn", _causal_learn_bdeu, 1e-9, SOME))
    return [rival for rival in rivals if is_installed(rival.library)]


def hill_climbers(frame: Frame, max_parents: int) -> list[Rival]:
    """Greedy searches with BDeu over the pooled rows, from the table on."""
    observed = without_interventions(frame)
    free = free_constraints(frame.num_vars, max_parents=max_parents)
    calls: dict[str, Callable[[], object]] = {
        "pgmpy": lambda: hill_climbing_graph(observed, free),
        "pyAgrum": lambda: agrum_climbed(observed, max_parents),
        "causal-learn": lambda: ges_graph(observed, max_parents=max_parents),
    }
    labels = {"pgmpy": "pgmpy", "pyAgrum": "pyAgrum", "causal-learn": "causal-learn GES"}
    return [Rival(labels[name], call) for name, call in calls.items() if is_installed(name)]


def tabu_searchers(frame: Frame, max_parents: int) -> list[Rival]:
    observed = without_interventions(frame)
    if not is_installed("pyAgrum"):
        return []
    return [Rival("pyAgrum", lambda: agrum_tabu(observed, max_parents))]


def interventional_searchers(frame: Frame, targets: Sequence[Sequence[int]]) -> list[Rival]:
    """Greedy searches that know the interventions."""
    return [Rival("gies", lambda: gies_graph(frame, targets))] if is_installed("gies") else []


def exact_searchers(frame: Frame, max_parents: int) -> list[Rival]:
    """Return the optimum of a linear Gaussian BIC, which is the only score that causal-learn searches exactly."""
    if not is_installed("causal-learn"):
        return []
    search = library("causallearn.search.ScoreBased.ExactSearch").bic_exact_search
    rows = table(frame).astype(float)

    def optimum() -> object:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # mechanisms without noise leave no residual variance, whose logarithm the score takes
            warnings.simplefilter("ignore", RuntimeWarning)
            return search(rows, max_parents=max_parents)

    return [Rival("causal-learn, Gaussian BIC", optimum)]


def resampled_climbers(frame: Frame, max_parents: int, rows: Sequence[Any]) -> list[Rival]:
    """Hill climbing on each resample (positions of rows), as often as resamples are given."""
    observed = without_interventions(frame)
    free = free_constraints(frame.num_vars, max_parents=max_parents)
    calls: dict[str, Callable[[], object]] = {
        "pgmpy": lambda: [hill_climbing_graph(observed.take(sample), free) for sample in rows],
        "pyAgrum": lambda: [agrum_climbed(observed.take(sample), max_parents) for sample in rows],
    }
    return [Rival(name, call, len(rows)) for name, call in calls.items() if is_installed(name)]


def without_interventions(frame: Frame) -> Frame:
    return Frame(frame.variables, frame.values, np.zeros_like(frame.clamped))


def agrum_climbed(frame: Frame, max_parents: int) -> object:
    """Run pyAgrum's greedy search, from the table on."""
    learner = _agrum(frame, "bdeu")
    learner.setMaxIndegree(max_parents)
    learner.useGreedyHillClimbing()
    return learner.learnDAG()


def agrum_tabu(frame: Frame, max_parents: int) -> object:
    """Run pyAgrum's tabu search, from the table on: a list of 10, and 15 moves without gain before it gives up."""
    learner = _agrum(frame, "bdeu")
    learner.setMaxIndegree(max_parents)
    learner.useLocalSearchWithTabuList(10, 15)
    return learner.learnDAG()


def _agrum(frame: Frame, kind: str) -> Any:
    names = [f"x{v}" for v in range(frame.num_vars)]
    with TemporaryDirectory() as folder, warnings.catch_warnings():  # from a table it would write a file and leave it
        file = Path(folder, "rows.csv")
        library("pandas").DataFrame(table(frame), columns=names).to_csv(file, index=False)
        # SWIG's types have no __module__, says Python on import; as an error that would crash the interpreter
        warnings.simplefilter("ignore", DeprecationWarning)
        learner = library("pyagrum", extra="rivals").BNLearner(str(file))
    learner.setNumberOfThreads(1)
    {"bic": learner.useScoreBIC, "k2": learner.useScoreK2, "bdeu": learner.useScoreBDeu}[kind]()
    return learner


def _agrum_score(frame: Frame, kind: str) -> LocalScore:
    learner = _agrum(frame, kind)
    names = [f"x{v}" for v in range(frame.num_vars)]
    return lambda child, parents: float(learner.score(names[child], [names[u] for u in parents])) * log(2)


def _pgmpy(frame: Frame, kind: str) -> LocalScore:
    score: LocalScore = unclamped_score(without_interventions(frame), kind, 1.0).local_score  # type: ignore[arg-type]
    return score


def _causal_learn_bdeu(frame: Frame) -> LocalScore:
    """Without its structure prior: it adds the log odds of one parent in expectation."""
    bdeu = library("causallearn.score.LocalScoreFunction").local_score_BDeu
    rows = table(frame)
    num_others = frame.num_vars - 1

    def score(child: int, parents: Sequence[int]) -> float:
        prior = len(parents) * log(1 / num_others) + (num_others - len(parents)) * log(1 - 1 / num_others)
        return float(bdeu(rows, child, list(parents))) - prior

    return score
