"""Score-based structure learning on training panels: local scores, greedy searches, the exact optimum, bootstraps.

The rival counts rows in dictionaries and computes gamma functions, in plain Python; it is asked for local scores only.
Every call starts with an empty cache. bnlearn 4.9 was measured elsewhere at 7 to 16 ms for one tabu search and 0.6 to
1.6 s for 96 bootstrap replicates on 6 to 10 variables and about 100 rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import lgamma

import numpy as np

from baselines.bootstrap import arc_strengths, draw_resamples
from baselines.constraints import unconstrained
from baselines.frame import Frame, frame_from_panel
from baselines.score_optimum import ScoreOptimum
from baselines.scores import LocalScores, mbde
from baselines.search import HillClimbing, Tabu, learn
from bench.speed.comparison import Comparison, Rival, Row, measured
from bench.speed.options import Options
from dsl.problem import Problem

TOPIC = "structures"
MAX_PARENTS = 5
REPLICATES = 96
SEED = 6
SHARE_OF_RIVAL = 20  # the rival scores one family in so many


def rows(options: Options) -> Iterator[Row]:
    for frame in frames_by_size(options.problems):
        for comparison in _comparisons(frame, max(2, round(REPLICATES * options.scale))):
            yield from measured(comparison, options.discipline)


def frames_by_size(problems: Sequence[Problem]) -> list[Frame]:
    """The first training panel with each number of variables; fewest variables first."""
    panels = {len(p.task.variables): p.task.training for p in reversed(problems)}
    return [frame_from_panel(panels[size]) for size in sorted(panels)]


def _comparisons(frame: Frame, replicates: int) -> Iterator[Comparison]:
    score, free = mbde(), unconstrained(frame.num_vars, max_parents=MAX_PARENTS)
    families = all_families(frame.num_vars)
    few = families[::SHARE_OF_RIVAL]
    resamples = draw_resamples(np.random.default_rng(SEED), frame.num_rows, frame.num_vars, replicates=replicates)
    cases = {
        "local score": [
            Rival("LocalScores", lambda: local_scores(frame, families), len(families)),
            Rival("dictionaries", lambda: [dictionary_score(frame, *family) for family in few], len(few)),
        ],
        "hill climbing": [Rival("learn", lambda: learn(LocalScores(frame, score), free, HillClimbing()))],
        "tabu 10": [Rival("learn", lambda: learn(LocalScores(frame, score), free, Tabu()))],
        "tabu 50": [Rival("learn", lambda: learn(LocalScores(frame, score), free, Tabu(50)))],
        "exact optimum": [Rival("ScoreOptimum", lambda: ScoreOptimum(LocalScores(frame, score), free).best())],
        "exact arc posteriors": [
            Rival("ScoreOptimum", lambda: ScoreOptimum(LocalScores(frame, score), free).posteriors())
        ],
        "100 best": [Rival("ScoreOptimum", lambda: ScoreOptimum(LocalScores(frame, score), free).k_best(100))],
        f"{replicates} bootstraps, tabu 10": [
            Rival("arc_strengths", lambda: arc_strengths(frame, score, free, Tabu(), resamples))
        ],
        f"{replicates} bootstraps, hill climbing": [
            Rival("arc_strengths", lambda: arc_strengths(frame, score, free, HillClimbing(), resamples))
        ],
    }
    counts = {"rows": frame.num_rows, "families": len(families)}
    for case, rivals in cases.items():
        item = "score" if case == "local score" else "call"
        yield Comparison(TOPIC, f"{frame.num_vars} variables, {case}", item, rivals, counts=counts)


def all_families(num_vars: int) -> list[tuple[int, int]]:
    """Every child with every set of at most MAX_PARENTS parents."""
    return [
        (child, sum(1 << parent for parent in parents))
        for child in range(num_vars)
        for size in range(min(MAX_PARENTS, num_vars - 1) + 1)
        for parents in combinations([v for v in range(num_vars) if v != child], size)
    ]


def local_scores(frame: Frame, families: Sequence[tuple[int, int]]) -> Sequence[float]:
    """All the scores, each computed once."""
    children, parents = zip(*families, strict=True)
    scores: list[float] = LocalScores(frame, mbde()).of_families(children, parents).tolist()
    return scores


def dictionary_score(frame: Frame, child: int, parents: int) -> float:
    """Rival: mbde with one imaginary row, from counts in dictionaries."""
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
