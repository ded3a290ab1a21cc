"""Mechanism texts that are met again: each is read once, and what is worked out about it is kept beside it.

Samples of a model repeat each other's mechanisms far more often than each other's answers. What is kept depends on the
text, the variable and the problem alone, so that a verdict is the same whether anything was kept or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from calibrant.dsl.formulas.formula import BY_CODE, Apply, Formula, Node
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.memory import CacheBudget
from calibrant.dsl.replayscm.evaluator import MAX_WORD_VARS
from calibrant.dsl.replayscm.world import Column
from calibrant.dsl.text import natural_key

READ = CacheBudget(1 << 15, longest=400)  # about 700 bytes each
COUNT_BITS = 10  # for the number of an operator in a mechanism of which compiled code tells
AS_OBSERVED = 1  # of such a mechanism: all that it mentions was as observed
MANY, SHARE = 20_000, 0.25


class Novelty:
    """The share of new mechanisms among those that a process has judged.

    Compiled code judges an answer in half the time if all of its mechanisms are new, in two thirds if two of six are,
    but takes a third of a second and 120 MB to be there: it is used once MANY were new, and at least SHARE of all.
    """

    def __init__(self) -> None:
        self.asked = self.new = 0

    @property
    def is_usual(self) -> bool:
        return self.new >= MANY and self.new >= SHARE * self.asked


NOVELTY = Novelty()


class OperatorCounts:
    """The number of occurrences of each operator, in order of appearance; one object for all mechanisms that agree.

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

    bit: that of its variable, mentions: those of the variables that occur, in a numbering of the problem's variables
    error: the rows of the problem in which it is wrong while all that it mentions is right; None until it is asked for
    variables: those that occur, in natural order
    described: its statistics, if they have been asked for
    table: what it computes, if that is known and they are at most MAX_WORD_VARS; higher bits mean nothing
    function: the same in a spelling of its own (bench.replayscm.meaning); None until it is asked for
    """

    __slots__ = ("bit", "described", "error", "formula", "function", "mentions", "table")

    formula: Formula

    def __init__(self, bit: int, mentions: int, formula: Formula) -> None:
        self.formula = formula
        self.bit = bit
        self.mentions = mentions
        self.described: MechanismStats | None = None
        self.error: Column | None = None
        self.table: int | None = None
        self.function: str | None = None

    @property
    def stats(self) -> MechanismStats:
        if self.described is None:
            self.described = self._stats()
        return self.described

    @property
    def variables(self) -> tuple[str, ...]:
        return _names(frozenset(self.formula.nodes))

    def _stats(self) -> MechanismStats:
        return mechanism_stats(self.formula)


class JudgedMechanism(Mechanism):
    """A mechanism that compiled code has read (dsl.replayscm.evaluator.Judge); its formula is parsed on use.

    facts: nodes, longest path, variables as bits, two words of operators, AS_OBSERVED, truth table
    wrong: the rows in which it was wrong there
    """

    __slots__ = ("_facts", "_grammar", "_text", "_variables")

    def __init__(
        self, text: str, grammar: Grammar, bit: int, variables: tuple[str, ...], facts: Sequence[int], wrong: Column
    ) -> None:
        self._text, self._grammar, self._variables, self._facts = text, grammar, variables, facts
        self.bit, self.mentions = bit, facts[2]
        self.described = self.function = None
        self.error = wrong if facts[5] & AS_OBSERVED else None
        self.table = facts[6] if len(variables) <= MAX_WORD_VARS else None

    def __getattr__(self, name: str) -> Any:
        """Return the formula, when it is first asked for, which costs nothing ever after."""
        if name != "formula":
            raise AttributeError(name)
        self.formula = parse(self._text, self._grammar, self._variables)
        return self.formula

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def _stats(self) -> MechanismStats:
        facts = self._facts
        return MechanismStats(facts[0], facts[1], self._variables, _unpack_counts(facts[3], facts[4]))


def mentions(formula: Formula, bit: Callable[[str], int]) -> int:
    """Return the variables that occur, as bits."""
    mask = 0
    for node in formula.nodes:
        if isinstance(node, str):
            mask |= bit(node)
    return mask


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
    return MechanismStats(len(mechanism.nodes), depths[0], variables, _intern_counts(tuple(counts.items())))


@lru_cache(maxsize=1 << 14)
def _names(nodes: frozenset[Node]) -> tuple[str, ...]:
    """Return the variables among nodes in natural order; the same few are met again and again."""
    return tuple(sorted([node for node in nodes if isinstance(node, str)], key=natural_key))


@lru_cache(maxsize=1 << 12)
def _intern_counts(counts: tuple[tuple[str, int], ...]) -> OperatorCounts:
    return OperatorCounts(dict(counts))


@lru_cache(maxsize=1 << 12)
def _unpack_counts(counts: int, order: int) -> OperatorCounts:
    """From two words: COUNT_BITS for each operator by its code; four bits for each that occurs, its code and 1."""
    counted_operators: list[tuple[str, int]] = []
    while order:
        code = (order & 15) - 1
        counted_operators.append((BY_CODE[code].name, counts >> COUNT_BITS * code & (1 << COUNT_BITS) - 1))
        order >>= 4
    return _intern_counts(tuple(counted_operators))


@lru_cache(maxsize=1 << 12)
def sum_counts(*counts: OperatorCounts) -> Mapping[str, int]:
    """Together, in order of appearance; answers of one shape have it in common."""
    total: dict[str, int] = {}
    for operator_counts in counts:
        for name, count in operator_counts.by_name.items():
            total[name] = total.get(name, 0) + count
    return total
