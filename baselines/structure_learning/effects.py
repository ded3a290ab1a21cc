"""Effects of interventions in learned networks, and ranks of networks by their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_graphs import essential_graphs
from calibrant.baselines.structure_learning._kernels_optimum import TIE
from calibrant.baselines.structure_learning.classes import EssentialGraph, separated_pairs
from calibrant.baselines.structure_learning.constraints import Dag, Mask
from calibrant.baselines.structure_learning.levels import (
    F64,
    I64,
    MAX_STEPS,
    LevelFrame,
    ScoreOptimum,
    changes_of,
    num_changes,
)
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import CheckedKnowledge
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.outcome import BudgetSpent

# --- Effects of interventions in networks: P(Y = y | do(X = x)) by the truncated product of posterior means -----------
# The probability of a value given the parents is (s/(q r) + n_jk) / (s/q + n_j) from rows in which the column was not
# set, with s imaginary rows in all. With BDe the product of these means is the posterior mean of the effect in the
# network. Variables are summed out one by one, those that leave the smallest table first; only ancestors of Y count.
MAX_TABLE = 20_000_000  # entries of a table of the elimination
MAX_EXACT_TABLE = 20_000  # tables of more entries have floats in place of fractions
MAX_LISTED_MEMBERS = 10_000  # members of a class that are evaluated one by one
MAX_DIRECT_MEMBERS = 100  # up to here members are listed even if one for each parent set would suffice


class Query(NamedTuple):
    """Query P(target = value | do(setting)), by indices of columns and codes of values."""

    target: int
    value: int
    setting: Mapping[int, int]


class _Table(NamedTuple):
    """Table over some variables, one axis each in this order."""

    scope: tuple[int, ...]
    values: npt.NDArray[Any]


class ClassEffect(NamedTuple):
    """Effects over a class; values: the distinct ones, ascending; members: number of networks."""

    values: tuple[Fraction | float, ...]
    members: int


@dataclass
class Effects:
    """Effects in networks on one frame.

    imaginary_rows: s of the posterior means
    """

    frame: LevelFrame
    imaginary_rows: Fraction
    _tables: dict[tuple[int, Mask], _Table] = field(default_factory=dict)
    _effects: dict[tuple[object, ...], Fraction | float] = field(default_factory=dict)

    def in_network(self, dag: Dag, query: Query, *, is_exact: bool = True) -> Fraction | float:
        """Return the probability; a fraction if tables are small and `is_exact`.

        `CalibrantError` if a table of the elimination has more than MAX_TABLE entries.
        """
        relevant = _ancestors(dag, query)
        key = (is_exact, query.target, query.value, tuple(sorted(query.setting.items())))
        families = tuple((v, dag[v]) for v in members_of(relevant))
        if (key, families) not in self._effects:
            self._effects[key, families] = self._eliminate(families, query, is_exact)
        return self._effects[key, families]

    def over_class(self, graph: EssentialGraph, query: Query) -> ClassEffect | None:
        """Return the different values over the members of a class.

        Members are listed up to MAX_LISTED_MEMBERS. Beyond, for a single intervened column X, one member for each
        possible parent set of X suffices, since equivalent networks with equal parents of X have equal effects. None
        if neither is possible.
        """
        members = graph.num_members
        if members > (MAX_DIRECT_MEMBERS if len(query.setting) == 1 else MAX_LISTED_MEMBERS):
            if len(query.setting) == 1:
                try:
                    by_parents = [dag for dag, _ in graph.members_by_parents(next(iter(query.setting)))]
                except BudgetSpent:
                    return None
                # under knowledge members are listed anyway; equal parents of X give equal effects
                return ClassEffect(self._different(by_parents, query), members)
            return None
        return ClassEffect(self._different(graph.members(), query), members)

    def _different(self, dags: Any, query: Query) -> tuple[Fraction | float, ...]:
        values = sorted({self.in_network(dag, query) for dag in dags})
        different: list[Fraction | float] = []
        for value in values:
            # floats of large tables: equal effects differ by rounding
            if not different or isinstance(value, Fraction) or value - different[-1] > 1e-12:
                different.append(value)
        return tuple(different)

    def _eliminate(self, families: Sequence[tuple[int, Mask]], query: Query, is_exact: bool) -> Fraction | float:
        levels = self.frame.levels
        tables = [self._restrict(self._table_of(v, parents), query) for v, parents in families]
        sizes = prod(levels[v] for v, _ in families if v != query.target)
        is_exact = is_exact and max([table.values.size for table in tables], default=1) <= MAX_EXACT_TABLE
        is_exact = is_exact and sizes <= MAX_EXACT_TABLE**2
        if not is_exact:
            tables = [_Table(table.scope, table.values.astype(np.float64)) for table in tables]
        hidden = {v for v, _ in families} - {query.target}
        while hidden:
            v = min(hidden, key=lambda u: (_size(_scope([t for t in tables if u in t.scope]), levels), u))
            touched = [table for table in tables if v in table.scope]
            scope = _scope(touched)
            if _size(scope, levels) > MAX_TABLE:
                raise CalibrantError(f"an effect needs a table of more than {MAX_TABLE:,} entries; --drop columns")
            product = _multiply(touched, scope)
            remaining_scope = tuple(u for u in scope if u != v)
            tables = [table for table in tables if v not in table.scope]
            tables.append(_Table(remaining_scope, np.asarray(product.sum(axis=scope.index(v)), product.dtype)))
            hidden.remove(v)
        return _as_scalar(prod(_multiply(tables, ()).ravel().tolist()), is_exact)

    def means(self, v: int, parents: Mask) -> npt.NDArray[Any]:
        """Return the posterior means of a column given its parents, ascending, the column's axis last."""
        return self._table_of(v, parents).values

    def _table_of(self, v: int, parents: Mask) -> _Table:
        """Return the posterior means with their columns; fractions, unless the table is large."""
        if (v, parents) not in self._tables:
            frame = self.frame
            scope = (*members_of(parents), v)
            shape = tuple(frame.levels[u] for u in scope)
            if prod(shape) > MAX_TABLE:
                raise CalibrantError(f"an effect needs a table of more than {MAX_TABLE:,} entries; --drop columns")
            is_free = (frame.clamped >> np.uint64(v) & np.uint64(1)) == 0
            flat = np.zeros(len(frame.weights), np.int64)
            for u in scope:
                flat = flat * frame.levels[u] + frame.codes[u]
            counts = np.bincount(flat[is_free], weights=frame.weights[is_free], minlength=prod(shape))
            rows = counts.astype(np.int64).reshape(shape)
            totals = rows.sum(axis=-1, keepdims=True)
            if prod(shape) > MAX_EXACT_TABLE:
                s = float(self.imaginary_rows)
                means: npt.NDArray[Any] = (s / prod(shape) + rows) / (s / prod(shape[:-1]) + totals)
            else:
                cell, row = self.imaginary_rows / prod(shape), self.imaginary_rows / prod(shape[:-1])
                means = np.empty(shape, object)
                for index in np.ndindex(shape):
                    means[index] = (cell + int(rows[index])) / (row + int(totals[(*index[:-1], 0)]))
            self._tables[v, parents] = _Table(scope, means)
        return self._tables[v, parents]

    def _restrict(self, table: _Table, query: Query) -> _Table:
        """Return the table restricted to the values of the query."""
        fixed = {**query.setting, query.target: query.value}
        values = table.values[tuple(fixed.get(v, slice(None)) for v in table.scope)]
        return _Table(tuple(v for v in table.scope if v not in fixed), np.asarray(values, table.values.dtype))


def _as_scalar(value: Any, is_exact: bool) -> Fraction | float:
    return Fraction(value) if is_exact else float(value)


def _ancestors(dag: Dag, query: Query) -> Mask:
    """Return Y and its ancestors, without X, after removal of the arcs into X."""
    relevant = frontier = 1 << query.target
    is_set = sum(1 << v for v in query.setting)
    while frontier:
        reached = 0
        for v in members_of(frontier):
            reached |= dag[v]
        frontier = reached & ~relevant & ~is_set
        relevant |= frontier
    return relevant


def _scope(tables: Sequence[_Table]) -> tuple[int, ...]:
    return tuple(sorted({v for table in tables for v in table.scope}))


def _size(scope: Sequence[int], levels: Sequence[int]) -> int:
    return prod(levels[v] for v in scope)


def _multiply(tables: Sequence[_Table], scope: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the product of tables over a scope that contains all of theirs."""
    product: npt.NDArray[Any] = np.ones((), object if any(t.values.dtype == object for t in tables) else np.float64)
    for table in tables:
        axes = sorted(range(len(table.scope)), key=lambda i: table.scope[i])
        values = np.transpose(table.values, axes) if table.scope else table.values
        sizes = dict(zip(sorted(table.scope), values.shape, strict=True))
        product = product * values.reshape(tuple(sizes.get(v, 1) for v in scope))
    return np.asarray(product)


# --- Rank of a network among all admitted ones: how many score higher, and the best single change ---------------------
MAX_RANKED = 1_000_000  # networks that score as high


@dataclass(frozen=True)
class Ranking:
    """Rank of a network.

    score: its score; gap: optimum minus score, in nats, negative only with violations
    is_gap_exact: whether the optimum is proven
    better_networks, better_classes: numbers of admitted networks, and of their classes, with a higher score
    equal_networks: number of networks with this score, itself included
        All three are None if there are more than MAX_RANKED, or `is_counted` is False.
    posterior: logarithm of its probability among all admitted networks; None without a Bayesian score
    gain, changes: best single change, and all (kind, from, to) that reach it; None and empty if none is admitted
    distance: fewest changes to an optimal network; violations: of the knowledge, in words
    """

    score: float
    gap: float
    better_networks: int | None
    better_classes: int | None
    equal_networks: int | None
    posterior: float | None
    gain: float | None
    changes: tuple[tuple[str, str, str], ...]
    distance: int
    violations: tuple[str, ...]
    is_gap_exact: bool = True
    is_counted: bool = True

    @property
    def num_better_below(self) -> str | None:
        """Upper bound on the number of higher networks, as text: each is more probable, and probabilities sum to 1."""
        return None if self.posterior is None else log_text(-self.posterior)

    def to_dict(self) -> dict[str, Any]:
        """Return the rank, ready for JSON."""
        beyond = f">{MAX_RANKED:,}" if self.is_counted else None
        values: dict[str, Any] = {
            "score": self.score,
            "gap": self.gap,
            "better_networks": beyond if self.better_networks is None else self.better_networks,
            "better_classes": beyond if self.better_classes is None else self.better_classes,
            "equal_networks": beyond if self.equal_networks is None else self.equal_networks,
            "best_change": None if self.gain is None else {"gain": self.gain, "changes": [*map(list, self.changes)]},
            "distance": self.distance,
            "violations": list(self.violations),
        }
        if self.posterior is not None and not self.violations:  # undefined for a network that is not admitted
            values["posterior_dags"] = log_text(self.posterior)
        if not self.is_counted and self.posterior is not None:
            values["better_networks_below"] = self.num_better_below
        return values


def log_text(logarithm: float) -> str:
    """Return the number with this natural logarithm as text of ten digits, also beyond the range of floats."""
    exponent = int(np.floor(logarithm / np.log(10)))
    mantissa = exp(logarithm - exponent * float(np.log(10)))
    if round(mantissa, 9) >= 10:
        mantissa, exponent = mantissa / 10, exponent + 1
    return f"{mantissa:.9f}e{exponent:+03d}"


class HigherNetworks(NamedTuple):
    """Numbers of admitted networks and classes with a higher score than a network, and of networks with its score."""

    better_networks: int
    better_classes: int
    equal_networks: int


def count_higher(networks: I64, totals: F64, score: float, targets: Sequence[Mask]) -> HigherNetworks:
    """Count networks by score; networks: [networks, columns] all of at least this score, and possibly others."""
    higher = networks[totals > score + TIE]
    num_equal = int(np.count_nonzero(abs(totals - score) <= TIE))
    return HigherNetworks(len(higher), count_classes(higher, targets), num_equal)


def list_higher(optimum: ScoreOptimum, best: float, score: float, targets: Sequence[Mask]) -> HigherNetworks | None:
    """List the networks within the gap to the highest score and count them; None beyond MAX_RANKED."""
    networks, is_complete = optimum.list_within(max(0.0, best - score) + TIE, MAX_RANKED, MAX_STEPS)
    return count_higher(networks, optimum.totals_of(networks), score, targets) if is_complete else None


def rank_dag(
    dag: Dag,
    names: Sequence[str],
    knowledge: CheckedKnowledge,
    score: float,
    best: float,
    optimal: Iterable[Dag],
    gain_of: Callable[[Dag], float],
    *,
    higher: HigherNetworks | None,
    log_sum: float | None,
    is_proven: bool = True,
    is_counted: bool = True,
) -> Ranking:
    """Rank a network.

    score, best: its score and the highest; optimal: networks with the highest
    gain_of: return the score of a changed network minus that of this one; higher: None if more than MAX_RANKED
    log_sum: log of the sum of exp(score) over all admitted networks, None without a Bayesian score
    is_proven: whether no network scores more than the optimal ones; is_counted: whether the higher were listed
    """
    gain, changes = _best_changes(dag, names, knowledge, gain_of)
    better, classes, equal = higher or (None, None, None)
    violations = tuple(knowledge.violations(dag))
    return Ranking(
        score,
        best - score if violations else max(0.0, best - score),
        better,
        classes,
        equal,
        None if log_sum is None else score - log_sum,
        gain,
        changes,
        min(num_changes(dag, network) for network in optimal),
        violations,
        is_proven,
        is_counted,
    )


def count_classes(dags: I64, targets: Sequence[Mask]) -> int:
    """Count the classes of networks, [networks, columns]."""
    if not len(dags):
        return 0
    num_vars = dags.shape[1]
    graphs = np.empty((len(dags), 2 * num_vars), np.int64)
    essential_graphs(np.ascontiguousarray(dags), np.array(separated_pairs(num_vars, targets), np.int64), graphs)
    return len(np.unique(graphs, axis=0))


def _best_changes(
    dag: Dag, names: Sequence[str], knowledge: CheckedKnowledge, gain_of: Callable[[Dag], float]
) -> tuple[float | None, tuple[tuple[str, str, str], ...]]:
    gains: list[tuple[float, str, int, int]] = []
    for kind, parent, child, changed in changes_of(dag, knowledge):
        gains.append((gain_of(changed), kind, parent, child))
    if not gains:
        return None, ()
    best = max(gain for gain, *_ in gains)
    return best, tuple((kind, names[u], names[v]) for gain, kind, u, v in gains if gain >= best - TIE)
