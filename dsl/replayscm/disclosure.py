"""The structure that a problem discloses: roots, and the order of variables as far as it is told.

`Disclosure` is the interface; callers do not test for a concrete class. `Answers` implements the members that follow
from the others, `KnownRoots` those that follow from disclosed roots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import Protocol, TypeAlias

from calibrant.dsl.errors import CycleError
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.scm import topological_order
from calibrant.dsl.text import natural_key

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """Reason why a mechanism map (variable -> formula) is not legal.

    kind: unknown_keys | missing_keys | roots | parent | cycle
    variables: the offending ones; reason: one line that names them and what is allowed
    """

    kind: str
    variables: tuple[str, ...]
    reason: str


def natural(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_key))


class Disclosure(Protocol):
    """The interface of a disclosure.

    label: its name in tables
    variables: all variables
    roots: the disclosed roots; None if only their number is disclosed
    num_roots: number of roots
    endogenous: variables that may need a mechanism: all of them if the roots are hidden
    order: topological order of all variables, in which admissible parents come earlier; None if hidden
    blocks: disjoint blocks of all variables, earliest first; None if not disclosed
    groups: groups of all variables such that no mechanism mentions a variable of a later group; one group if no order
        is disclosed
    """

    @property
    def label(self) -> str: ...
    @property
    def variables(self) -> Names: ...
    @property
    def roots(self) -> Names | None: ...
    @property
    def num_roots(self) -> int: ...
    @property
    def endogenous(self) -> Names: ...
    @property
    def order(self) -> Names | None: ...
    @property
    def blocks(self) -> tuple[Names, ...] | None: ...
    @property
    def groups(self) -> tuple[Names, ...]: ...

    def admissible_parents(self, variable: str) -> frozenset[str]:
        """Return the variables that the mechanism of a non-root variable may mention."""
        ...

    def earlier(self, variable: str) -> frozenset[str]:
        """Return the variables that are disclosed to precede this one, parents or not."""
        ...

    def group_index(self, variable: str) -> int: ...

    def root_sets(self, able: Collection[str] | None = None) -> Iterator[Names]:
        """Yield every possible root set, lexicographic in the order of `variables`.

        able: candidates if the roots are hidden; all variables if None
        """
        ...

    def num_root_sets(self, num_able: int | None = None) -> int:
        """Return the number of `root_sets` for num_able candidates; for all variables if None."""
        ...

    def given_roots(self, roots: Sequence[str]) -> RootedDisclosure:
        """Return the disclosure with one of its root sets disclosed."""
        ...

    def violation(self, mechanisms: Mapping[str, Formula]) -> Violation | None:
        """Return the first reason why a map is not legal, or None. Cycles are those of mentioned variables."""
        ...


class RootedDisclosure(Disclosure, Protocol):
    """A disclosure with known roots."""

    @property
    def roots(self) -> Names: ...


class Answers:
    """Members that follow from `order`, `blocks` and `variables`."""

    @property
    def groups(self: Disclosure) -> tuple[Names, ...]:
        if self.order is not None:
            return tuple((variable,) for variable in self.order)
        return self.blocks or (self.variables,)

    def earlier(self: Disclosure, variable: str) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.groups[: self.group_index(variable)]))

    def group_index(self: Disclosure, variable: str) -> int:
        return next(i for i, group in enumerate(self.groups) if variable in group)

    def admissible_parents(self: Disclosure, variable: str) -> frozenset[str]:
        earlier_groups = self.groups[: self.group_index(variable) + 1]
        return frozenset(chain.from_iterable(earlier_groups)) - {variable}


class KnownRoots(Answers):
    """Members that follow from known roots."""

    @property
    def num_roots(self: RootedDisclosure) -> int:
        return len(self.roots)

    @property
    def endogenous(self: RootedDisclosure) -> Names:
        """Variables without the roots, in the order of `variables`."""
        return tuple(v for v in self.variables if v not in self.roots)

    def root_sets(self: RootedDisclosure, able: Collection[str] | None = None) -> Iterator[Names]:
        yield natural(self.roots)

    def num_root_sets(self, num_able: int | None = None) -> int:
        return 1

    def given_roots(self: RootedDisclosure, roots: Sequence[str]) -> RootedDisclosure:
        return self

    def violation(self: RootedDisclosure, mechanisms: Mapping[str, Formula]) -> Violation | None:
        problem = key_violation(mechanisms.keys(), self.endogenous)
        if problem:
            return problem
        for variable in self.endogenous:
            allowed = self.admissible_parents(variable)
            strangers = tuple(u for u in mechanisms[variable].variables if u not in allowed)
            if strangers:
                allowed_text = ", ".join(natural(allowed)) or "none"
                reason = (
                    f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {allowed_text}"
                )
                return Violation("parent", strangers, reason)
        try:
            topological_order(mechanisms)
        except CycleError as error:
            return Violation("cycle", error.variables, str(error))
        return None


def key_violation(keys: Iterable[str], endogenous: Sequence[str]) -> Violation | None:
    """Return the violation if keys are not the endogenous variables, unknown ones first; None if they are."""
    present_keys = tuple(keys)
    expected = ", ".join(natural(endogenous))
    unknown = tuple(sorted(key for key in present_keys if key not in endogenous))
    if unknown:
        return Violation("unknown_keys", unknown, f"unknown or non-endogenous keys; endogenous variables: {expected}")
    missing = tuple(v for v in endogenous if v not in present_keys)
    if missing:
        return Violation("missing_keys", missing, f"missing mechanisms for {', '.join(natural(missing))}")
    return None


@dataclass(frozen=True)
class Ordered(KnownRoots):
    """The full topological order is disclosed: mechanisms may mention only earlier variables.

    order: every variable once; roots: those without a mechanism
    """

    order: Names
    roots: Names

    label = "Ordered"
    blocks = None

    @property
    def variables(self) -> Names:
        return self.order


@dataclass(frozen=True)
class Blocks(KnownRoots):
    """Coarse precedence is disclosed: mechanisms may mention variables of the same or an earlier block.

    blocks: a partition of the variables; the order inside a block is natural and has no meaning
    """

    blocks: tuple[Names, ...]
    roots: Names

    label = "Block"
    order = None

    @cached_property
    def variables(self) -> Names:
        return tuple(chain.from_iterable(self.blocks))


@dataclass(frozen=True)
class HiddenOrder(KnownRoots):
    """Only the roots are disclosed: mechanisms may mention any other variable as long as mentions are acyclic."""

    variables: Names
    roots: Names

    label = "Hidden-order"
    order = None
    blocks = None


@dataclass(frozen=True)
class HiddenRoots(Answers):
    """Only the number of roots is disclosed; a submission names them.

    variables: natural order; num_roots: exactly how many roots must be named
    certain: variables that are known to be roots
    """

    variables: Names
    num_roots: int
    certain: Names = ()

    label = "Hidden-roots"
    order = None
    blocks = None

    @property
    def roots(self) -> None:
        return None

    @property
    def endogenous(self) -> Names:
        return self.variables

    def root_sets(self, able: Collection[str] | None = None) -> Iterator[Names]:
        free = [v for v in self.variables if (able is None or v in able) and v not in self.certain]
        added = combinations(free, self.num_roots - len(self.certain))
        if not self.certain:
            return added
        index = {v: k for k, v in enumerate(self.variables)}
        index_sets = sorted(sorted(map(index.__getitem__, (*self.certain, *names))) for names in added)
        return (tuple(self.variables[k] for k in indices) for indices in index_sets)

    def num_root_sets(self, num_able: int | None = None) -> int:
        num_free = (len(self.variables) if num_able is None else num_able) - len(self.certain)
        return comb(max(num_free, 0), self.num_roots - len(self.certain))

    def given_roots(self, roots: Sequence[str]) -> HiddenOrder:
        return HiddenOrder(self.variables, natural(roots))

    def violation(self, mechanisms: Mapping[str, Formula]) -> Violation | None:
        """Return the first reason why a map is not legal; its roots are the variables without a mechanism."""
        roots = tuple(v for v in self.variables if v not in mechanisms)
        if len(roots) != self.num_roots:
            return Violation("roots", roots, f"{len(roots)} roots where {self.num_roots} are disclosed")
        return self.given_roots(roots).violation(mechanisms)
