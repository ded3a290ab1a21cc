"""The default random numbers of R since 3.6: Mersenne twister seeded by set.seed, and sample() by rejection.

Written from the description of the generator (Matsumoto and Nishimura 1998) and of R's seeding, to draw the resamples
that bnlearn drew.
"""

from __future__ import annotations

STATE = 624


class RRandom:
    """set.seed(seed), then sample()."""

    def __init__(self, seed: int) -> None:
        for _ in range(50):
            seed = (69069 * seed + 1) % 2**32
        scrambled = []
        for _ in range(STATE + 1):
            seed = (69069 * seed + 1) % 2**32
            scrambled.append(seed)
        self._state = scrambled[1:]  # the first word is R's place in the state
        self._place = STATE

    def uniform(self) -> float:
        """In [0, 1), a multiple of 2**-32."""
        if self._place == STATE:
            self._twist()
        word = self._state[self._place]
        self._place += 1
        word ^= word >> 11
        word ^= word << 7 & 0x9D2C5680
        word ^= word << 15 & 0xEFC60000
        word ^= word >> 18
        return word * 2.3283064365386963e-10

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1: random bits, drawn again while they make too large a number."""
        num_bits = (count - 1).bit_length()
        while True:
            value = 0
            for _ in range(0, num_bits + 1, 16):
                value = 65536 * value + int(self.uniform() * 65536)
            value &= (1 << num_bits) - 1
            if value < count:
                return value

    def with_replacement(self, count: int) -> list[int]:
        """sample(count, count, replace = TRUE), from 0."""
        return [self.below(count) for _ in range(count)]

    def permutation(self, count: int) -> list[int]:
        """sample(count, count), from 0."""
        left, drawn = list(range(count)), []
        while left:
            place = self.below(len(left))
            drawn.append(left[place])
            last = left.pop()
            if place < len(left):
                left[place] = last
        return drawn

    def _twist(self) -> None:
        state = self._state
        for k in range(STATE):
            word = (state[k] & 0x80000000) | (state[(k + 1) % STATE] & 0x7FFFFFFF)
            state[k] = state[(k + 397) % STATE] ^ (word >> 1) ^ (0x9908B0DF if word & 1 else 0)
        self._place = 0
