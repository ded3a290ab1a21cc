"""Mechanism texts that are met again: each is read once, and what is worked out about it is kept beside it.

Samples of a model repeat each other's mechanisms far more often than each other's answers. What is kept depends on the
text, the variable and the problem alone, so that a verdict is the same whether anything was kept or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from dsl.formulas.formula import Apply, Formula, Node
from dsl.names import natural_key
from dsl.replayscm.replay import compute
from dsl.replayscm.world import Column, Panel
from dsl.shelves import Store

READ = Store(1 << 15, longest=400)  # about 700 bytes each


class OperatorCounts:
    """How often each operator occurs, in order of appearance. One object for all mechanisms that agree in that.

    has_if: the ternary one is among them
    """

    __slots__ = ("by_name", "has_if")

    def __init__(self, by_name: dict[str, int]) -> None:
        self.by_name = by_name
        self.has_if = "if" in by_name


class MechanismStats(NamedTuple):
    """Nodes, longest path, variables in natural order, and operators. Many have variables and operators in common."""

    size: int
    depth: int
    variables: tuple[str, ...]
    operators: OperatorCounts


class Mechanism:
    """The mechanism of one variable in answers to one problem.

    own: the bit of its variable, mentions: those of the variables that occur, in a numbering of the problem's variables
    error: the rows of the problem in which it is wrong while all that it mentions is right; None until it is asked for
    variables: those that occur, in natural order
    function: what it computes, in a spelling of its own (bench.answers.samples); None until it is asked for
    """

    __slots__ = ("error", "formula", "function", "mentions", "own", "stats")

    stats: MechanismStats

    def __init__(self, formula: Formula, own: int, mentions: int) -> None:
        self.formula = formula
        self.own = own
        self.mentions = mentions
        self.error: Column | None = None
        self.function: str | None = None

    def __getattr__(self, name: str) -> MechanismStats:
        """What is not there yet: statistics, when they are first asked for, which costs nothing ever after."""
        if name != "stats":
            raise AttributeError(name)
        self.stats = mechanism_stats(self.formula)
        return self.stats

    @property
    def variables(self) -> tuple[str, ...]:
        return _names(frozenset(self.formula.nodes))


def mismatches(mechanisms: Mapping[str, Mechanism], order: Sequence[str], panel: Panel) -> dict[str, Column]:
    """As dsl.replayscm.replay.mismatches, on the panel with all worlds of the problem that the mechanisms are for.

    A mechanism whose parents are simulated as observed is wrong in the rows that are known from the first time.
    """
    observed, clamped = panel.columns, panel.clamped
    simulated: dict[str, Column] = {}
    wrong: dict[str, Column] = {}
    off = 0  # the variables that are wrong in some row
    for variable in order:
        mechanism = mechanisms[variable]
        if mechanism.mentions & off:
            computed = compute(mechanism.formula, simulated, panel.all_rows)
            error = (computed ^ observed[variable]) & ~clamped[variable]
        elif mechanism.error is None:
            computed = compute(mechanism.formula, observed, panel.all_rows)
            error = mechanism.error = (computed ^ observed[variable]) & ~clamped[variable]
        else:
            error = mechanism.error
        wrong[variable] = error
        if error:
            if not off:
                simulated = dict(observed)
            off |= mechanism.own
            simulated[variable] = observed[variable] ^ error
    return wrong


def mentions(formula: Formula, bit: Callable[[str], int]) -> int:
    """The variables that occur, as bits."""
    found = 0
    for node in formula.nodes:
        if isinstance(node, str):
            found |= bit(node)
    return found


def mechanism_stats(mechanism: Formula) -> MechanismStats:
    """All of them in one pass."""
    counts: dict[str, int] = {}
    depths: list[int] = []
    for node in mechanism.nodes:
        if isinstance(node, Apply):
            operator, arity = node
            counts[operator] = counts.get(operator, 0) + 1
            if arity > 1:
                deepest = max(depths[-arity:])
                del depths[1 - arity :]
                depths[-1] = deepest
            depths[-1] += 1
        else:
            depths.append(1)
    variables = _names(frozenset(mechanism.nodes))
    return MechanismStats(len(mechanism.nodes), depths[0], variables, _counted(tuple(counts.items())))


@lru_cache(maxsize=1 << 14)
def _names(nodes: frozenset[Node]) -> tuple[str, ...]:
    """The variables among nodes in natural order; the same few are met again and again."""
    return tuple(sorted([node for node in nodes if isinstance(node, str)], key=natural_key))


@lru_cache(maxsize=1 << 12)
def _counted(counts: tuple[tuple[str, int], ...]) -> OperatorCounts:
    return OperatorCounts(dict(counts))


@lru_cache(maxsize=1 << 12)
def summed(*counts: OperatorCounts) -> Mapping[str, int]:
    """Together, in order of appearance; answers of one shape have it in common."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.by_name.items():
            total[name] = total.get(name, 0) + count
    return total
