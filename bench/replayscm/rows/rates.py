"""Speed of the evaluator of candidate SCMs against Python integers and NumPy, measured in turns in one process.

Processor time, because everything here computes on one core and the machine may have other work. Ratios are taken
within a round, so that a slow minute slows all alike; the median over rounds is reported. The rivals: one Python
integer a variable, a bit a row (`dsl.replayscm.evaluator.mismatches`), and plain NumPy, a byte a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import and_, or_, xor
from random import Random
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.formulas.formula import Apply, Formula, Node, fold
from calibrant.dsl.formulas.table import unpack_bits
from calibrant.dsl.replayscm.evaluator import Candidate, compile_formulas, mismatches
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, pack_panels
from calibrant.dsl.text import plural

# --- Distinct candidates of equal size, so that no cache shortens a replay --------------------------------------------
NARY_OPERATORS = ("and", "or", "xor", "iff")


def gold_of(problem: Problem) -> Scm:
    """Return the latent SCM; ValueError if the pool does not state it."""
    if problem.sealed.gold is None:
        raise ValueError(f"{problem.id}: benchmarks need the gold SCM")
    return problem.sealed.gold


def random_candidates(problem: Problem, count: int, seed: int) -> list[Candidate]:
    """Return candidates in the shape of gold with random variables and operators; variables follow gold's order."""
    rng = Random(seed)
    gold = gold_of(problem)
    return [Candidate(*_randomise_mechanisms(gold, rng)) for _ in range(count)]


def _randomise_mechanisms(gold: Scm, rng: Random) -> tuple[dict[str, Formula], tuple[str, ...]]:
    earlier = list(gold.roots)
    mechanisms = {}
    for variable in gold.order:
        mechanisms[variable] = Formula(
            tuple(_randomise_node(node, earlier, rng) for node in gold.mechanisms[variable].nodes)
        )
        earlier.append(variable)
    return mechanisms, gold.order


def _randomise_node(node: Node, variables: Sequence[str], rng: Random) -> Node:
    if isinstance(node, Apply):
        return Apply(rng.choice(NARY_OPERATORS), node.arity) if node.operator in NARY_OPERATORS else node
    return rng.choice(variables) if isinstance(node, str) else node


def median_problem(problems: Sequence[Problem]) -> Problem:
    """Return the problem whose gold formulas are of median total size."""
    return sorted(problems, key=lambda problem: gold_of(problem).size)[len(problems) // 2]


# --- Rival: replay in plain NumPy, a byte a row, one candidate and one operator at a time -----------------------------
Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]

RULES: dict[str, Callable[[list[Bools]], Bools]] = {
    "not": lambda arguments: ~arguments[0],
    "and": lambda arguments: reduce(and_, arguments),
    "or": lambda arguments: reduce(or_, arguments),
    "xor": lambda arguments: reduce(xor, arguments),
    "iff": lambda arguments: reduce(and_, arguments) | ~reduce(or_, arguments),
    "if": lambda arguments: np.where(arguments[0], arguments[1], arguments[2]),
}


class RowwisePanels:
    """Panels of worlds as Boolean arrays, one value a row.

    observed, scored: variable -> [rows]; starts: first row of each world and panel, first world of each panel
    """

    def __init__(self, panels: Iterable[Panel]) -> None:
        self.panels = list(panels)
        variables = self.panels[0].variables
        self.num_rows = sum(panel.num_rows for panel in self.panels)
        self.observed = {
            v: np.concatenate([unpack_bits(p.columns[v], p.num_rows) for p in self.panels]) for v in variables
        }
        self.scored = {
            v: ~np.concatenate([unpack_bits(p.clamped[v], p.num_rows) for p in self.panels]) for v in variables
        }
        self.world_starts = np.cumsum([0, *(w.num_rows for p in self.panels for w in p.worlds)])[:-1]
        self.panel_starts = np.cumsum([0, *(p.num_rows for p in self.panels)])[:-1]
        self.panel_worlds = np.cumsum([0, *(len(p.worlds) for p in self.panels)])[:-1]

    def replay(self, candidate: Candidate) -> Counts:
        """Return [panels, 4]: scored cells, wrong cells, scored worlds, exact worlds."""
        simulated = dict(self.observed)
        cells = np.zeros(self.num_rows, np.int64)
        errors = np.zeros(self.num_rows, np.int64)
        for variable in candidate.order:
            value = fold(
                candidate.mechanisms[variable],
                lambda atom: simulated[atom] if isinstance(atom, str) else np.full(self.num_rows, atom),
                lambda node, arguments: RULES[node.operator](list(arguments)),
            )
            scored = self.scored[variable]
            wrong = (value != self.observed[variable]) & scored
            simulated[variable] = np.where(scored, value, self.observed[variable])
            cells += scored
            errors += wrong
        scored_worlds = np.add.reduceat(cells, self.world_starts) > 0
        exact_worlds = scored_worlds & (np.add.reduceat(errors, self.world_starts) == 0)
        return np.stack(
            [
                np.add.reduceat(cells, self.panel_starts),
                np.add.reduceat(errors, self.panel_starts),
                np.add.reduceat(scored_worlds.astype(np.int64), self.panel_worlds),
                np.add.reduceat(exact_worlds.astype(np.int64), self.panel_worlds),
            ],
            axis=1,
        )


# --- The micro-benchmark: `calibrant bench evaluator` -----------------------------------------------------------------
BATCH, SAMPLE = 10_000, 100  # candidates a turn: of the evaluator, and of its rivals, which are slower
MIN_ROUNDS = 3


@dataclass(frozen=True)
class Rate:
    """Speed of one way to count the wrong cells of candidates.

    per_second: candidates per second, median over rounds
    ratios: speed of the evaluator over this one, by round; empty for the evaluator itself
    """

    name: str
    per_second: float
    ratios: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        ratio = {"ratio": median(self.ratios), "ratios": list(self.ratios)} if self.ratios else {}
        return {"name": self.name, "candidates_per_second": self.per_second, **ratio}


@dataclass(frozen=True)
class EvaluatorRates:
    """Rates on one problem; num_equal: candidates for which all ways count the same wrong cells."""

    problem: Problem
    num_rows: int
    num_rounds: int
    num_equal: int
    rates: tuple[Rate, ...]

    def text(self) -> str:
        """Return a table with a caption, in lines of at most 80 characters."""
        rows = [
            [
                rate.name,
                f"{rate.per_second:,.0f}",
                f"{median(rate.ratios):.1f} ({min(rate.ratios):.1f} to {max(rate.ratios):.1f})" if rate.ratios else "",
            ]
            for rate in self.rates
        ]
        size = f"{plural(len(self.problem.task.variables), 'variables')}, {plural(self.num_rows, 'rows')}"
        return (
            f"{aligned(['', 'SCMs a second', 'times as fast, compiled before'], rows)}\n"
            f"{self.problem.id}: {size}; {self.num_rounds} rounds, medians.\n"
            f"Processor time of one core; {plural(self.num_equal, 'SCMs')} have equal counts in every way."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "instance": self.problem.id,
            "variables": len(self.problem.task.variables),
            "rows": self.num_rows,
            "rounds": self.num_rounds,
            "candidates_compared": self.num_equal,
            "rates": [rate.to_dict() for rate in self.rates],
        }


def measure_evaluator(problem: Problem, seconds: float, seed: int = 0) -> EvaluatorRates:
    """Measure for `seconds` of wall time, at least MIN_ROUNDS rounds, without compilation.

    Candidates have the shape of gold. `AssertionError` if two ways disagree on the number of wrong cells.
    """
    panel = problem.task.training
    candidates = random_candidates(problem, BATCH, seed)
    rival_candidates, packed, rowwise = candidates[:SAMPLE], pack_panels([panel]), RowwisePanels([panel])
    programs = compile_formulas(candidates, problem.task.variables)
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "evaluator, compiled before": (BATCH, lambda: programs.compare(packed)),
        "evaluator, from formulas": (
            BATCH,
            lambda: compile_formulas(candidates, problem.task.variables).compare(packed),
        ),
        "Python integers": (SAMPLE, lambda: [mismatches(candidate, panel) for candidate in rival_candidates]),
        "NumPy, a byte a row": (SAMPLE, lambda: [rowwise.replay(candidate) for candidate in rival_candidates]),
    }
    by_evaluator = programs.compare(packed).num_wrong[:SAMPLE].reshape(-1).tolist()
    by_integers = [
        sum(column.bit_count() for column in mismatches(candidate, panel).values()) for candidate in rival_candidates
    ]
    by_numpy = [int(rowwise.replay(candidate)[0, 1]) for candidate in rival_candidates]
    if not by_evaluator == by_integers == by_numpy:
        raise AssertionError("the evaluator and its rivals count other mistakes")
    deadline = time.monotonic() + seconds
    rounds: list[dict[str, float]] = []
    for num_rounds in count():
        if num_rounds >= MIN_ROUNDS and time.monotonic() > deadline:
            break
        rounds.append({name: _rate(num_items, call) for name, (num_items, call) in ways.items()})
    first = next(iter(ways))
    rates = tuple(
        Rate(
            name,
            median(turn[name] for turn in rounds),
            () if name == first else tuple(turn[first] / turn[name] for turn in rounds),
        )
        for name in ways
    )
    return EvaluatorRates(problem, panel.num_rows, len(rounds), len(rival_candidates), rates)


def _rate(num_items: int, call: Callable[[], object]) -> float:
    """Return items per second of processor time, measured over at least 20 ms."""
    started, calls = time.process_time(), 0
    while True:
        call()
        calls += 1
        spent = time.process_time() - started
        if spent >= 0.02:  # processor clocks have ticks of up to 10 ms
            return num_items * calls / spent


def measure_bundled(seconds: float) -> EvaluatorRates:
    """Measure on the bundled Ordered problem with the most variables; of several, the one with the smallest gold."""
    problems = read_pool(bundled_sample("ordered")).problems
    widest = max(len(problem.task.variables) for problem in problems)
    candidates = (problem for problem in problems if len(problem.task.variables) == widest)
    return measure_evaluator(min(candidates, key=lambda problem: (gold_of(problem).size, problem.id)), seconds)
