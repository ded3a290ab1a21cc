"""Acyclic choices: the least one on local scores, as structure learning asks for it, and how many there are.

Sizes of scores go up to those of published instances: 27 variables and 786 parent sets of up to three (insurance, 1,000
rows), 37 and 1,928 (alarm, 1,000), 56 and 761 (hailfinder, 1,000), 60 and 6,754 (carpo, 100), all by BDeu with one
imaginary row (the scenario BNSL-2016 of the algorithm selection library, by B. Malone, K. Kangas, M. Jarvisalo,
M. Koivisto and P. Myllymaki). Their scores are not distributed here; bench.lab.limits.published
draws such problems. These here are the hard end: rows are drawn from random, nearly deterministic binary networks, of
up to three parents among the eight variables before, and a set is left out if one of its subsets scores no less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from itertools import combinations

import numpy as np

from calibrant.baselines.structure_learning.graph import Frame
from calibrant.baselines.structure_learning.scores import LocalScores, bde
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least import Cost, Mask, cost_by_size
from calibrant.solvers.acyclic.optimum import MAX_CHOICE_STATES, optimal_choice
from calibrant.solvers.outcome import Budget, BudgetSpent

VARIABLES = (8, 12, 16, 18, 20, 24, 27, 37, 56, 60)
ROWS = 1_000
MAX_PARENTS, WITHIN = 3, 8
PER_NAT = 1_000  # costs are whole numbers: thousandths of what the best set of the variable scores more

NEAR = (6, 8, 10, 12, 14, 20, 30, 40, 50, 60)

Options = Mapping[int, Mapping[Mask, Cost]]


def sweeps() -> tuple[Sweep, ...]:
    ways: dict[str, Callable[[Options, int], object]] = {"optimal_choice": _by_search}
    if find_spec("highspy"):
        ways["integer_program"] = _by_highs
    curves = [Curve(name, VARIABLES, _asking(way)) for name, way in ways.items()]
    title = f"least acyclic choice, local scores of up to {MAX_PARENTS} parents"
    counting = [Curve("elimination", NEAR, partial(_count, 0)), Curve("sums", NEAR, partial(_count, NEAR[-1] + 1))]
    return (
        Sweep("least-scores", title, "variables", curves, apart=True),
        Sweep("count-near", "acyclic choices counted, up to 2 parents among the 4 nearest", "variables", counting),
    )


def _asking(way: Callable[[Options, int], object]) -> Callable[[int, int], Ask]:
    def prepare(num_vars: int, seed: int) -> Ask:
        options = scored(num_vars, seed)

        def ask() -> str | None:
            try:
                way(options, num_vars)
            except BudgetSpent as spent:
                return str(spent)
            return None

        return ask

    return prepare


def _by_search(options: Options, num_vars: int) -> object:
    return optimal_choice(options, 0, num_vars, Budget(MAX_CHOICE_STATES))


def _by_highs(options: Options, num_vars: int) -> object:
    return optimal_choice(options, 0, num_vars, engine="integer_program")


def _count(sums_to: int, num_vars: int, seed: int) -> Ask:
    """Return how many choices there are.

    sums_to: no elimination up to so many variables
    """
    near = [[u for u in range(v - 2, v + 3) if u != v and 0 <= u < num_vars] for v in range(num_vars)]
    sets = [
        {sum(1 << u for u in chosen): 1 for k in range(3) for chosen in combinations(candidates, k)}
        for candidates in near
    ]
    weights = Weights(dict(enumerate(sets)), 0)
    if num_vars < sums_to:
        weights.elimination = None

    def ask() -> str | None:
        try:
            total(weights)
        except BudgetSpent as spent:
            return str(spent)
        return None

    return ask


# --- instances --------------------------------------------------------------------------------------------------------


@cache
def scored(num_vars: int, seed: int) -> Options:
    """Return the parent sets of each variable that no cheaper subset replaces, with costs; BDeu, one imaginary row."""
    scores = LocalScores(_rows(num_vars, seed), bde(1.0))
    return {v: worth_it(scores, v) for v in range(num_vars)}


def worth_it(scores: LocalScores, variable: int) -> dict[Mask, Cost]:
    others = [u for u in range(scores.frame.num_vars) if u != variable]
    sets = [sum(1 << u for u in chosen) for k in range(MAX_PARENTS + 1) for chosen in combinations(others, k)]
    best: dict[Mask, float] = {}
    scored_sets: dict[Mask, float] = {}
    for mask, score in zip(sets, scores.of_families([variable] * len(sets), sets).tolist(), strict=True):
        below = max((best[mask & ~(1 << u)] for u in others if mask >> u & 1), default=-np.inf)
        if score > below:
            scored_sets[mask] = score
        best[mask] = max(below, score)
    highest = max(scored_sets.values())
    return {mask: cost_by_size(round(PER_NAT * (highest - score)), 0) for mask, score in scored_sets.items()}


def _rows(num_vars: int, seed: int) -> Frame:
    random = np.random.Generator(np.random.PCG64([num_vars, seed]))
    order, values = random.permutation(num_vars), np.zeros(ROWS, np.uint64)
    for place, v in enumerate(order.tolist()):
        before = order[max(0, place - WITHIN) : place]
        parents = random.choice(before, min(place, int(random.integers(0, MAX_PARENTS + 1))), replace=False).tolist()
        state = np.zeros(ROWS, np.int64)
        for parent in parents:
            state = 2 * state + (values >> np.uint64(parent) & np.uint64(1)).astype(np.int64)
        ones = random.random(ROWS) < random.beta(0.5, 0.5, 1 << len(parents))[state]
        values |= ones.astype(np.uint64) << np.uint64(v)
    return Frame(tuple(f"V{v}" for v in range(num_vars)), values, np.zeros_like(values))
