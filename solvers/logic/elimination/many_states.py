"""A stage of one node over the states of a layer at once: states and transitions as `expand` has them, faster.

Rows are state by state, block by block, step by step, so that states, transitions and groups get the numbers that
one pass over the states gives them.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from calibrant.solvers.logic.elimination.bounds import (
    WORD_LIMIT,
    StateMatrix,
    Words,
    first_occurrences,
    number_rows,
    span_positions,
    state_matrix,
    unsigned_array,
)
from calibrant.solvers.logic.elimination.stages import Charge, Layer, SinglePlacer
from calibrant.solvers.logic.local import HAS, USED, Step

MAX_CANDIDATES = 1 << 23  # transitions before bounds: 64 bytes each, 512 MB
_FLAGS = HAS | USED


@dataclass(frozen=True)
class _Blocks:
    """Steps of the keys of a layer, one after the other; blocks of key k from `first[k]`, steps of b from `start[b]`.

    marks: `USED` in the slots of parents that a block uses; distinct: all costs, ascending
    ranks: positions of costs there, after those of earlier blocks
    """

    first: Words
    start: Words
    marks: Words
    costs: Words
    values: Words
    groups: Words
    distinct: Words
    ranks: Words

    def num_within(self, block: Words, most: Words) -> Words:
        """Return how many steps of each block cost at most so much."""
        thresholds = np.searchsorted(self.distinct, most, side="right")
        ends = np.searchsorted(self.ranks, block * (len(self.distinct) + 1) + thresholds, side="left")
        return ends - self.start[block]


@dataclass(frozen=True)
class _Candidates:
    """Transitions before bounds.

    sources, blocks: of pairs of a state and a block; pairs, steps: of transitions, by source state
    rows: equal for transitions to one target state alone
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
    first, place = first_occurrences(candidates.rows)
    targets = _target_states(placer, states, candidates, blocks, first)
    assert placer.stage.after is not None
    bounds = placer.stage.after.bounds(targets)
    placer.steps.evaluations += placer.stage.bound_effort * len(first)
    sources = candidates.sources[pairs]
    misfits = best[sources] + blocks.costs[steps]
    within = misfits + bounds[place] <= limit
    place, sources = place[within], sources[within]
    first, numbers = first_occurrences(place)
    least = np.full(len(first), WORD_LIMIT, dtype=np.int64)
    np.minimum.at(least, numbers, misfits[within])
    starts = array("q", [0])
    starts.frombytes(np.cumsum(np.bincount(sources, minlength=len(states)).astype(np.int64)).tobytes())
    following = Layer(
        StateMatrix(targets[place[first]]),
        least.tolist(),
        starts,
        unsigned_array(numbers),
        unsigned_array(blocks.groups[steps[within]]),
    )
    charge(len(following.states), len(following.targets))
    return following


def _read_blocks(placer: SinglePlacer, states: Words, charge: Charge) -> tuple[Words, _Blocks]:
    """Return the number of each state's key, and the steps of all keys in the order in which states have them."""
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
    placer: SinglePlacer, states: Words, most: Words, keys: Words, blocks: _Blocks
) -> _Candidates | None:
    """Return the transitions whose misfit is at most `most` of their source; None if these are too many."""
    counts = np.diff(blocks.first)[keys]
    if int(counts.sum()) > MAX_CANDIDATES:
        return None
    sources = np.repeat(np.arange(len(states)), counts)
    block = span_positions(blocks.first[keys], counts)
    stays = np.ones(len(sources), dtype=np.bool_)
    for slot in placer.leaving:
        # a node that leaves the frontier must be used or empty
        stays &= (states[sources, slot] | blocks.marks[block, slot]) & _FLAGS != HAS
    sources, block = sources[stays], block[stays]
    counts = blocks.num_within(block, most[sources])
    if int(counts.sum()) > MAX_CANDIDATES:
        return None
    pairs = np.repeat(np.arange(len(sources)), counts)
    steps = span_positions(blocks.start[block], counts)
    heads, _ = number_rows([states[sources, p] | blocks.marks[block, p] for p in placer.remaining], len(sources))
    if placer.tail is None:
        # the value is dropped: it must be used or empty, too
        used = blocks.values[steps] & _FLAGS != HAS
        pairs, steps = pairs[used], steps[used]
        return _Candidates(sources, block, pairs, steps, heads[pairs])
    values, positions = np.unique(blocks.values, return_inverse=True)
    return _Candidates(sources, block, pairs, steps, heads[pairs] * len(values) + positions[steps])


def _target_states(placer: SinglePlacer, states: Words, candidates: _Candidates, blocks: _Blocks, rows: Words) -> Words:
    """Return the target states of some transitions."""
    pairs = candidates.pairs[rows]
    sources, block = candidates.sources[pairs], candidates.blocks[pairs]
    columns = [states[sources, p] | blocks.marks[block, p] for p in placer.remaining]
    if placer.tail is not None:
        columns.append(blocks.values[candidates.steps[rows]])
    return np.array(columns, dtype=np.int64).reshape(len(columns), len(rows)).T
