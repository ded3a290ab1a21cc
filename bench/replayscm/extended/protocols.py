"""Protocols for episodes, noise and hidden variables; of plain items they answer nothing."""

from __future__ import annotations

from typing import Any, Literal

from calibrant.bench.protocols.base import Protocol, ProtocolResult
from calibrant.bench.replayscm.extended.rows import NOT_EXTENDED, answer_extended, answer_structured, is_extended


class ExtendedRow(Protocol, frozen=True):
    """Base of the rows."""

    reads_canonical = True

    def refusal(self, handout: object) -> str:
        return "" if is_extended(handout) else NOT_EXTENDED

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_extended(self.name, handout)


class Greedy(ExtendedRow, frozen=True):
    """The world of least expected share, under noise of most expected bits, until nothing splits; then as exact.

    Episodes alone differ from exact in nothing: there exact is given greedy's worlds.
    """

    name = "greedy"


class RandomWorlds(ExtendedRow, frozen=True):
    """Worlds at random without repetition, with greedy's stop; then as exact."""

    name = "random"


class NoiseBlind(ExtendedRow, frozen=True):
    """Rows in order while a noise-free SCM fits all of them; then as exact without noise."""

    name = "noise-blind"


class HiddenBlind(ExtendedRow, frozen=True):
    """As exact in the class without hidden variables; where nothing fits, as noise-blind."""

    name = "hidden-blind"


class Abstain(ExtendedRow, frozen=True):
    """No worlds: as exact on the first world of an episode, and on no world at all of other items."""

    name = "abstain"


class NoisyWeights(ExtendedRow, frozen=True):
    """Structure learning by noisy local weights, then majority tables; noise with one rate, no hidden variables.

    search: the exact optimum of the score, hill climbing, or the parents of largest exact posterior
    """

    name = "noisy-weights"
    search: Literal["optimum", "hill-climbing", "posterior"] = "optimum"

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_structured("noisy-weights", self.search, handout)


class MbdeMajority(ExtendedRow, frozen=True):
    """As noisy-weights by the score mbde, which knows neither the rate nor the prior.

    search: as of noisy-weights
    """

    name = "mbde-majority"
    search: Literal["optimum", "hill-climbing", "posterior"] = "optimum"

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_structured("mbde", self.search, handout)


EXTENDED = (Greedy, RandomWorlds, NoiseBlind, HiddenBlind, Abstain, NoisyWeights, MbdeMajority)
