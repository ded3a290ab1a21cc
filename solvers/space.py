"""Version spaces of interactive items: the hypotheses of a stated class that agree with all readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from calibrant.dsl.errors import in_one_line

M = TypeVar("M")  # a member
X = TypeVar("X")  # an experiment: what is read
R = TypeVar("R")  # a reading
A = TypeVar("A")  # an answer to the question that is scored


class Space(Protocol[M, X, R, A]):
    """Members of a class that fit the evidence so far. Immutable: `after` returns a new space.

    in_words: the class, in the words of a claim
    count: number of members, exact; 0 if nothing of the class fits
    """

    @property
    def in_words(self) -> str: ...
    @property
    def count(self) -> int: ...

    def fits(self, member: M) -> bool:
        """Return whether a hypothesis of the class is a member."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[M]:
        """Sample n members uniformly with replacement; `ValueError` if there is none."""
        ...

    def after(self, experiment: X, reading: R) -> Space[M, X, R, A]:
        """Return the space of members that give this reading; never more than there were."""
        ...

    def outcomes(self, experiment: X) -> Mapping[R, int]:
        """Count the members by reading; only readings that some member gives, together `count`."""
        ...

    def verdicts(self) -> Mapping[A, int]:
        """Count the members by answer to the scored question; together `count`. One key: it is decided."""
        ...


class InWords(Protocol):
    """Anything that names its class."""

    @property
    def in_words(self) -> str: ...


def space_repr(space: InWords) -> str:
    """Return the type and class of a space in one line."""
    return f"<{type(space).__name__}: {in_one_line(space.in_words)[:150]}>"
