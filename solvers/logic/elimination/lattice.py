"""Elimination along the prior: the lattice of states; each member within a misfit limit is a path through it.

Nodes are placed one after the other. A *state* is the values of the live nodes, those that later nodes may read; a
*transition* places a node with a formula of a *group*, formulas that lead to the same state at the same misfit and
size. Arrays are ordered by state, block and step, so that states, transitions and groups have the same indices as in a
pass state by state.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.dsl.logic.item import Clause, Model
from calibrant.solvers.logic.elimination.bounds import (
    HAS,
    USED,
    WORD_LIMIT,
    LocalSteps,
    StateMatrix,
    Step,
    Words,
    first_occurrences,
    indices_of,
    number_rows,
    numbers_of,
    readout_bounds,
    span_positions,
    state_matrix,
    take_states,
    unsigned_array,
)
from calibrant.solvers.logic.elimination.stages import (
    Charge,
    Layer,
    SinglePlacer,
    Stage,
    Unit,
    expand,
    make_placer,
    make_stages,
    placement_order,
)
from calibrant.solvers.logic.network import MAX_FORMULAS, Columns, FormulaLimitError, Network

# --- A stage of one node over the states of a layer at once: states and transitions as `expand` has them, faster ------
MAX_CANDIDATES = 1 << 23  # transitions before bounds are applied: 64 bytes each, 512 MB
_FLAGS = HAS | USED


@dataclass(frozen=True)
class _Blocks:
    """Steps of the keys of a layer, in sequence: blocks of key k begin at `first[k]`, steps of block b at `start[b]`.

    marks: [blocks, slots] `USED` in the slots of parents that a block uses
    costs, values, groups: [steps] see `Step`; distinct: different costs, ascending
    ranks: [steps] index of each cost in `distinct`, plus block * (len(distinct) + 1), so that ranks ascend
    """

    first: Words
    start: Words
    marks: Words
    costs: Words
    values: Words
    groups: Words
    distinct: Words
    ranks: Words

    def num_within(self, block: Words, max_cost: Words) -> Words:
        """Return the number of steps of each block that cost at most its `max_cost`."""
        thresholds = np.searchsorted(self.distinct, max_cost, side="right")
        ends = np.searchsorted(self.ranks, block * (len(self.distinct) + 1) + thresholds, side="left")
        return ends - self.start[block]


@dataclass(frozen=True)
class _Candidates:
    """Transitions before bounds are applied.

    sources, blocks: [pairs] state and block; pairs, steps: [transitions] pair and step, by source state
    rows: [transitions] code of the target state: equal iff the target states are
    """

    sources: Words
    blocks: Words
    pairs: Words
    steps: Words
    rows: Words


def expand_at_once(placer: SinglePlacer, layer: Layer, limit: int, charge: Charge) -> Layer | None:
    """Return the states after a stage whose misfit so far and bound stay within the limit.

    None if there are over `MAX_CANDIDATES` transitions before bounds, or pairs of a state and a block. Misfits must be
    within `WORD_LIMIT`.
    """
    limit = min(limit, WORD_LIMIT)
    states = state_matrix(layer.states)
    best = np.array(layer.best, dtype=np.int64)
    keys, blocks = _read_blocks(placer, states, charge)
    candidates = _list_candidates(placer, states, limit - placer.rest - best, keys, blocks)
    if candidates is None:
        return None
    pairs, steps = candidates.pairs, candidates.steps
    first, target_of = first_occurrences(candidates.rows)
    targets = _target_states(placer, states, candidates, blocks, first)
    assert placer.stage.after is not None
    bounds = placer.stage.after.bounds(targets)
    placer.steps.evaluations += placer.stage.bound_effort * len(first)
    sources = candidates.sources[pairs]
    misfits = best[sources] + blocks.costs[steps]
    is_within = misfits + bounds[target_of] <= limit
    target_of, sources = target_of[is_within], sources[is_within]
    first, new_index = first_occurrences(target_of)
    least = np.full(len(first), WORD_LIMIT, dtype=np.int64)
    np.minimum.at(least, new_index, misfits[is_within])
    starts = array("q", [0])
    starts.frombytes(np.cumsum(np.bincount(sources, minlength=len(states)).astype(np.int64)).tobytes())
    following = Layer(
        StateMatrix(targets[target_of[first]]),
        least.tolist(),
        starts,
        unsigned_array(new_index),
        unsigned_array(blocks.groups[steps[is_within]]),
    )
    charge(len(following.states), len(following.targets))
    return following


def _read_blocks(placer: SinglePlacer, states: Words, charge: Charge) -> tuple[Words, _Blocks]:
    """Return the index of each state's key, and the steps of all keys in the order of their first states."""
    numbers, _ = number_rows([states[:, p] >> 1 for p in placer.parents], len(states))
    first, keys = first_occurrences(numbers)
    firsts, starts, masks = [0], [0], []
    steps: list[Step] = []
    for row in first.tolist():
        for mask, block in placer.steps.steps(placer.node, tuple([int(states[row, p]) >> 1 for p in placer.parents])):
            masks.append(mask)
            steps += block
            starts.append(len(steps))
        firsts.append(len(masks))
        charge(0, 0)  # formulas evaluated so far
    costs, values, groups = np.array(steps, dtype=np.int64).reshape(len(steps), 3).T
    marks = np.zeros((len(masks), states.shape[1]), dtype=np.int64)
    for bit, slot in enumerate(placer.parents):
        marks[:, slot] = [USED * (mask >> bit & 1) for mask in masks]
    start = np.array(starts, dtype=np.int64)
    distinct, ranks = np.unique(costs, return_inverse=True)
    ranks = ranks + np.repeat(np.arange(len(masks)), np.diff(start)) * (len(distinct) + 1)
    return keys, _Blocks(np.array(firsts, dtype=np.int64), start, marks, costs, values, groups, distinct, ranks)


def _list_candidates(
    placer: SinglePlacer, states: Words, max_cost: Words, keys: Words, blocks: _Blocks
) -> _Candidates | None:
    """Return the transitions that cost at most `max_cost` of their source; None if these are too many."""
    counts = np.diff(blocks.first)[keys]
    if int(counts.sum()) > MAX_CANDIDATES:
        return None
    sources = np.repeat(np.arange(len(states)), counts)
    block = span_positions(blocks.first[keys], counts)
    is_allowed = np.ones(len(sources), dtype=np.bool_)
    for slot in placer.leaving:
        # a node that no later node reads must be used or have no formula
        is_allowed &= (states[sources, slot] | blocks.marks[block, slot]) & _FLAGS != HAS
    sources, block = sources[is_allowed], block[is_allowed]
    counts = blocks.num_within(block, max_cost[sources])
    if int(counts.sum()) > MAX_CANDIDATES:
        return None
    pairs = np.repeat(np.arange(len(sources)), counts)
    steps = span_positions(blocks.start[block], counts)
    heads, _ = number_rows([states[sources, p] | blocks.marks[block, p] for p in placer.remaining], len(sources))
    if placer.tail is None:
        # the placed node has no later reader: it must be used or have no formula, too
        is_allowed = blocks.values[steps] & _FLAGS != HAS
        pairs, steps = pairs[is_allowed], steps[is_allowed]
        return _Candidates(sources, block, pairs, steps, heads[pairs])
    values, positions = np.unique(blocks.values, return_inverse=True)
    return _Candidates(sources, block, pairs, steps, heads[pairs] * len(values) + positions[steps])


def _target_states(placer: SinglePlacer, states: Words, candidates: _Candidates, blocks: _Blocks, rows: Words) -> Words:
    """Return the target states of some transitions; rows: indices of the transitions."""
    pairs = candidates.pairs[rows]
    sources, block = candidates.sources[pairs], candidates.blocks[pairs]
    columns = [states[sources, p] | blocks.marks[block, p] for p in placer.remaining]
    if placer.tail is not None:
        columns.append(blocks.values[candidates.steps[rows]])
    return np.array(columns, dtype=np.int64).reshape(len(columns), len(rows)).T


MAX_STATES = 2_000_000  # states of all layers together
MAX_NODES = 500  # nodes between stimuli and readouts; published priors have about 60
TRANSITIONS_PER_STATE = 25  # 8 bytes a transition: 400 MB at the usual number of states
EVALUATIONS_PER_STATE = 100  # formulas evaluated by local steps, about 0.1 microseconds each
MANY_STATES = 1_000  # states of a layer from which arrays are faster than states one by one
BEAM = 10  # states of each layer that a beam search keeps; a wider beam takes longer than growing limits
SIZE_BASE = 1 << 32  # a pair (misfit, size) is the integer misfit * SIZE_BASE + size


class LatticeLimitError(Exception):
    """Error: the budget ran out; the message states which limit, at which node, and what to try."""


@dataclass
class Lattice:
    """Layers of states; a path from the first layer to the last has a group of formulas for each node.

    least: [layers][states] least pair (misfit, size) from the state to the end, as an integer (SIZE_BASE)
    limit: upper limit of the misfit of paths, without the constant; None for no limit
    """

    network: Network
    columns: Columns
    steps: LocalSteps
    stages: Sequence[Stage]
    layers: list[Layer]
    least: list[list[int]]
    limit: int | None

    @property
    def fits_words(self) -> bool:
        """Whether pairs (misfit, size) of paths fit 64-bit numbers."""
        return self.columns.greatest_misfit < WORD_LIMIT // SIZE_BASE // 2

    @property
    def num_states(self) -> int:
        return sum(len(layer.states) for layer in self.layers)

    @property
    def optimum(self) -> tuple[int, int] | None:
        """Least misfit with the constant, then least size; None without a path."""
        if not self.least[0]:
            return None
        misfit, size = divmod(self.least[0][0], SIZE_BASE)
        return misfit + self.columns.constant, size

    def formula(self, group: int, clauses: Iterable[int]) -> Iterable[Clause]:
        """Yield a formula of a group as clauses with names."""
        node = self.steps.nodes[group]
        for number in clauses:
            yield self.clause(node, number)

    def clause(self, node: int, number: int) -> Clause:
        """Return a clause of a node with names."""
        network = self.network
        mask = self.steps.clauses(node).literals[number]
        literals = (literal for i, literal in enumerate(network.literals[node]) if mask >> i & 1)
        names = ((network.stimuli[~s] if s < 0 else network.nodes[s], sign) for s, sign in literals)
        return Clause(network.nodes[node], tuple(sorted(names)))

    def best_model(self) -> Model:
        """Return a model of the least misfit and size, by the first such transition at each state."""
        clauses: set[Clause] = set()
        state = 0
        costs, sizes = self.steps.costs, self.steps.sizes
        for depth in range(1, len(self.layers)):
            layer, least = self.layers[depth], self.least[depth]
            goal = self.least[depth - 1][state]
            for t in range(layer.starts[state], layer.starts[state + 1]):
                target, group = layer.targets[t], layer.groups[t]
                if costs[group] * SIZE_BASE + sizes[group] + least[target] == goal:
                    clauses.update(self.formula(group, self.steps.formulas(group)[0]))
                    state = target
                    break
        return frozenset(clauses)


class LatticeBuilder:
    """Builder of lattices over one network and its columns, within one budget of states and formulas."""

    def __init__(
        self,
        network: Network,
        columns: Columns,
        *,
        max_states: int = MAX_STATES,
        max_formulas: int = MAX_FORMULAS,
        order: Sequence[Unit] | None = None,
    ) -> None:
        """Prepare the order of nodes; `LatticeLimitError` for too many nodes, or too many formulas of a node."""
        if len(network) > MAX_NODES:
            raise LatticeLimitError(f"over {MAX_NODES} nodes between stimuli and readouts ({len(network)})")
        self.network = network
        self.columns = columns
        self.max_states = max_states
        self.steps = LocalSteps(network, columns, max_formulas)
        # first, so that a node of too many formulas fails at once
        self._check_formulas()
        self.order = placement_order(network) if order is None else list(order)
        self.stages = make_stages(network, columns, self.order)
        self._bound = sum(readout_bounds(network, columns).values())
        self._fits_words = columns.greatest_misfit <= WORD_LIMIT
        self.spent = 0

    def _check_formulas(self) -> None:
        for node in range(len(self.network)):
            try:
                self.steps.clauses(node)
            except FormulaLimitError as error:
                raise LatticeLimitError(self._formula_text(error)) from None

    def _formula_text(self, error: FormulaLimitError) -> str:
        network = self.network
        sources = len({source for source, _ in network.literals[error.node]})
        return (
            f"over {error.limit:,} formulas of node {network.nodes[error.node]} with {sources} sources: "
            "try a smaller --max-clause"
        )

    @property
    def lower_bound(self) -> int:
        """Lower bound of the misfit of every model."""
        return self.columns.constant + self._bound

    def has_path(self, lattice: Lattice) -> bool:
        """Return whether a lattice has a path."""
        return bool(lattice.least[0]) and lattice.least[0][0] < UNREACHABLE

    def beam(self) -> Lattice:
        """Return the lattice of the `BEAM` best states of each layer; its best model gives an upper bound."""
        return self._build(None, BEAM)

    def full(self, limit: int | None) -> Lattice:
        """Return the lattice of all models whose misfit is at most the limit (the constant included)."""
        return self._build(None if limit is None else limit - self.columns.constant, None)

    def _build(self, limit: int | None, beam: int | None) -> Lattice:
        stages = self.stages
        layers = [Layer([()], [0])]
        max_misfit = UNREACHABLE if limit is None else limit
        for index, stage in enumerate(stages):
            layer = self._expand(index, layers[-1], max_misfit)
            if beam is not None:
                layer = _best_states(layer, stage, beam)
            layers.append(layer)
        lattice = Lattice(self.network, self.columns, self.steps, stages, layers, [], limit)
        lattice.least = _least_to_go(lattice)
        return lattice

    def _expand(self, stage_index: int, layer: Layer, max_misfit: int) -> Layer:
        """Return the next layer; charge the budget."""
        spent_before = self.spent

        def charge(states: int, transitions: int) -> None:
            self.spent = spent_before + states
            max_transitions = self.max_states * TRANSITIONS_PER_STATE
            max_evaluations = self.max_states * EVALUATIONS_PER_STATE
            if self.spent > self.max_states:
                raise LatticeLimitError(f"over {self.max_states:,} states{self._where(stage_index)}")
            if transitions > max_transitions:
                raise LatticeLimitError(f"over {max_transitions:,} steps{self._where(stage_index)}")
            if self.steps.evaluations > max_evaluations:
                raise LatticeLimitError(f"over {max_evaluations:,} formulas evaluated{self._where(stage_index)}")

        try:
            placer = make_placer(self.stages[stage_index], self.steps)
            next_layer = None
            if isinstance(placer, SinglePlacer) and len(layer.states) >= MANY_STATES and self._fits_words:
                next_layer = expand_at_once(placer, layer, max_misfit, charge)
            return expand(placer, layer, max_misfit, charge) if next_layer is None else next_layer
        except FormulaLimitError as error:
            raise LatticeLimitError(self._formula_text(error)) from None

    def _where(self, stage_index: int) -> str:
        stage = self.stages[stage_index]
        names = [self.network.nodes[v] for v in stage.slots]
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        node = f"node {stage_index + 1} of {len(self.stages)}"
        return f" at {node}, frontier {listed}: try --max-clause 2 or a smaller --fit"


def _best_states(layer: Layer, stage: Stage, beam: int) -> Layer:
    """Return the layer restricted to its best states."""
    if len(layer.states) <= beam:
        return layer
    # misfit so far plus bound, as in A*; ties go to the first state, so that the beam is reproducible
    rated = sorted(range(len(layer.states)), key=lambda s: (layer.best[s] + stage.bound(layer.states[s]), s))
    return _restrict(layer, sorted(rated[:beam]), None)


def _restrict(layer: Layer, remaining: Sequence[int], sources: Sequence[int] | None) -> Layer:
    """Return the layer restricted to some states; sources: remaining states of the layer before, None for all."""
    new_index = [-1] * len(layer.states)
    for new, old in enumerate(remaining):
        new_index[old] = new
    smaller = Layer([layer.states[s] for s in remaining], [layer.best[s] for s in remaining])
    for source in range(len(layer.starts) - 1) if sources is None else sources:
        for t in range(layer.starts[source], layer.starts[source + 1]):
            if new_index[layer.targets[t]] >= 0:
                smaller.targets.append(new_index[layer.targets[t]])
                smaller.groups.append(layer.groups[t])
        smaller.starts.append(len(smaller.targets))
    return smaller


# larger than any pair: squares of doubles are below 2**2048, their sums over all cells below 2**2100
UNREACHABLE = 1 << 2400


def _least_to_go(lattice: Lattice) -> list[list[int]]:
    """Return the least pair (misfit, size) from each state to the end, UNREACHABLE without a path to it."""
    words = lattice.fits_words
    unreachable = WORD_LIMIT if words else UNREACHABLE
    costs, sizes = numbers_of(lattice.steps.costs, words=words), numbers_of(lattice.steps.sizes, words=words)
    deltas = costs * SIZE_BASE + sizes
    layers = lattice.layers
    following = numbers_of([0] * len(layers[-1].states), words=words)
    least = [following.tolist()]
    # one backward pass, O(transitions); pairs are integers that compare lexicographically
    for layer in reversed(layers[1:]):
        starts = np.array(layer.starts, dtype=np.int64)
        pairs = deltas[indices_of(layer.groups)] + following[indices_of(layer.targets)]
        following = numbers_of([unreachable] * (len(starts) - 1), words=words)
        has_transition = np.diff(starts) > 0
        if len(pairs):
            minima = np.minimum.reduceat(pairs, starts[:-1][has_transition])
            following[has_transition] = np.minimum(minima, unreachable)
        values = following.tolist()
        least.append([UNREACHABLE if value >= unreachable else value for value in values] if words else values)
    return least[::-1]


def prune(lattice: Lattice, limit: int | None) -> Lattice:
    """Return the lattice without states and transitions that no path within the misfit limit uses.

    limit: upper limit of the misfit, the constant included; None for no limit, which removes only dead ends
    """
    # the largest pair of misfit `limit`: sizes are limited later, in the sums
    max_pair = UNREACHABLE - 1 if limit is None else (limit - lattice.columns.constant + 1) * SIZE_BASE - 1
    words = lattice.fits_words
    max_pair = min(max_pair, WORD_LIMIT - 1) if words else max_pair
    costs = numbers_of(lattice.steps.costs, words=words)
    layers = lattice.layers
    remaining = np.array([0] if lattice.least[0] and lattice.least[0][0] <= max_pair else [], dtype=np.int64)
    pruned = [Layer(take_states(layers[0].states, remaining), [0 for _ in remaining])]
    least = [[lattice.least[0][s] for s in remaining]]
    # least misfit so far: if any path through a state remains, so does the one of least misfit to it
    base = numbers_of([0] * len(remaining), words=words)
    for depth in range(1, len(layers)):
        layer, least_to_go = layers[depth], lattice.least[depth]
        starts = np.array(layer.starts, dtype=np.int64)
        counts = np.diff(starts)[remaining]
        transitions = span_positions(starts[remaining], counts)
        sources = np.repeat(np.arange(len(remaining)), counts)
        targets, groups = indices_of(layer.targets)[transitions], indices_of(layer.groups)[transitions]
        to_go = numbers_of([min(value, max_pair + 1) for value in least_to_go], words=words)
        is_within = (base[sources] + costs[groups]) * SIZE_BASE + to_go[targets] <= max_pair
        first, new_index = first_occurrences(targets[is_within])
        num_within = np.bincount(sources[is_within], minlength=len(remaining))
        remaining = targets[is_within][first]
        smaller = Layer(take_states(layer.states, remaining), [layer.best[s] for s in remaining])
        smaller.starts.extend(np.cumsum(num_within).tolist())
        smaller.targets, smaller.groups = unsigned_array(new_index), unsigned_array(groups[is_within])
        base = numbers_of(smaller.best, words=words)
        least.append([least_to_go[s] for s in remaining])
        pruned.append(smaller)
    remaining_limit = None if limit is None else limit - lattice.columns.constant
    return Lattice(lattice.network, lattice.columns, lattice.steps, lattice.stages, pruned, least, remaining_limit)
