"""Score-based structure learning on training panels: local scores, greedy searches, the exact optimum, bootstraps.

Rivals are libraries, where they are installed, and counting in dictionaries with gamma functions in plain Python. Every
call starts from the rows with nothing cached. Where a library has one of our scores, the values are compared too.

All of them see the rows as if nobody had set anything; gies also sees the interventions. pyAgrum scores in bits, with
a logarithm of the gamma function that is approximate: K2 to six digits, BDeu less well where cells are rare.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from math import lgamma, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from calibrant.baselines.replayscm.discovery import (
    ges_graph,
    gies_graph,
    hill_climbing_graph,
    intervention_targets,
    library,
    one_thread,
    table,
    unclamped_score,
)
from calibrant.baselines.replayscm.fit import frame_from_panel
from calibrant.baselines.structure_learning.constraints import Frame, free_constraints
from calibrant.baselines.structure_learning.levels import ScoreOptimum
from calibrant.baselines.structure_learning.scores import LocalScores, NetworkScore, bde, bic, k2, mbde
from calibrant.baselines.structure_learning.search import HillClimbing, Tabu, arc_strengths, draw_resamples, learn
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Panel

# --- Libraries that learn structures from tables: what they are asked to do when speed is compared with them ----------
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
    """Run the libraries' linear algebra on one thread in the context, if threadpoolctl is installed."""
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
    """Return rivals that search greedily by BDeu over the pooled rows, timed from the table to the graph."""
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
    """Return rivals that search greedily and know the interventions."""
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
    """Return rivals that climb once on each resample. rows: resamples, each as positions of rows."""
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
    """Return causal-learn's BDeu without the structure prior that it adds, under which one parent is expected."""
    bdeu = library("causallearn.score.LocalScoreFunction").local_score_BDeu
    rows = table(frame)
    num_others = frame.num_vars - 1

    def score(child: int, parents: Sequence[int]) -> float:
        prior = len(parents) * log(1 / num_others) + (num_others - len(parents)) * log(1 - 1 / num_others)
        return float(bdeu(rows, child, list(parents))) - prior

    return score


TOPIC = "structures"
MAX_PARENTS = 5
REPLICATES = 96
RIVALS_REPLICATES = 1  # libraries learn from so many of the resamples
SEED = 6
SHARED_SCORES = {"bic": bic(), "k2": k2(), "bdeu": bde()}

# bnlearn 4.9 on 6 to 10 variables and about 100 rows took 7 to 16 ms for a tabu search and 0.6 to 1.6 s for 96
# bootstrap replicates of it; the shorter times are held against us
BNLEARN_TABU_SECONDS = 0.007
BNLEARN_BOOTSTRAP_SECONDS = 0.6 / 96


def rows(options: Options) -> Iterator[Row]:
    for name in missing_libraries():
        yield Row(TOPIC, "libraries", name, note="not installed")
    with on_one_core():
        for panel in panels_by_size(options.problems)[: None if options.scale == 1 else 1]:
            frame = frame_from_panel(panel)
            yield from agreements(frame)
            for comparison in _comparisons(panel, frame, max(2, round(REPLICATES * options.scale))):
                yield from measure(comparison, options.discipline)


def panels_by_size(problems: Sequence[Problem]) -> list[Panel]:
    """Return the first training panel of the least and of the greatest number of variables."""
    panels = {len(p.task.variables): p.task.training for p in reversed(problems)}
    return [panels[size] for size in sorted({min(panels), max(panels)})]


def agreements(frame: Frame) -> Iterator[Row]:
    """Return whether the libraries' local scores are our numbers, on a share of all families."""
    pooled = without_interventions(frame)
    families = sample_families(all_families(frame.num_vars), SOME)
    for kind, score in SHARED_SCORES.items():
        our_scores = local_scores(pooled, families, score=score)
        for rival in score_rivals(kind):
            library_scores = rival_scores(rival, pooled, families)
            apart = max(abs(b / a - 1) for a, b in zip(our_scores, library_scores, strict=True))
            is_met = None if rival.tolerance is None else apart <= rival.tolerance
            note = f"{len(families)} values, apart by at most {apart:.1g} of the value"
            if rival.tolerance is None:
                note += "; known to differ"
            yield Row(TOPIC, f"{frame.num_vars} variables, same {kind}", rival.library, met=is_met, note=note)


def _comparisons(panel: Panel, frame: Frame, replicates: int) -> Iterator[Comparison]:
    yield from _scores(frame)
    yield from _searches(panel, frame)
    yield from _bootstraps(frame, replicates)


def _scores(frame: Frame) -> Iterator[Comparison]:
    """Yield comparisons of local scores: mbde with the interventions, the other scores as if nothing had been set."""
    pooled = without_interventions(frame)
    families = all_families(frame.num_vars)
    few = sample_families(families, SOME)
    counts = {"rows": frame.num_rows, "families": len(families)}
    dictionaries = Rival("dictionaries", lambda: [dictionary_score(frame, *family) for family in few], len(few))
    our_rival = Rival("LocalScores", lambda: local_scores(frame, families), len(families))
    yield Comparison(TOPIC, f"{frame.num_vars} variables, mbde", "score", [our_rival, dictionaries], counts=counts)
    for kind, score in SHARED_SCORES.items():
        rivals = [Rival("LocalScores", partial(local_scores, pooled, families, score=score), len(families))]
        for rival in score_rivals(kind):
            families_timed = sample_families(families, rival.num_families)
            rivals.append(
                Rival(rival.library, partial(rival_scores, rival, pooled, families_timed), len(families_timed))
            )
        yield Comparison(TOPIC, f"{frame.num_vars} variables, {kind}", "score", rivals)


def _searches(panel: Panel, frame: Frame) -> Iterator[Comparison]:
    pooled, free = without_interventions(frame), free_constraints(frame.num_vars, max_parents=MAX_PARENTS)
    targets = intervention_targets(panel)

    def optimum() -> ScoreOptimum:
        return ScoreOptimum(LocalScores(frame, mbde()), free)

    climb = Rival("learn", lambda: learn(LocalScores(pooled, bde()), free, HillClimbing()))
    climb_set = Rival("learn", lambda: learn(LocalScores(frame, mbde()), free, HillClimbing()))
    tabu = Rival("learn", lambda: learn(LocalScores(pooled, bde()), free, Tabu()))
    tabu_set = Rival("learn", lambda: learn(LocalScores(frame, mbde()), free, Tabu()))
    cases: dict[str, tuple[list[Rival], float | None]] = {
        "hill climbing, bdeu": ([climb, *hill_climbers(frame, MAX_PARENTS)], None),
        "hill climbing, mbde": ([climb_set, *interventional_searchers(frame, targets)], None),
        "tabu 10, bdeu": ([tabu, *tabu_searchers(frame, MAX_PARENTS)], None),
        "tabu 10, mbde": ([tabu_set], 1 / BNLEARN_TABU_SECONDS),
        "exact optimum": (
            [Rival("ScoreOptimum", lambda: optimum().best()), *exact_searchers(frame, MAX_PARENTS)],
            None,
        ),
        "exact arc posteriors": ([Rival("ScoreOptimum", lambda: optimum().posteriors())], None),
        "100 best": ([Rival("ScoreOptimum", lambda: optimum().k_best(100))], None),
    }
    for case, (rivals, published) in cases.items():
        yield Comparison(TOPIC, f"{frame.num_vars} variables, {case}", "call", rivals, published)


def _bootstraps(frame: Frame, replicates: int) -> Iterator[Comparison]:
    pooled, free = without_interventions(frame), free_constraints(frame.num_vars, max_parents=MAX_PARENTS)
    resamples = draw_resamples(np.random.default_rng(SEED), frame.num_rows, frame.num_vars, replicates=replicates)
    climb = Rival("arc_strengths", lambda: arc_strengths(pooled, bde(), free, HillClimbing(), resamples), replicates)
    tabu = Rival("arc_strengths", lambda: arc_strengths(frame, mbde(), free, Tabu(), resamples), replicates)
    rivals = [climb, *resampled_climbers(frame, MAX_PARENTS, list(resamples.rows[:RIVALS_REPLICATES]))]
    case = f"{frame.num_vars} variables, {replicates} bootstraps,"
    yield Comparison(TOPIC, f"{case} hill climbing, bdeu", "replicate", rivals)
    yield Comparison(TOPIC, f"{case} tabu 10, mbde", "replicate", [tabu], 1 / BNLEARN_BOOTSTRAP_SECONDS)


def all_families(num_vars: int) -> list[tuple[int, int]]:
    """Return every child with every set of at most MAX_PARENTS parents."""
    return [
        (child, sum(1 << parent for parent in parents))
        for child in range(num_vars)
        for size in range(min(MAX_PARENTS, num_vars - 1) + 1)
        for parents in combinations([v for v in range(num_vars) if v != child], size)
    ]


def sample_families(families: Sequence[tuple[int, int]], number: int) -> Sequence[tuple[int, int]]:
    """Return at most `number` families, at equal distances in the list."""
    return families[:: -(-len(families) // number)]


def local_scores(
    frame: Frame, families: Sequence[tuple[int, int]], *, score: NetworkScore | None = None
) -> Sequence[float]:
    """Return all the scores, mbde unless another is given; each computed once."""
    children, parents = zip(*families, strict=True)
    scores: list[float] = LocalScores(frame, score or mbde()).of_families(children, parents).tolist()
    return scores


def rival_scores(rival: ScoreRival, frame: Frame, families: Sequence[tuple[int, int]]) -> list[float]:
    """Return a library's scores, each computed once, by a score object that is new."""
    score = rival.make(frame)
    variables = range(frame.num_vars)
    return [score(child, [u for u in variables if parents >> u & 1]) for child, parents in families]


def dictionary_score(frame: Frame, child: int, parents: int) -> float:
    """Return mbde with one imaginary row, from counts in dictionaries: a rival."""
    cells: Counter[tuple[int, int]] = Counter()
    for value, clamped in zip(frame.values.tolist(), frame.clamped.tolist(), strict=True):
        if not clamped >> child & 1:
            cells[value & parents, value >> child & 1] += 1
    configurations: Counter[int] = Counter()
    for (configuration, _), count in cells.items():
        configurations[configuration] += count
    cell_prior = 0.5 / (1 << parents.bit_count())
    total = sum(lgamma(cell_prior + count) - lgamma(cell_prior) for count in cells.values())
    return total + sum(lgamma(2 * cell_prior) - lgamma(2 * cell_prior + n) for n in configurations.values())
