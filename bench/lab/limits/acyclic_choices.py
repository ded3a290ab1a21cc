"""Acyclic choices: least ones on local scores and their number, and least scores of published networks.

Sizes of scores go up to those of published instances: 27 variables and 786 parent sets of up to three (insurance, 1,000
rows), 37 and 1,928 (alarm, 1,000), 56 and 761 (hailfinder, 1,000), 60 and 6,754 (carpo, 100), all by BDeu with one
imaginary row (the scenario BNSL-2016 of the algorithm selection library, by B. Malone, K. Kangas, M. Jarvisalo,
M. Koivisto and P. Myllymaki). Their scores are not distributed here; bench.lab.limits.acyclic_choices
draws such problems. These here are the hard end: rows are drawn from random, nearly deterministic binary networks, of
up to three parents among the eight variables before, and a set is left out if one of its subsets scores no less.

    python -m calibrant.bench.lab.limits.acyclic_choices --seconds 60 --problems 2

The literature's problems are local scores of rows drawn from a known network. Those networks are not distributed here.
Problems of their sizes are drawn in their stead, by these rules: an order of the variables at random; as many arcs as
the network has, drawn one after another from the pairs of at most `WITHIN_SECONDS` places in that order, three parents
at most; binary mechanisms with independent probabilities from Beta(1, 1); as many rows as published; BDeu with one
imaginary row; parent sets of up to three; a set is left out if one of its subsets scores no less. The seed of a problem
is its number. Published numbers of parent sets: bench.lab.limits.acyclic_choices says whose.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import combinations
from math import inf
from statistics import median
from typing import NamedTuple

import numpy as np

from calibrant.baselines.structure_learning.constraints import Frame
from calibrant.baselines.structure_learning.scores import LocalScores, bde
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.least import Cost, Mask, cost_by_size, total_size
from calibrant.solvers.acyclic.optimum import MAX_CHOICE_STATES, optimal_choice
from calibrant.solvers.outcome import Budget, BudgetSpent, Undecided

# --- Acyclic choices: the least one on local scores, as structure learning asks for it, and how many there are --------
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
    for index, v in enumerate(order.tolist()):
        before = order[max(0, index - WITHIN) : index]
        parents = random.choice(before, min(index, int(random.integers(0, MAX_PARENTS + 1))), replace=False).tolist()
        state = np.zeros(ROWS, np.int64)
        for parent in parents:
            state = 2 * state + (values >> np.uint64(parent) & np.uint64(1)).astype(np.int64)
        ones = random.random(ROWS) < random.beta(0.5, 0.5, 1 << len(parents))[state]
        values |= ones.astype(np.uint64) << np.uint64(v)
    return Frame(tuple(f"V{v}" for v in range(num_vars)), values, np.zeros_like(values))


# --- The command `python -m calibrant.bench.lab.limits.acyclic_choices`: least scores of published networks -----------
WITHIN_SECONDS = 8
MAX_NETWORK_PARENTS = 3
SECONDS, PROBLEMS = 60.0, 2


class Network(NamedTuple):
    """Published network.

    sets: as published for that number of rows, parents limited to three; None where we know of no such number
    """

    name: str
    variables: int
    arcs: int
    rows: int
    sets: int | None


NETWORKS = (
    Network("insurance", 27, 52, 1_000, 786),
    Network("water", 32, 66, 1_000, None),
    Network("mildew", 35, 46, 1_000, None),
    Network("alarm", 37, 46, 1_000, 1_928),
    Network("hailfinder", 56, 66, 1_000, 761),
    Network("carpo", 60, 74, 100, 6_754),
)


class Answer(NamedTuple):
    """Answer for a published network.

    took: processor seconds; low, high: bounds of the least score, in thousandths of a nat above the best sets
    high: None if no choice was met
    """

    sets: int
    took: float
    low: int
    high: int | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 2 for bad input."""
    arguments_given = _arguments().parse_args(arguments)
    networks = {network.name: network for network in NETWORKS}
    if unknown := [name for name in arguments_given.name if name not in networks]:
        print(
            f"bench.lab.limits.acyclic_choices: unknown network '{unknown[0]}'; known: {', '.join(networks)}",
            file=sys.stderr,
        )
        return 2
    print("| size of | variables | rows | sets published | sets here | proved | seconds, median (most) | gap, nats |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    try:
        for network in NETWORKS:
            if not arguments_given.name or network.name in arguments_given.name:
                answers = [_answer(network, seed, arguments_given.seconds) for seed in range(arguments_given.problems)]
                print(f"| {' | '.join(_cells(network, answers))} |", flush=True)
    except CalibrantError as error:
        print(f"bench.lab.limits.acyclic_choices: {error}", file=sys.stderr)
        return 2
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.limits.acyclic_choices",
        description="Least scores by the integer program at the sizes of published networks: proved, or the gap left.",
    )
    parser.add_argument("name", nargs="*", metavar="NETWORK", help="which sizes; all if none is named")
    parser.add_argument("--seconds", type=_seconds, default=SECONDS, help=f"of the clock for a problem [{SECONDS:.0f}]")
    parser.add_argument("--problems", type=_number, default=PROBLEMS, help=f"of each size [{PROBLEMS}]")
    return parser


def _seconds(text: str) -> float:
    if not 0 <= (seconds := float(text)) < inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, 0 or more")
    return seconds


def _number(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _answer(network: Network, seed: int, seconds: float) -> Answer:
    options = scored_network(network, seed)
    number, begun = sum(map(len, options.values())), time.process_time()
    try:
        best = optimal_choice(options, 0, network.variables, engine="integer_program", seconds=seconds)
    except Undecided as late:
        took = time.process_time() - begun
        met = None if late.incumbent is None else sum(options[v][mask] for v, mask in late.incumbent.items())
        return Answer(number, took, total_size(late.at_least), None if met is None else total_size(met))
    assert best is not None
    return Answer(number, time.process_time() - begun, total_size(best.cost), total_size(best.cost))


def _cells(network: Network, answers: Sequence[Answer]) -> Iterator[str]:
    yield network.name
    yield f"{network.variables}"
    yield f"{network.rows:,}"
    yield "" if network.sets is None else f"{network.sets:,}"
    yield " to ".join(f"{n:,}" for n in sorted({min(a.sets for a in answers), max(a.sets for a in answers)}))
    yield f"{sum(a.low == a.high for a in answers)} of {len(answers)}"
    yield f"{median(a.took for a in answers):.1f} ({max(a.took for a in answers):.1f})"
    yield "; ".join(_gap(answer) for answer in answers if answer.low != answer.high) or "none"


def _gap(answer: Answer) -> str:
    if answer.high is None:
        return f"at least {answer.low / PER_NAT:.0f}"
    return f"{(answer.high - answer.low) / PER_NAT:.1f} of {answer.high / PER_NAT:.0f}"


def scored_network(network: Network, seed: int) -> Options:
    """Return the parent sets of each variable that no cheaper subset replaces, with costs."""
    scores = LocalScores(_network_rows(network, seed), bde(1.0))
    return {v: worth_it(scores, v) for v in range(network.variables)}


def _network_rows(network: Network, seed: int) -> Frame:
    num, rows = network.variables, network.rows
    random = np.random.Generator(np.random.PCG64([num, rows, seed]))
    order = random.permutation(num)
    pairs = [(before, place) for place in range(num) for before in range(max(0, place - WITHIN_SECONDS), place)]
    parents: list[list[int]] = [[] for _ in range(num)]
    arcs = 0
    for at in random.permutation(len(pairs)).tolist():
        before, place = pairs[at]
        if len(parents[place]) < MAX_NETWORK_PARENTS and arcs < network.arcs:
            parents[place].append(int(order[before]))
            arcs += 1
    values = np.zeros(rows, np.uint64)
    for place, v in enumerate(order.tolist()):
        state = np.zeros(rows, np.int64)
        for parent in parents[place]:
            state = 2 * state + (values >> np.uint64(parent) & np.uint64(1)).astype(np.int64)
        ones = random.random(rows) < random.random(1 << len(parents[place]))[state]
        values |= ones.astype(np.uint64) << np.uint64(v)
    return Frame(tuple(f"V{v}" for v in range(num)), values, np.zeros_like(values))


if __name__ == "__main__":
    sys.exit(main())
