"""The extensions of an item: its class, noise and hidden variables, the allowance of an episode, the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from calibrant.dsl.replayscm.disclosure import Names
from calibrant.dsl.replayscm.extensions.noise import NOISE_FREE, NoiseModel
from calibrant.dsl.replayscm.extensions.prior import Prior

MAX_ALL_ROOTS = 4  # worlds of all contexts have 2**roots rows


class Contexts(Enum):
    """Source of a world's root values: all of them, sampled by the item's seed, or listed in the action."""

    ALL = "all"
    SAMPLED = "drawn"
    CHOSEN = "chosen"


class Question(Enum):
    """The kind of submission: a mechanism map, or probabilities for cells of held-out worlds."""

    MAP = "map"
    FORECAST = "forecast"


@dataclass(frozen=True)
class Allowance:
    """The budget of an episode.

    worlds: that may be requested after the start; rows: of a world, at most if contexts are chosen
    max_targets: variables that one action may set
    """

    worlds: int
    rows: int
    max_targets: int
    contexts: Contexts


@dataclass(frozen=True)
class ForecastWorld:
    """A held-out world as a forecast item discloses it.

    constants: the intervention; contexts: a text per row, a character per root
    """

    constants: Mapping[str, int]
    contexts: tuple[str, ...]


@dataclass(frozen=True)
class Extension:
    """The fields of an extended item that a plain one lacks.

    variables: observed ones as row strings have them; roots: as contexts have them
    allowance: None for passive items; forecast_worlds: of the question FORECAST alone
    """

    variables: Names
    roots: Names
    max_parents: int
    prior: Prior = Prior.UNIFORM
    noise: NoiseModel = NOISE_FREE
    hidden: Mapping[str, Names | None] = field(default_factory=dict)
    allowance: Allowance | None = None
    question: Question = Question.MAP
    forecast_worlds: tuple[ForecastWorld, ...] = ()

    @property
    def is_episode(self) -> bool:
        return self.allowance is not None

    @property
    def label(self) -> str:
        """Return the marks that follow the disclosure in the name of a setting."""
        return ("" if self.noise == NOISE_FREE else "+noise") + ("+hidden" if self.hidden else "")
