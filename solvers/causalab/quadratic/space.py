"""Version space of quadratic laboratories: graphs with square weights that some linear weights complete.

Linear weights are real numbers, so graphs with the square weights of the suites are counted. A vector of square weights
is consistent if the best linear weights leave a root mean square residual that rounding can cause. The truth never
leaves more, so it is a member; near misses may be members too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from calibrant.dsl.causalab.generation import SQUARE_WEIGHTS
from calibrant.dsl.causalab.item import Family, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Values
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.choices import Options, count_by_edge, count_choices, count_graph
from calibrant.solvers.causalab.evidence import Evidence, Floats
from calibrant.solvers.causalab.graphs import GraphSpace
from calibrant.solvers.causalab.quadratic.solve import ROUNDING
from calibrant.solvers.causalab.replay import EXACT
from calibrant.solvers.space import space_repr

MAX_PROPERTIES = 5  # 4 ** 5 vectors of square weights a node
SAME_PREDICTION = 0.5  # predictions closer than this count as equal
DETERMINED = 1e-6
MAX_EXACT_READING = 1e5  # beyond that floats do not keep hundredths in squares; such readings are left out


@dataclass(frozen=True)
class SquareWeights:
    """Possible square weights of one node.

    vectors: (vectors, nodes), 0 where there is no edge
    predictions: (vectors,): of the reactor crystal, for the frequency; NaN where it is not determined
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
        """Return the members that still explain all readings; members that were ruled out stay out."""
        # intersection: with more readings the mean residual of a refuted vector may fall below the limit again
        later = quadratic_dags(self.evidence.after(*experiment, reading))
        survivors = []
        for now, local in zip(later.locals, self.locals, strict=True):
            before = {tuple(row) for row in local.vectors.tolist()}
            is_remaining = np.array([tuple(row) in before for row in now.vectors.tolist()], dtype=np.bool_)
            survivors.append(SquareWeights(now.node, now.vectors[is_remaining], now.predictions[is_remaining]))
        return QuadraticDags(later.evidence, tuple(survivors))

    def verdicts(self) -> Mapping[float, int]:
        """Count the members by predicted frequency; nearly equal ones are merged, NaN is undetermined."""
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
        return {value: number for value, number in value_counts.items() if number}

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Number of members with each edge that some member has."""
        return count_by_edge(self._options, self.evidence.nodes)

    def having_graph(self, edges: Set[Edge]) -> int:
        """Count the members with exactly these edges."""
        return count_graph(self._options, edges, self.evidence.nodes)


def quadratic_dags(evidence: Evidence) -> QuadraticDags:
    """Return the space of a quadratic task without noise; `BudgetSpent` for others, and for too many properties."""
    if (why := _not_enumerated(evidence.task)) is not None:
        raise BudgetSpent(why)
    return QuadraticDags(evidence, tuple(_explain_node(evidence, node) for node in range(len(evidence.nodes))))


def _not_enumerated(task: Task) -> str | None:
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
    stretch_numbers = np.repeat(np.arange(len(stretches)), [len(s) for s in stretches])
    columns = evidence.table[np.ix_(rows, parents)]
    design = np.hstack([columns, (stretch_numbers[:, None] == np.arange(len(stretches))).astype(float)])
    # all vectors of squares are right-hand sides of one factorisation: 3^k columns for k parents
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
