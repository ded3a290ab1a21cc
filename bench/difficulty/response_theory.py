"""Item response models by girth: the Rasch model from 8 systems and 30 items on, two parameters from 100 systems on.

With 8 systems a Rasch difficulty correlates by about .7 with the truth, with 16 by .84; a discrimination needs hundreds
(simulated, 30 items). Linacre (1994, rasch.org/rmt74m) names 27 to 61 persons for stable Rasch items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant.dsl.errors import CalibrantError, MissingExtraError

FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
ModelName: TypeAlias = Literal["rasch", "2pl"]

MIN_SYSTEMS, MIN_ITEMS = 8, 30
MIN_SYSTEMS_2PL = 100


@dataclass(frozen=True)
class ResponseModel:
    """A fitted item response model; the scale is that of standard normal abilities.

    items: rows of the table that were fitted; constant: rows that all systems answered alike, which are left out
    difficulty, standard_error, discrimination: of each fitted item; ability: of each system, expected a posteriori
    """

    name: ModelName
    items: tuple[int, ...]
    constant: tuple[int, ...]
    difficulty: FloatArray
    standard_error: FloatArray
    discrimination: FloatArray
    ability: FloatArray

    def probabilities(self, ability: FloatArray) -> FloatArray:
        """Return [item, system], the probability of a right answer at these abilities."""
        log_odds = self.discrimination[:, None] * (ability[None, :] - self.difficulty[:, None])
        return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)

    @property
    def information(self) -> FloatArray:
        """Return a^2 p (1 - p) of each fitted item, mean over the fitted abilities."""
        p = self.probabilities(self.ability)
        return np.asarray((self.discrimination[:, None] ** 2 * p * (1 - p)).mean(axis=1), dtype=np.float64)


def fit_responses(answers: IntArray, name: ModelName = "rasch", rows: Sequence[int] | None = None) -> ResponseModel:
    """Fit [item, system] of 0 and 1; `CalibrantError` where there are too few items or systems to say anything.

    rows: names of the items in the result, by default their numbers
    """
    num_items, num_systems = answers.shape
    least = MIN_SYSTEMS_2PL if name == "2pl" else MIN_SYSTEMS
    if num_systems < least or num_items < MIN_ITEMS:
        kind = "a model of two parameters" if name == "2pl" else "a Rasch model"
        raise CalibrantError(
            f"{num_items} items that all {num_systems} systems answered; {kind} needs {MIN_ITEMS} and {least}"
        )
    labels = list(range(num_items)) if rows is None else list(rows)
    varying = [k for k in range(num_items) if 0 < answers[k].sum() < num_systems]
    if len(varying) < MIN_ITEMS:
        raise CalibrantError(f"{len(varying)} of {num_items} items tell systems apart, and {MIN_ITEMS} are needed")
    girth = _girth()
    used = answers[varying]
    fitted = girth.twopl_mml(used) if name == "2pl" else girth.rasch_mml(used)
    difficulty = np.asarray(fitted["Difficulty"], dtype=np.float64)
    discrimination = np.broadcast_to(np.asarray(fitted["Discrimination"], dtype=np.float64), difficulty.shape).copy()
    ability = np.asarray(girth.ability_eap(used, difficulty, discrimination), dtype=np.float64)
    constant = tuple(labels[k] for k in range(num_items) if k not in set(varying))
    model = ResponseModel(
        name,
        tuple(labels[k] for k in varying),
        constant,
        difficulty,
        np.zeros_like(difficulty),
        discrimination,
        ability,
    )
    p = model.probabilities(ability)
    # from the information about b at the fitted abilities, which are taken as known: a lower bound of the error
    error = 1 / np.sqrt((discrimination[:, None] ** 2 * p * (1 - p)).sum(axis=1))
    return replace(model, standard_error=error)


def estimate_ability(model: ResponseModel, columns: Sequence[int], answers: IntArray) -> float:
    """Return the ability of one system from its answers to some of the fitted items, expected a posteriori."""
    girth = _girth()
    chosen = list(columns)
    estimated = girth.ability_eap(answers.reshape(-1, 1), model.difficulty[chosen], model.discrimination[chosen])
    return float(np.asarray(estimated)[0])


def _girth() -> Any:
    try:
        return import_module("girth")
    except ImportError:
        raise MissingExtraError("girth is missing; run: pip install 'calibrant[statistics]'") from None
