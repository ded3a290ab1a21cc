"""Sampling of latent SCMs: Algorithm 1 of the paper in the form that the published generator gives it.

The first three slots are roots. Every later slot draws its parents from the window of the last predecessors and a
random formula over them; where no formula is accepted the mechanism is the exclusive or of the first two parents.

Departures: labels are permuted before the formulas are drawn, which changes no distribution; the table of known sizes
ends at KNOWN_SIZE_BOUNDS; and an SCM that the generator could never accept, because the shortcut of a mechanism means
the same as the mechanism and no world can refute it, is dropped here instead of after its worlds were tried in vain.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Apply, Formula, Node, apply, var
from calibrant.dsl.formulas.table import TruthTable, from_formula, full_mask, projection, support
from calibrant.dsl.formulas.text import canonical_formula
from calibrant.dsl.replayscm.sampling.formula_sizes import published_sizes, shortest_sizes
from calibrant.dsl.replayscm.sampling.strata import NUM_ROOTS, SHORTCUT_CAP, Stratum
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.text import natural_key

MIN_PARENTS = 2
DEPTH_LIMITS = (3, 7)  # depth in nodes, as Formula.depth counts it
LEAF_PROBABILITY = 0.35
BINARY_PROBABILITY = 0.8  # of an operator other than `not`; ternary otherwise
DRAWS_PER_SLOT = 1400
APPLIED = {(operator, arity): Apply(operator, arity) for operator in STANDARD_OPERATORS for arity in (1, 2, 3)}

KNOWN_SIZE_BOUNDS = {2: 9, 3: 10, 4: 12, 5: 10}  # complete for 2 and 3 parents; together half a second, once


class LatentScm(NamedTuple):
    """A sampled SCM with the order in which it was built, which nothing but its evaluator may know."""

    model: Scm
    order: tuple[str, ...]

    def windows(self, length: int) -> dict[str, tuple[str, ...]]:
        """Per endogenous variable its last `length` predecessors: where its parents come from."""
        return {v: window(self.order, slot, length) for slot, v in enumerate(self.order) if v in self.model.mechanisms}


def window(order: tuple[str, ...], slot: int, length: int) -> tuple[str, ...]:
    return order[max(0, slot - length) : slot]


def sample_scm(stratum: Stratum, rng: Random) -> LatentScm:
    """Sample an SCM of the stratum of which at most `max_survivors` mechanisms are equivalent to a shortcut."""
    while True:
        order = sample_labels(stratum.num_variables, rng)
        mechanisms: dict[str, Formula] = {}
        for slot in range(NUM_ROOTS, stratum.num_variables):
            candidates = window(order, slot, stratum.max_parents)
            mechanisms[order[slot]] = _sample_slot(stratum, candidates, rng)
        num_shortcuts = sum(has_equivalent_shortcut(stratum, mechanism) for mechanism in mechanisms.values())
        if num_shortcuts <= stratum.max_survivors:
            return LatentScm(scm(order[:NUM_ROOTS], mechanisms), order)


def sample_labels(num_variables: int, rng: Random) -> tuple[str, ...]:
    """X1, X2, ... in a random order other than their own."""
    labels = [f"X{i + 1}" for i in range(num_variables)]
    order = list(labels)
    while order == labels:
        rng.shuffle(order)
    return tuple(order)


def has_equivalent_shortcut(stratum: Stratum, mechanism: Formula) -> bool:
    """Return whether some formula under the stratum's shortcut cap means the same as the mechanism."""
    parents = mechanism.variables
    shortest = shortest_sizes(len(parents), SHORTCUT_CAP).get(from_formula(mechanism, parents).bits)
    return shortest is not None and shortest <= stratum.shortcut_cap(mechanism.size)


def _sample_slot(stratum: Stratum, candidates: tuple[str, ...], rng: Random) -> Formula:
    """Sample a mechanism over at least two of the candidate parents.

    Slots are independent, so where no shortcut is tolerated it is the same to drop the slot or the whole SCM.
    """
    while True:
        num_parents = rng.randint(MIN_PARENTS, min(stratum.max_parents, len(candidates)))
        mechanism = sample_mechanism(stratum, tuple(rng.sample(candidates, num_parents)), rng)
        if stratum.max_survivors or not has_equivalent_shortcut(stratum, mechanism):
            return mechanism


def sample_mechanism(stratum: Stratum, parents: tuple[str, ...], rng: Random) -> Formula:
    """Sample an accepted formula that depends on exactly the parents, or the fallback on the first two of them."""
    draw = _FormulaDraw(stratum, parents, rng)
    for _ in range(DRAWS_PER_SLOT if draw.can_succeed else 0):
        formula = draw.formula()
        if formula is not None:
            return formula
    return canonical_formula(apply("xor", [var(parent) for parent in parents[:2]]))


class _FormulaDraw:
    """Random formulas over given parents, and the conditions on them, cheapest first."""

    def __init__(self, stratum: Stratum, parents: tuple[str, ...], rng: Random) -> None:
        self.rng = rng
        self.parents = tuple(sorted(parents, key=natural_key))
        self.columns = {parent: projection(i, len(parents)).bits for i, parent in enumerate(self.parents)}
        self.full = full_mask(len(parents))
        self.known = published_sizes(len(parents), KNOWN_SIZE_BOUNDS[len(parents)])
        self.min_size, self.max_size = stratum.sizes

    @property
    def can_succeed(self) -> bool:
        """Return False if each function is known to have a formula below the size range; spares all draws otherwise."""
        return len(self.known) <= self.full or max(self.known.values()) >= self.min_size

    def formula(self) -> Formula | None:
        """Return the normal form of one drawn formula, or None if it is rejected."""
        nodes: list[Node] = []
        bits = self._grow(nodes, self.rng.randint(*DEPTH_LIMITS))
        known_size = self.known.get(bits, self.max_size)
        if len(nodes) < self.min_size or known_size < self.min_size:  # the normal form is never longer
            return None
        if len(support(TruthTable(len(self.parents), bits))) < len(self.parents):
            return None
        formula = canonical_formula(Formula(tuple(nodes)))
        if not self.min_size <= formula.size <= min(self.max_size, known_size):
            return None
        return None if any(isinstance(node, bool) for node in formula.nodes) else formula

    def _grow(self, nodes: list[Node], depth: int) -> int:
        """Append a random subformula of at most that depth in postfix order; gives the bits of its truth table."""
        rng = self.rng
        if depth == 1 or rng.random() < LEAF_PROBABILITY:
            leaf = rng.choice(self.parents)
            nodes.append(leaf)
            return self.columns[leaf]
        operator = rng.choice(STANDARD_OPERATORS)
        if operator == "not":
            bits = self._grow(nodes, depth - 1) ^ self.full
            nodes.append(APPLIED["not", 1])
            return bits
        if rng.random() < BINARY_PROBABILITY:
            arguments = [self._grow(nodes, depth - 1), self._grow(nodes, depth - 1)]
        else:
            arguments = [self._grow(nodes, depth - 1) for _ in range(3)]
        nodes.append(APPLIED[operator, len(arguments)])
        return OPERATORS[operator].bits(arguments, self.full)
