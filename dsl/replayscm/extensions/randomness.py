"""Flips and drawn contexts as functions of the item's seed, by SHA-256, so that any language replays them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

FLIP_BITS = 64


@dataclass(frozen=True)
class Spelling:
    """Names and roots by which the flips and contexts of an item go that was renamed since.

    names: name in the item -> name that is hashed
    roots: root i, as the item names it, has bit i of a context that is hashed
    """

    names: Mapping[str, str]
    roots: tuple[str, ...]

    def flip_name(self, variable: str) -> str:
        """Return the name by which the flips of a variable are drawn."""
        return self.names[variable]

    def context_of(self, hashed: int, roots: Sequence[str]) -> int:
        """Return a hashed context over the roots as the item lists them."""
        return sum((hashed >> i & 1) << roots.index(root) for i, root in enumerate(self.roots))

    def hashed_context(self, context: int, roots: Sequence[str]) -> int:
        """Return the inverse of `context_of`."""
        return sum((context >> roots.index(root) & 1) << i for i, root in enumerate(self.roots))


def is_flipped(seed: int, world: int, row: int, variable: str, rate: Fraction) -> bool:
    """Return whether the noise flips a cell.

    u is the first 8 bytes, big-endian, of SHA-256 of `seed|flip|world|row|variable`, with decimal numbers from 0
    and the variable's name; the cell is flipped iff u * b < a * 2**64 for the rate a/b.
    """
    if not rate:
        return False
    digest = sha256(f"{seed}|flip|{world}|{row}|{variable}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * rate.denominator < rate.numerator << FLIP_BITS


def sampled_contexts(seed: int, world: int, num_roots: int, num_rows: int) -> tuple[int, ...]:
    """Return the first `num_rows` contexts by ascending SHA-256 of `seed|context|world|c`, c from 0 to 2**roots - 1."""

    def key(context: int) -> bytes:
        return sha256(f"{seed}|context|{world}|{context}".encode()).digest()

    return tuple(sorted(range(1 << num_roots), key=key)[:num_rows])
