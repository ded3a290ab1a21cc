"""Quadratic laboratories: least squares on p and p squared, their version space, and weights to six decimals.

Solver: a node gets the smallest parent set that explains its readings within rounding, with one free constant for each
stretch of readings with a constant base. Square weights have three decimals in all suites, so they are rounded and the
linear weights fitted again.

Version space: linear weights are real numbers, so only graphs with square weights, those of the suites, are counted. A
vector of square weights is consistent if the best linear weights leave a root mean square residual that rounding can
cause. The true vector always is; vectors near it may be consistent too.

Six decimals: a reading of two decimals determines a linear weight within 0.005 / v if its property has value v. So each
parent of the frequency is set to a large value, those farthest downstream first. Downstream parents that move with it
are set back, so that each reading depends on one unknown weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import fsum, sqrt
from typing import TypeAlias

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import SQUARE_WEIGHTS
from calibrant.dsl.causalab.item import Family, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Term, Values
from calibrant.dsl.errors import CycleError
from calibrant.solvers.causalab.evidence import (
    EXACT,
    Answer,
    Evidence,
    Floats,
    evidence_of,
    mechanism_of,
    misfit,
    predict_frequency,
)
from calibrant.solvers.causalab.space import GraphSpace, Options, count_by_edge, count_choices, count_graph
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import space_repr

# --- Least squares in rational numbers: weights that do not depend on a library of linear algebra ---------------------
Row: TypeAlias = Sequence[Fraction]


def exact_reading(value: float) -> Fraction:
    """Convert a float back to the reading of two decimals that it stands for."""
    return Fraction(round(value * 100), 100)


def exact_readings(values: Iterable[float]) -> list[Fraction]:
    """Convert floats back to the readings of two decimals that they stand for."""
    return list(map(exact_reading, values))


def fit_rationally(design: Sequence[Row], goal: Row) -> tuple[list[float], float] | None:
    """Return weights and root mean square residual, each rounded once; None if the design does not determine them.

    design: [row][column]; goal: [row]
    """
    columns = list(zip(*design, strict=True))
    weights, rank = _solve([[_dot(a, b) for b in columns] for a in columns], [_dot(column, goal) for column in columns])
    if rank < len(columns):
        return None
    residuals = [_dot(row, weights) - value for row, value in zip(design, goal, strict=True)]
    return [float(weight) for weight in weights], sqrt(_dot(residuals, residuals) / len(goal))


def least_norm_fit(design: Sequence[Row], goal: Row) -> list[Fraction]:
    """Return the least squares solution of least norm: D'y with D'D D'y = D'g, for the design D and the goal g."""
    columns = list(zip(*design, strict=True))
    products = [[_dot(first, second) for second in design] for first in design]
    matrix = [[_dot(column, product) for product in zip(*products, strict=True)] for column in columns]
    combination, _ = _solve(matrix, [_dot(column, goal) for column in columns])
    return [_dot(column, combination) for column in columns]


def _solve(matrix: Sequence[Row], goal: Row) -> tuple[list[Fraction], int]:
    """Return a solution of consistent equations, with undetermined unknowns 0, and their rank."""
    equations = [[*row, value] for row, value in zip(matrix, goal, strict=True)]
    solution = [Fraction(0)] * len(matrix[0])
    pivots: list[int] = []
    for column in range(len(solution)):
        rank = len(pivots)
        pivot_row = next((k for k in range(rank, len(equations)) if equations[k][column]), None)
        if pivot_row is None:
            continue
        equations[rank], equations[pivot_row] = equations[pivot_row], equations[rank]
        head = equations[rank] = [entry / equations[rank][column] for entry in equations[rank]]
        for k, row in enumerate(equations):
            if k != rank and row[column]:
                equations[k] = [entry - row[column] * leading for entry, leading in zip(row, head, strict=True)]
        pivots.append(column)
    for row, column in zip(equations, pivots, strict=False):
        solution[column] = row[-1]
    return solution, len(pivots)


def _dot(first: Row, second: Row) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), start=Fraction(0))


# --- Quadratic laboratories: two values of every property, then an additive least-squares fit on p and p squared ------
VALUES = (0.0, 100.0, 45.0)  # candidates for two settings: those that are far from the present value
FURTHER_VALUES = (21.0, 83.0, 62.0, 9.0)  # settings if two were not enough
MIN_DISTANCE = 20.0  # distance of a setting from the present value, so that effects exceed rounding
ROUNDING = 0.005  # largest residual of the true weights, so largest root mean square residual of the fitted ones
REPLAY_TOLERANCE = 0.5  # bound of the errors of fitted weights along a chain of settings, for values near 100
SQUARE_DECIMALS = 3
MAX_COMBINATIONS = 10_000  # combinations of equally small parent sets that are tried
IN_WORDS = "quadratic mechanisms with square weights of three decimals"


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit of one node: linear and square weights by parent, base of the frequency, root mean square residual."""

    parents: tuple[int, ...]
    linear: dict[int, float]
    square: dict[int, float]
    base: float
    residual: float


def solve_quadratic(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism from two settings of every property, and more if those do not suffice."""
    task = episode.task
    for name in task.settable:
        current = evidence_of(task, episode.steps).observations[-1].values[task.properties.index(name)]
        for value in [value for value in VALUES if abs(value - current) >= MIN_DISTANCE][:2]:
            if episode.left <= 0:
                return OutOfBudget(f"{len(episode.steps)} settings made; two of every property are needed")
            episode.act({"set": name, "value": value})
    outcome = solve_from_fits(evidence_of(task, episode.steps))
    # two values may coincide, or determine too little along a chain of properties
    for value, name in product(FURTHER_VALUES, task.settable):
        if isinstance(outcome, Found) or episode.left <= 0:
            break
        episode.act({"set": name, "value": value})
        outcome = solve_from_fits(evidence_of(task, episode.steps))
    return outcome


def solve_from_fits(evidence: Evidence) -> Outcome[Answer]:
    """Return a mechanism of smallest parent sets that the reference replays within REPLAY_TOLERANCE."""
    options = [smallest_fits(evidence, node) for node in range(len(evidence.nodes))]
    if any(not candidates for candidates in options):
        return Impossible(f"{IN_WORDS}: a node has no parents that explain it within rounding")
    num_trials = 0
    for chosen in product(*options):
        num_trials += 1
        if num_trials > MAX_COMBINATIONS:
            return OutOfBudget(f"{MAX_COMBINATIONS} combinations of equally small parent sets")
        linear, square = [f.linear for f in chosen], [f.square for f in chosen]
        try:
            mechanism = mechanism_of(evidence.nodes, linear, chosen[-1].base, square)
        except CycleError:
            continue
        # errors of weights grow with the values: the tolerance is for values near 100
        largest = max(1.0, float(np.abs(evidence.table).max()) / 100)
        if misfit(mechanism, evidence, reading=evidence.task.reading, shifts=()) <= REPLAY_TOLERANCE * largest:
            unique = all(len(candidates) == 1 for candidates in options)
            return Found(Answer(mechanism, predict_frequency(mechanism, evidence), unique, IN_WORDS))
    return Impossible(f"{IN_WORDS}: no acyclic choice of the smallest parent sets gives all readings")


def smallest_fits(evidence: Evidence, node: int) -> list[Fit]:
    """Return the fits with the fewest parents, closest first."""
    stretches = [s for s in evidence.stretches(node) if len(s) > 1]
    possible_parents = [p for p in range(len(evidence.nodes)) if p != node]
    if not evidence.task.freq_parent:
        possible_parents = [p for p in possible_parents if p != evidence.frequency]
    for size in range(int(node == evidence.frequency), len(possible_parents) + 1):
        fits = (fit_node(evidence, node, parents, stretches) for parents in combinations(possible_parents, size))
        close = [fit for fit in fits if fit is not None and fit.residual <= ROUNDING + EXACT]
        if close:
            return sorted(close, key=lambda fit: (fit.residual, fit.parents))
    return []


def fit_node(evidence: Evidence, node: int, parents: tuple[int, ...], stretches: list[list[int]]) -> Fit | None:
    """Fit by least squares; None if weights are not determined, the residual is too large, or a square rounds to 0."""
    if not stretches:
        return Fit((), {}, {}, 0.0, 0.0) if not parents else None
    rows = [i for stretch in stretches for i in stretch]
    stretch_indices = np.repeat(np.arange(len(stretches)), [len(s) for s in stretches])
    constants = (stretch_indices[:, None] == np.arange(len(stretches))).astype(float)
    columns = evidence.table[np.ix_(rows, parents)]
    goal = evidence.table[rows, node]
    design = np.hstack([columns**2, columns, constants])
    weights, residual = _least_squares(design, goal)
    if weights is None or residual > ROUNDING + EXACT:
        return None
    n = len(parents)
    squares = np.round(weights[:n], SQUARE_DECIMALS)
    if n and not squares.all():
        return None
    # rounded square weights are exact: fitted again, the linear weights lose the errors that the squares caused
    square = dict(zip(parents, map(float, squares), strict=True))
    refitted = _fit_linear_weights(columns, constants, goal, square.values())
    if refitted is None:
        return None
    linear, residual = refitted
    base = linear[n] if evidence.nodes[node] == FREQUENCY else 0.0
    return Fit(parents, dict(zip(parents, linear[:n], strict=True)), square, base, residual)


def _fit_linear_weights(
    columns: Floats, constants: Floats, goal: Floats, squares: Iterable[float]
) -> tuple[list[float], float] | None:
    """Return linear weights and constants, and the residual, each rounded once; squares: square weights."""
    readings = list(map(exact_readings, columns.tolist()))
    exact_squares = [Fraction(round(weight * 10**SQUARE_DECIMALS), 10**SQUARE_DECIMALS) for weight in squares]
    goals = [
        value - sum(weight * reading * reading for weight, reading in zip(exact_squares, row, strict=True))
        for value, row in zip(exact_readings(goal.tolist()), readings, strict=True)
    ]
    stretches = [list(map(Fraction, row)) for row in constants.astype(int).tolist()]
    return fit_rationally([[*row, *stretch] for row, stretch in zip(readings, stretches, strict=True)], goals)


def _least_squares(design: Floats, goal: Floats) -> tuple[Floats | None, float]:
    """Return weights and root mean square residual; (None, infinity) if the design does not determine them."""
    # squares reach 1e4 and more: without scaled columns the rank would depend on units
    scale = np.abs(design).max(axis=0)
    if not scale.all():
        return None, np.inf
    weights, _, rank, _ = np.linalg.lstsq(design / scale, goal, rcond=1e-10)
    if rank < design.shape[1]:
        return None, np.inf
    weights = weights / scale
    return weights, float(np.sqrt(np.mean((design @ weights - goal) ** 2)))


# --- Version space of quadratic laboratories: graphs with square weights that some linear weights complete ------------
MAX_PROPERTIES = 5  # 4 ** 5 vectors of square weights of a node
SAME_PREDICTION = 0.5  # predictions closer than this count as equal
DETERMINED = 1e-6  # residual up to which readings determine a combination of weights
MAX_EXACT_READING = 1e5  # larger readings are left out: squares of floats would lose hundredths


@dataclass(frozen=True)
class SquareWeights:
    """Possible square weights of one node.

    vectors: (vectors, nodes), 0 where there is no edge
    predictions: (vectors,), of the reactor crystal's frequency if the node is the frequency; NaN if not determined
    """

    node: int
    vectors: Floats
    predictions: Floats

    @property
    def options(self) -> dict[int, int]:
        return self.count_by_parents(np.ones(len(self.vectors), dtype=np.bool_))

    def count_by_parents(self, selected: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> dict[int, int]:
        """Count the selected vectors by mask of parents."""
        return Counter(((self.vectors[selected] > 0) @ (1 << np.arange(self.vectors.shape[1]))).tolist())


@dataclass(frozen=True)
class QuadraticDags(GraphSpace):
    """Graphs with square weights that some linear weights complete to an explanation of the evidence."""

    evidence: Evidence
    locals: tuple[SquareWeights, ...]

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        weights = ", ".join(f"{weight:g}" for weight in SQUARE_WEIGHTS)
        return (
            f"quadratic mechanisms without noise, square weights {weights}{sink}, any linear weights and bases; "
            f"counted are graphs with square weights, root mean square residuals up to {ROUNDING:g}"
        )

    @cached_property
    def _options(self) -> Options:
        return {local.node: local.options for local in self.locals}

    @cached_property
    def count(self) -> int:
        return count_choices(self._options)

    def fits(self, member: Mechanism) -> bool:
        """Return whether the mechanism's graph and square weights are those of a member."""
        nodes = self.evidence.nodes
        for local, child in zip(self.locals, nodes, strict=True):
            squares = member.weights(child, 2)
            row = np.array([squares.get(parent, 0.0) for parent in nodes])
            if not np.any(np.all(np.isclose(local.vectors, row), axis=1)):
                return False
        return True

    def after(self, experiment: tuple[str, float], reading: Values) -> QuadraticDags:
        """Return the members that explain all readings, earlier ones included."""
        # intersection: with more readings the mean residual of a refuted vector may fall below the limit again
        later = quadratic_dags(self.evidence.after(*experiment, reading))
        survivors = []
        for now, local in zip(later.locals, self.locals, strict=True):
            before = {tuple(row) for row in local.vectors.tolist()}
            is_remaining = np.array([tuple(row) in before for row in now.vectors.tolist()], dtype=np.bool_)
            survivors.append(SquareWeights(now.node, now.vectors[is_remaining], now.predictions[is_remaining]))
        return QuadraticDags(later.evidence, tuple(survivors))

    def verdicts(self) -> Mapping[float, int]:
        """Count the members by predicted frequency; predictions closer than SAME_PREDICTION are merged.

        NaN: not determined by the readings.
        """
        frequency_space = self.locals[-1]
        value_counts: dict[float, int] = {}
        sorted_predictions = np.sort(frequency_space.predictions[~np.isnan(frequency_space.predictions)])
        starts = sorted_predictions[np.flatnonzero(np.diff(sorted_predictions, prepend=-np.inf) > SAME_PREDICTION)]
        for i, start in enumerate(starts):
            end = starts[i + 1] if i + 1 < len(starts) else np.inf
            keep = (frequency_space.predictions >= start) & (frequency_space.predictions < end)
            value_counts[round(float(start), 2)] = count_choices(
                {**self._options, frequency_space.node: frequency_space.count_by_parents(keep)}
            )
        value_counts[float("nan")] = count_choices(
            {
                **self._options,
                frequency_space.node: frequency_space.count_by_parents(np.isnan(frequency_space.predictions)),
            }
        )
        return {value: count for value, count in value_counts.items() if count}

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Number of members with each edge that some member has."""
        return count_by_edge(self._options, self.evidence.nodes)

    def having_graph(self, edges: Set[Edge]) -> int:
        """Count the members with exactly these edges."""
        return count_graph(self._options, edges, self.evidence.nodes)


def quadratic_dags(evidence: Evidence) -> QuadraticDags:
    """Return the space of a quadratic task without noise; `BudgetSpent` for others, and for too many properties."""
    if (reason := _reason_not_enumerable(evidence.task)) is not None:
        raise BudgetSpent(reason)
    return QuadraticDags(evidence, tuple(_explain_node(evidence, node) for node in range(len(evidence.nodes))))


def _reason_not_enumerable(task: Task) -> str | None:
    """Return the reason why a task has no space of this kind; None if it has one."""
    if task.family is not Family.QUADRATIC or task.noise:
        return "only quadratic tasks without noise have a space of square weights"
    if len(task.properties) > MAX_PROPERTIES:
        return f"{len(task.properties)} properties; square weights are listed for {MAX_PROPERTIES} at most"
    return None


def _explain_node(evidence: Evidence, node: int) -> SquareWeights:
    """List every vector of square weights whose best linear completion explains the node."""
    possible_parents = [p for p in range(len(evidence.nodes)) if p != node]
    if not evidence.task.freq_parent:
        possible_parents = [p for p in possible_parents if p != evidence.frequency]
    vectors, predictions = [], []
    for size in range(int(node == evidence.frequency), len(possible_parents) + 1):
        for parents in combinations(possible_parents, size):
            # 3^k vectors for k parents, (1 + 3)^5 = 1,024 over all parent sets of five properties
            squares = np.array(list(product(SQUARE_WEIGHTS, repeat=size))).reshape(len(SQUARE_WEIGHTS) ** size, size)
            explained, predicted = _explaining_squares(evidence, node, parents, squares)
            rows = np.zeros((len(explained), len(evidence.nodes)))
            rows[:, parents] = explained
            vectors.append(rows)
            predictions.append(predicted)
    return SquareWeights(node, np.vstack(vectors), np.concatenate(predictions))


def _explaining_squares(
    evidence: Evidence, node: int, parents: tuple[int, ...], squares: Floats
) -> tuple[Floats, Floats]:
    """Return the square weights that linear ones complete, and their predictions for the reactor crystal."""
    exact = np.all(np.abs(evidence.table) <= MAX_EXACT_READING, axis=1)
    stretches = [[i for i in stretch if exact[i]] for stretch in evidence.stretches(node)]
    stretches = [stretch for stretch in stretches if len(stretch) > 1]
    rows = [i for stretch in stretches for i in stretch]
    unknown = np.full(len(squares), np.nan)
    if not rows:
        return squares, unknown
    stretch_indices = np.repeat(np.arange(len(stretches)), [len(s) for s in stretches])
    columns = evidence.table[np.ix_(rows, parents)]
    design = np.hstack([columns, (stretch_indices[:, None] == np.arange(len(stretches))).astype(float)])
    # one factorisation for all 3^k vectors of squares, which change only the right-hand side
    goals = evidence.table[rows, node][:, None] - columns**2 @ squares.T
    scale = np.maximum(np.abs(design).max(axis=0), 1.0)
    weights = np.linalg.lstsq(design / scale, goals, rcond=1e-10)[0] / scale[:, None]
    close = np.sqrt(np.mean((design @ weights - goals) ** 2, axis=0)) <= ROUNDING + EXACT
    if node != evidence.frequency:
        return squares[close], unknown[close]
    reactor_values = evidence.reactor[list(parents)]
    row = np.append(reactor_values, 1.0)
    if np.isnan(row).any() or not _in_row_space(design / scale, row / scale):
        return squares[close], unknown[close]
    return squares[close], (squares @ reactor_values**2 + row @ weights)[close]


def _in_row_space(design: Floats, row: Floats) -> bool:
    """Return whether the readings determine this linear combination of the weights."""
    combination = np.linalg.lstsq(design.T, row, rcond=1e-10)[0]
    return bool(np.abs(design.T @ combination - row).max() <= DETERMINED)


# --- Weights of the frequency to six decimals, by further extreme settings once the mechanism is known ----------------
FAR, BACK = 20_000.0, 0.0  # settings of the parent to be measured, and of parents that move with it
WEIGHT_DECIMALS = 6
READING_TOLERANCE = 0.02  # tolerance of the frequency: rounding of the reading and of its base


def solve_to_six_decimals(episode: LabEpisode) -> Outcome[Answer]:
    """Refine the exact solver's answer: the frequency's linear weights to six decimals, within the allowance."""
    outcome = solve_quadratic(episode)
    return Found(_refine_weights(episode, outcome.value)) if isinstance(outcome, Found) else outcome


def _refine_weights(episode: LabEpisode, answer: Answer) -> Answer:
    """Return the answer with refined weights; unchanged if settings run out or the refined mechanism does not fit."""
    weights = dict(answer.mechanism.weights(FREQUENCY))
    squares = answer.mechanism.weights(FREQUENCY, 2)
    downstream = {parent: _descendants(answer.mechanism, parent) & weights.keys() for parent in weights}
    # by number of downstream parents of the frequency, fewest first: the weights of those that move along are known
    for parent in sorted(weights, key=lambda name: (len(downstream[name]), name)):
        dragged = sorted(downstream[parent], key=lambda name: (-len(downstream[name]), name))
        if episode.left < 1 + len(dragged):
            return answer
        step = episode.act({"set": parent, "value": FAR})
        for name in dragged:
            step = episode.act({"set": name, "value": BACK})
        if step.reading is None:
            return answer
        reading = step.reading
        other_terms = fsum(squares[q] * reading[q] ** 2 + weights[q] * reading[q] for q in weights if q != parent)
        parent_term = (
            reading[FREQUENCY] - answer.mechanism.frequency_base - other_terms - squares[parent] * reading[parent] ** 2
        )
        weights[parent] = round(parent_term / reading[parent], WEIGHT_DECIMALS)
    refined = _with_weights(answer.mechanism, weights)
    return replace(answer, mechanism=refined) if _fits_readings(episode, refined) else answer


def _descendants(mechanism: Mechanism, node: str) -> set[str]:
    names: set[str] = set()
    unseen = [node]
    while unseen:
        ancestor = unseen.pop()
        for parent, child in mechanism.edges:
            if parent == ancestor and child not in names:
                names.add(child)
                unseen.append(child)
    return names


def _with_weights(mechanism: Mechanism, weights: dict[str, float]) -> Mechanism:
    frequency_law = mechanism.frequency
    terms = tuple(Term(t.parent, t.power, weights[t.parent] if t.power == 1 else t.weight) for t in frequency_law.terms)
    return Mechanism({**mechanism.equations, FREQUENCY: replace(frequency_law, terms=terms)})


def _fits_readings(episode: LabEpisode, mechanism: Mechanism) -> bool:
    """Return whether the frequency's equation gives every reading, within display and floating-point error."""
    evidence = evidence_of(episode.task, episode.steps)
    nodes = evidence.nodes
    for row in evidence.table:
        value = dict(zip(nodes, row.tolist(), strict=True))
        parts = [t.weight * value[t.parent] ** t.power for t in mechanism.frequency.terms]
        distance = abs(mechanism.frequency_base + fsum(parts) - value[FREQUENCY])
        if distance > READING_TOLERANCE + float(np.sum(np.abs(parts))) * 1e-6:
            return False
    return True
