"""Hidden noise: at every accepted setting something is drawn and added to some nodes.

The released suites draw one value for all affected nodes from an unseeded stream. Items of ours hold a seed, and two
further kinds that no release has.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from calibrant.dsl.causalab.mechanism import Values


class Draw(StrEnum):
    """The noise of one setting."""

    SHARED = "shared"  # one value, the same for all affected nodes (released)
    INDEPENDENT = "independent"  # one value for each affected node
    OBSERVED = "observed"  # one for each affected node, added to what is shown and not passed on


@dataclass(frozen=True, slots=True)
class Noise:
    """The distribution of hidden noise.

    values: what is drawn, each with equal probability
    weight: factor of a draw; a node is shifted by weight * drawn value
    affected: the nodes that are shifted
    seed: of the stream of draws; the n-th accepted setting takes the n-th draw
    """

    values: tuple[float, ...]
    weight: float
    affected: tuple[str, ...]
    seed: int
    draw: Draw = Draw.SHARED

    def stream(self) -> NoiseStream:
        return NoiseStream(self)


class NoiseStream:
    """The draws of one episode, in order."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._random = random.Random(noise.seed)

    def shifts(self) -> Values:
        """Return the shifts of the next accepted setting, by affected node."""
        noise = self._noise
        if noise.draw is Draw.SHARED:
            return dict.fromkeys(noise.affected, noise.weight * self._random.choice(noise.values))
        return {node: noise.weight * self._random.choice(noise.values) for node in noise.affected}
