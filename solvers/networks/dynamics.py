"""Synchronous dynamics of a Boolean network: fixed points, and attractors with their basins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from calibrant.dsl.errors import short_repr
from calibrant.dsl.networks.formulas import NetworkError
from calibrant.dsl.networks.functions import Function
from calibrant.dsl.networks.network import Network
from calibrant.dsl.text import nearest_hint
from calibrant.solvers.networks.wide import Encoding
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, OutOfBudget
from calibrant.solvers.sat import Conflicts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_FREE_NODES = 20
"""Nodes that are not clamped up to which all states are enumerated."""
MAX_FIXED_POINTS = 10_000
MAX_CONFLICTS = 2_000_000


class Attractor(NamedTuple):
    """A cycle of states.

    period: number of its states; basin: number of states that lead to it, its own included
    state: the least of its states, a character a node in code point order
    """

    period: int
    basin: int
    state: str


@dataclass(frozen=True)
class FixedPoints:
    """States that the update leaves as they are.

    states: a character a node in code point order, sorted; is_complete: False if there are more than MAX_FIXED_POINTS
    """

    states: tuple[str, ...]
    is_complete: bool = True


def check_clamps(network: Network, clamps: Mapping[str, int]) -> None:
    """`NetworkError` for a clamp of no node, or with another value than 0 or 1."""
    network.require_functions()
    for name, value in clamps.items():
        if name not in network.nodes:
            problem = f"clamp of {short_repr(name)}, which is no node{nearest_hint(name, network.nodes)}"
            raise NetworkError(problem, reason="unknown-name", name=name)
        if value not in (0, 1):
            raise NetworkError(f"clamp {short_repr(name)} = {short_repr(value)}; 0 or 1", reason="value", name=name)


def find_attractors(
    network: Network, clamps: Mapping[str, int] | None = None
) -> Found[tuple[Attractor, ...]] | OutOfBudget:
    """Return all attractors, by period, then state; `OutOfBudget` beyond MAX_FREE_NODES nodes that are not clamped."""
    import numpy as np

    clamps = clamps or {}
    check_clamps(network, clamps)
    free = [name for name in network.nodes if name not in clamps]
    if len(free) > MAX_FREE_NODES:
        return OutOfBudget(f"{len(free)} free nodes; attractors are counted to {MAX_FREE_NODES}")
    step = _successors(network, clamps, free)
    recurrent = step
    for _ in range(len(free)):  # 2**free steps: every state has reached its attractor
        recurrent = recurrent[recurrent]
    representative = np.full(len(step), -1, dtype=np.int64)
    periods: dict[int, int] = {}
    for state in np.unique(recurrent).tolist():  # ascending: the least state of a cycle comes first
        if representative[state] >= 0:
            continue
        member, period = state, 0
        while representative[member] < 0:
            representative[member] = state
            member, period = int(step[member]), period + 1
        periods[state] = period
    basins = np.bincount(representative[recurrent], minlength=len(step))
    text = _StateText(network.nodes, clamps, free)
    cycles = (Attractor(period, int(basins[state]), text(state)) for state, period in periods.items())
    return Found(tuple(sorted(cycles, key=lambda attractor: (attractor.period, attractor.state))))


class _StateText:
    """Text of a state number; the first free node is the highest bit, so that order is that of texts."""

    def __init__(self, nodes: Sequence[str], clamps: Mapping[str, int], free: Sequence[str]) -> None:
        shifts = {name: len(free) - 1 - i for i, name in enumerate(free)}
        self._parts = [(str(clamps.get(name)), shifts.get(name)) for name in nodes]

    def __call__(self, state: int) -> str:
        return "".join(value if shift is None else str(state >> shift & 1) for value, shift in self._parts)


def _successors(network: Network, clamps: Mapping[str, int], free: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the next state of each state."""
    import numpy as np

    states = np.arange(1 << len(free), dtype=np.int64)
    columns = {name: (states >> (len(free) - 1 - i) & 1).astype(np.uint32) for i, name in enumerate(free)}
    successors = np.zeros_like(states)
    for position, name in enumerate(free):
        function = network.function(name)
        if function.table is None:
            problem = f"{short_repr(name)} has {len(function.inputs)} inputs and no table"
            raise NetworkError(problem, reason="wide", name=name)
        rows = np.zeros(len(states), dtype=np.uint32)
        for i, source in enumerate(function.inputs):
            rows |= (np.uint32(clamps[source]) if source in clamps else columns[source]) << np.uint32(i)
        table = np.frombuffer(function.table.encode(), dtype=np.uint8) - ord("0")
        successors |= table[rows].astype(np.int64) << (len(free) - 1 - position)
    return successors


def find_fixed_points(
    network: Network, clamps: Mapping[str, int] | None = None, limit: int = MAX_FIXED_POINTS
) -> Found[FixedPoints] | OutOfBudget:
    """Return the fixed points, to a limit; by SAT, whatever the number of nodes."""
    clamps = clamps or {}
    check_clamps(network, clamps)
    encoding = Encoding()
    literals = {name: encoding.cnf.variable(name) for name in network.nodes}
    for name in network.nodes:
        if name in clamps:
            encoding.cnf.add(literals[name] if clamps[name] else -literals[name])
        else:
            _demand_fixed(encoding, name, network.functions.get(name), literals)
    solver = Conflicts(encoding.cnf, Budget(MAX_CONFLICTS))
    states: list[str] = []
    try:
        while len(states) <= limit and (model := solver.model()) is not None:
            present = [model[literals[name] - 1] > 0 for name in network.nodes]
            states.append("".join("1" if value else "0" for value in present))
            solver.add(
                [-literals[n] if value else literals[n] for n, value in zip(network.nodes, present, strict=True)]
            )
    except BudgetSpent:
        return OutOfBudget(f"{len(states)} fixed points within {MAX_CONFLICTS:,} conflicts; there may be more")
    finally:
        solver.close()
    return Found(FixedPoints(tuple(sorted(states)[:limit]), len(states) <= limit))


def _demand_fixed(encoding: Encoding, name: str, function: Function | None, literals: Mapping[str, int]) -> None:
    if function is not None and not function.is_identity(name):
        encoding.equate(literals[name], function, literals)
