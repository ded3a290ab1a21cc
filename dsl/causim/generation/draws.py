"""Random choices that depend on a key alone, whatever the version of Python or of a library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")
_WORD = 8  # bytes


class Draws:
    """A stream of SHA-256 blocks under a key; the same key gives the same stream for ever."""

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode()
        self._words = self._stream()

    def _stream(self) -> Iterator[int]:
        block = 0
        while True:
            digest = hashlib.sha256(self._key + b"\x1e" + str(block).encode()).digest()
            for start in range(0, len(digest), _WORD):
                yield int.from_bytes(digest[start : start + _WORD], "big")
            block += 1

    def below(self, number: int) -> int:
        """0 to number - 1, evenly up to 2**-40 for numbers below 2**24."""
        return next(self._words) % number

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with that probability, to within a millionth."""
        return self.below(1_000_000) < round(probability * 1_000_000)

    def sample(self, options: Sequence[T], number: int) -> list[T]:
        """Sample that many distinct positions of the options, in random order."""
        remaining = list(options)
        return [remaining.pop(self.below(len(remaining))) for _ in range(number)]

    def shuffle(self, values: MutableSequence[T]) -> None:
        values[:] = self.sample(list(values), len(values))
