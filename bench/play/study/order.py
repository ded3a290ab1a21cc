"""Orders of items for participants: fixed, shuffled, or the rows of a balanced Latin square."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Literal, TypeAlias, TypeVar

Order: TypeAlias = Literal["fixed", "shuffled", "latin"]
T = TypeVar("T")


def ordered(things: Sequence[T], order: Order, seed: str, participant: str, index: int) -> list[T]:
    """Return things in the order of a participant. seed: of the study; index: of the participant in the study."""
    if order == "shuffled":
        shuffled = list(things)
        Random(f"{seed} {participant}").shuffle(shuffled)
        return shuffled
    if order == "latin":
        return [things[k] for k in latin_row(len(things), index)]
    return list(things)


def latin_row(size: int, index: int) -> list[int]:
    """Return a row of a Latin square balanced for immediate predecessors (E. J. Williams 1949).

    There are `size` rows where it is even, twice as many where it is odd; index counts on beyond the last.
    """
    first = [(k + 1) // 2 if k % 2 else -(k // 2) for k in range(size)]
    row = [(place + index) % size for place in first]
    is_mirrored = size % 2 == 1 and index // size % 2 == 1
    return row[::-1] if is_mirrored else row


def index_of(participant: str, names: Sequence[str] | None) -> int:
    """Return the place of a participant in the list; of an id that is in none, a number that follows from it."""
    if names is not None and participant in names:
        return names.index(participant)
    return int.from_bytes(hashlib.sha256(participant.encode()).digest()[:4], "big")
