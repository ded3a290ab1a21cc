"""The unreliable detector's draws: one uniform number for each step number, so that replays agree."""

from __future__ import annotations

import random

from calibrant.dsl.blickets.item import Sealed


class Draws:
    """Uniform numbers by step number: those that the item gives, then the stream of its seed.

    Draw t is the t-th number of `random.Random(noise_seed)`, whose `random()` gives the same numbers in every Python.
    """

    __slots__ = ("_made", "_stream")

    def __init__(self, sealed: Sealed) -> None:
        self._stream = random.Random(sealed.noise_seed)
        self._made = list(sealed.draws)
        for _ in self._made:
            self._stream.random()

    def __getitem__(self, t: int) -> float:
        while len(self._made) <= t:
            self._made.append(self._stream.random())
        return self._made[t]
