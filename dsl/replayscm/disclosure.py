"""The structure that a problem discloses, behind one interface; callers do not test the concrete class.

`Disclosure` lists the questions. A class that answers them is a disclosure: scoring, solvers, audits and baselines need
no more. `Answers` answers what follows from the rest, and `KnownRoots` what follows from the roots where they are told.
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
    """Why a mechanism map is not legal.

    kind: unknown_keys | missing_keys | roots | parent | cycle
    variables: the culprits; `reason` is one line that names them and what was allowed
    """

    kind: str
    variables: tuple[str, ...]
    reason: str


def natural(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_key))


class Disclosure(Protocol):
    """The interface of a disclosure.

    label: its name in tables
    variables: all of them
    roots: those told to be roots; None where only their number is
    num_roots: how many there are
    endogenous: the variables that may need a mechanism, which are all where the roots are not told
    order: the topological order where it is told, all variables; then admissible parents come earlier in it
    blocks: coarse precedence where that is told: disjoint, earliest first, all variables
    groups: precedence in any case: no mechanism mentions a variable of a later group; one group where nothing is told
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
        """Return the variables that a mechanism of this one may mention, if it is no root."""
        ...

    def earlier(self, variable: str) -> frozenset[str]:
        """Return the variables that are disclosed to come before this one, parents or not."""
        ...

    def group_index(self, variable: str) -> int: ...

    def root_sets(self, able: Collection[str] | None = None) -> Iterator[Names]:
        """Every root set that may be the true one, lexicographic in the order of `variables`.

        able: where the roots are not told, the variables among which they are looked for; all if None
        """
        ...

    def num_root_sets(self, num_able: int | None = None) -> int:
        """Return the number of `root_sets` when so many variables can be roots."""
        ...

    def given_roots(self, roots: Sequence[str]) -> RootedDisclosure:
        """Return the disclosure under one of its root sets."""
        ...

    def violation(self, mechanisms: Mapping[str, Formula]) -> Violation | None:
        """Return the first reason why a map is not legal, or None. Acyclicity is judged on mentions."""
        ...


class RootedDisclosure(Disclosure, Protocol):
    """A disclosure that tells the roots."""

    @property
    def roots(self) -> Names: ...


class Answers:
    """The answers that follow from the others."""

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
    """The answers that follow from known roots."""

    @property
    def num_roots(self: RootedDisclosure) -> int:
        return len(self.roots)

    @property
    def endogenous(self: RootedDisclosure) -> Names:
        """In the order in which the disclosure lists them."""
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
                listed = ", ".join(natural(allowed)) or "none"
                reason = f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {listed}"
                return Violation("parent", strangers, reason)
        try:
            topological_order(mechanisms)
        except CycleError as error:
            return Violation("cycle", error.variables, str(error))
        return None


def key_violation(keys: Iterable[str], endogenous: Sequence[str]) -> Violation | None:
    """Check that the keys of a map are the endogenous variables; unknown keys are reported before missing ones."""
    present_keys = tuple(keys)
    listed = ", ".join(natural(endogenous))
    unknown = tuple(sorted(key for key in present_keys if key not in endogenous))
    if unknown:
        return Violation("unknown_keys", unknown, f"unknown or non-endogenous keys; endogenous variables: {listed}")
    missing = tuple(v for v in endogenous if v not in present_keys)
    if missing:
        return Violation("missing_keys", missing, f"missing mechanisms for {', '.join(natural(missing))}")
    return None


@dataclass(frozen=True)
class Ordered(KnownRoots):
    """The full topological order is known: mechanisms may mention only earlier variables.

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
    """Coarse precedence is known: variables of the same or an earlier block may be mentioned.

    blocks: disjoint, together every variable; the order inside a block says nothing and is natural
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
    """Only the roots are known: any other variable may be mentioned as long as the mentions are acyclic."""

    variables: Names
    roots: Names

    label = "Hidden-order"
    order = None
    blocks = None


@dataclass(frozen=True)
class HiddenRoots(Answers):
    """Only the number of roots is known; a submission names them.

    variables: natural order; num_roots: exactly how many roots must be named
    certain: variables that are known to be among them
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
        places = {v: k for k, v in enumerate(self.variables)}
        listed = sorted(sorted(map(places.__getitem__, (*self.certain, *names))) for names in added)
        return (tuple(self.variables[k] for k in chosen) for chosen in listed)

    def num_root_sets(self, num_able: int | None = None) -> int:
        num_free = (len(self.variables) if num_able is None else num_able) - len(self.certain)
        return comb(max(num_free, 0), self.num_roots - len(self.certain))

    def given_roots(self, roots: Sequence[str]) -> HiddenOrder:
        return HiddenOrder(self.variables, natural(roots))

    def violation(self, mechanisms: Mapping[str, Formula]) -> Violation | None:
        """Return the first reason why a map is not legal; the roots are the variables without a mechanism."""
        roots = tuple(v for v in self.variables if v not in mechanisms)
        if len(roots) != self.num_roots:
            return Violation("roots", roots, f"{len(roots)} roots where {self.num_roots} are disclosed")
        return self.given_roots(roots).violation(mechanisms)
