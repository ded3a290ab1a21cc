"""Lower bounds on the misfit of readouts that are not placed, given the responses of a state.

What is not placed reads the live nodes, some stimuli, and whether it is inhibited. Columns that agree on all of these
answer alike at a readout, so that the cheaper answer for each such set of columns is the least misfit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np

from calibrant.dsl.logic.prior import reachable
from calibrant.solvers.logic.elimination.arrays import Words, first_occurrences, number_rows
from calibrant.solvers.logic.network import Columns, Network

_SUMS = 1 << 21  # of savings at once, 16 MB


class StateBounds:
    """The bounds after one placement, memoised by the responses of the live nodes that a readout can depend on."""

    def __init__(self, network: Network, columns: Columns, live: Sequence[int], placed: frozenset[int]) -> None:
        """Compute the bounds of a state.

        live: nodes by their position in a state
        """
        self._network = network
        self._columns = columns
        self._live = live
        self._placed = placed

    @cached_property
    def parts(self) -> list[_Part]:
        """One part for each readout that is not placed; made when the placement is reached, which not all are."""
        network, columns, placed = self._network, self._columns, self._placed
        parts = []
        unplaced = [v for v in range(len(network)) if v not in placed]
        # placed parents end the walk: their responses are in the state and split the columns exactly
        parents = {v: [p for p in network.parents[v] if p not in placed] for v in unplaced}
        position = {v: i for i, v in enumerate(self._live)}
        for readout in sorted(network.readouts - placed):
            ancestors = reachable([readout], parents)
            sources = {source for v in ancestors for source, _ in network.literals[v]}
            positions = tuple(sorted(position[s] for s in sources if s >= 0 and s in placed))
            masks = [columns.full]
            for source in sorted(s for s in sources if s < 0):
                masks = _split(masks, columns.stimuli[~source])
            for v in sorted(ancestors):
                masks = _split(masks, columns.active[v])
            parts.append(_Part(readout, positions, masks, columns))
        return parts

    def bound(self, state: Sequence[int]) -> int:
        """Return a lower bound on the misfit of the readouts that are not placed."""
        total, parts = self._fixed_and_varying
        for values, memo, part in parts:
            # values as they are, flags included: their tuple is made in C, and most are met again
            key = values(state)
            bound = memo.get(key)
            if bound is None:
                bound = memo[key] = part.bound(state)
            total += bound
        return total

    def bounds(self, states: Words) -> Words:
        """Return the bound of each row, a state; misfits must fit 64 bits."""
        fixed, parts = self._fixed_and_varying
        totals = np.full(len(states), fixed, dtype=np.int64)
        for _, _, part in parts:
            numbers, _ = number_rows([states[:, p] >> 2 for p in part.positions], len(states))
            first, place = first_occurrences(numbers)
            totals += part.bounds(states[first][:, part.positions] >> 2)[place]
        return totals

    @cached_property
    def _fixed_and_varying(
        self,
    ) -> tuple[int, list[tuple[Callable[[Sequence[int]], object], dict[object, int], _Part]]]:
        """The sum of bounds that no state changes; of each other part how its values are read, and its bounds."""
        varying = [part for part in self.parts if part.positions]
        fixed = sum([part.bound(()) for part in self.parts if not part.positions])
        return fixed, [(itemgetter(*part.positions), {}, part) for part in varying]


def readout_bounds(network: Network, columns: Columns) -> dict[int, int]:
    """Return the lower bound of each readout's misfit before anything is placed."""
    bounds = StateBounds(network, columns, (), frozenset())
    return {part.readout: part.bound(()) for part in bounds.parts}


class _Part:
    """The bound of one readout."""

    def __init__(self, readout: int, positions: tuple[int, ...], masks: list[int], columns: Columns) -> None:
        self.readout = readout
        self.positions = positions
        self.masks = masks
        self.columns = columns
        self._memo: dict[tuple[int, ...], int] = {}

    def bound(self, state: Sequence[int]) -> int:
        # response alone: the flags has and used (the two low bits) change no answer, so states share the entry
        return self._bound_of(tuple([state[p] >> 2 for p in self.positions]))

    def _bound_of(self, key: tuple[int, ...]) -> int:
        """Return the bound for numbers of responses, of the nodes in `positions`."""
        cached = self._memo.get(key)
        if cached is None:
            masks, listed = self.masks, self.columns.responses.listed
            for number in key:
                if number:
                    masks = _split(masks, listed[number])
            cached = self._memo[key] = self.columns.cheapest(self.readout, masks)
        return cached

    def bounds(self, keys: Words) -> Words:
        """Return the bound for each row of numbers of responses, of the nodes in `positions`."""
        num_codes = len(self.masks) << len(self.positions)
        if num_codes > _SUMS:
            return np.array([self._bound_of(tuple(key)) for key in keys.tolist()], dtype=np.int64)
        distinct, places = np.unique(keys, return_inverse=True)
        listed = self.columns.responses.listed
        answers = np.array([self._by_column(listed[number]) for number in distinct.tolist()], dtype=np.int64)
        places = places.reshape(keys.shape)
        # columns of one code answer alike: those of one mask in which the nodes have the same values
        codes = np.zeros(len(self.columns.clamps), dtype=np.int64)
        for number, mask in enumerate(self.masks):
            codes += self._by_column(mask) * (number << len(self.positions))
        bounds = np.full(len(keys), self.columns.cheapest(self.readout, ()), dtype=np.int64)
        for start in range(0, len(keys), rows := _SUMS // num_codes):
            piece = places[start : start + rows]
            code = np.broadcast_to(codes, (len(piece), len(codes))).copy()
            for i in range(len(self.positions)):
                code += answers[piece[:, i]] << i
            gains = np.zeros((len(piece), num_codes), dtype=np.int64)
            row = np.arange(len(piece))
            for column, saving in enumerate(self.columns.savings(self.readout)):
                gains[row, code[:, column]] += saving
            bounds[start : start + rows] += np.minimum(gains, 0).sum(axis=1)
        return bounds

    def _by_column(self, response: int) -> Words:
        return np.array([response >> column & 1 for column in range(len(self.columns.clamps))], dtype=np.int64)


def _split(masks: list[int], response: int) -> list[int]:
    """Return the sets of columns split by a response, empty ones left out."""
    return [part for mask in masks for part in (mask & response, mask & ~response) if part]
