"""What a problem tells about structure: each disclosure is a value that says which variables may be parents of V.

Those that name the roots also say whether a mechanism map is legal, and if not, why not (`violation`). `HiddenRoots`
cannot before roots are named: `given_roots` is the disclosure that judges the map under these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from dsl.errors import CycleError
from dsl.formulas.formula import Formula
from dsl.names import natural_key
from dsl.replayscm.scm import topological_order


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a mechanism map is not legal.

    kind: unknown_keys | missing_keys | parent | cycle
    variables: the culprits; `reason` is one line that names them and what was allowed
    """

    kind: str
    variables: tuple[str, ...]
    reason: str


def natural(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_key))


class _KnownRoots:
    """Shared by the disclosures that name the roots."""

    roots: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def endogenous(self) -> tuple[str, ...]:
        """Variables that need a mechanism, in the order in which the disclosure lists them."""
        return tuple(v for v in self.variables if v not in self.roots)

    def admissible_parents(self, variable: str) -> frozenset[str]:
        raise NotImplementedError

    def violation(self, mechanisms: Mapping[str, Formula]) -> Violation | None:
        """The first reason why the map is not legal here, or None. Acyclicity is judged on mentions."""
        problem = key_violation(mechanisms.keys(), self.endogenous)
        if problem:
            return problem
        for variable in self.endogenous:
            allowed = self.admissible_parents(variable)
            strangers = tuple(u for u in mechanisms[variable].variables if u not in allowed)
            if strangers:
                listed = ", ".join(natural(allowed)) or "none"
                reason = f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {listed}"
                return Violation("parent", strangers, reason)
        try:
            topological_order(mechanisms)
        except CycleError as error:
            return Violation("cycle", error.variables, str(error))
        return None


def key_violation(keys: Iterable[str], endogenous: Sequence[str]) -> Violation | None:
    """Whether the keys of a map are exactly the endogenous variables; unknown keys are reported before missing ones."""
    given = tuple(keys)
    listed = ", ".join(natural(endogenous))
    unknown = tuple(sorted(key for key in given if key not in endogenous))
    if unknown:
        return Violation("unknown_keys", unknown, f"unknown or non-endogenous keys; endogenous variables: {listed}")
    missing = tuple(v for v in endogenous if v not in given)
    if missing:
        return Violation("missing_keys", missing, f"missing mechanisms for {', '.join(natural(missing))}")
    return None


@dataclass(frozen=True)
class Ordered(_KnownRoots):
    """The full topological order is known: mechanisms may mention only earlier variables.

    order: every variable once; roots: those without a mechanism
    """

    order: tuple[str, ...]
    roots: tuple[str, ...]

    label = "Ordered"

    @property
    def variables(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.order

    def admissible_parents(self, variable: str) -> frozenset[str]:
        return frozenset(self.order[: self.order.index(variable)])


@dataclass(frozen=True)
class Blocks(_KnownRoots):
    """Coarse precedence is known: variables of the same or an earlier block may be mentioned.

    blocks: disjoint, together every variable; the order inside a block says nothing and is natural
    """

    blocks: tuple[tuple[str, ...], ...]
    roots: tuple[str, ...]

    label = "Block"

    @cached_property
    def variables(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(chain.from_iterable(self.blocks))

    def block_index(self, variable: str) -> int:
        return next(i for i, block in enumerate(self.blocks) if variable in block)

    def admissible_parents(self, variable: str) -> frozenset[str]:
        known = self.blocks[: self.block_index(variable) + 1]
        return frozenset(chain.from_iterable(known)) - {variable}


@dataclass(frozen=True)
class HiddenOrder(_KnownRoots):
    """Only the roots are known: any other variable may be mentioned as long as the mentions are acyclic."""

    variables: tuple[str, ...]
    roots: tuple[str, ...]

    label = "Hidden-order"

    def admissible_parents(self, variable: str) -> frozenset[str]:
        return frozenset(self.variables) - {variable}


@dataclass(frozen=True)
class HiddenRoots:
    """Only the number of roots is known; a submission names them.

    variables: natural order; root_count: exactly how many roots must be named
    """

    variables: tuple[str, ...]
    root_count: int

    label = "Hidden-roots"

    def admissible_parents(self, variable: str) -> frozenset[str]:
        return frozenset(self.variables) - {variable}

    def given_roots(self, roots: Sequence[str]) -> HiddenOrder:
        """The problem that a predicted root set poses. The caller has checked that the set is well formed."""
        return HiddenOrder(self.variables, natural(roots))


Disclosure: TypeAlias = Ordered | Blocks | HiddenOrder | HiddenRoots
