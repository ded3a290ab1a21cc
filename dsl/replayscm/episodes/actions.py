"""Actions of an episode, read from untrusted JSON: a world that is requested, or a submission.

{"do": {"X3": 1, "X5": 0}}, under chosen contexts with "contexts": ["010", ...]; {"submit": {"mechanisms": {..},
"noise": "1/10"}} or {"submit": {"forecast": [..]}}. Every refusal is one line and free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibrant.dsl.episode import ActionError, verb_of
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, Extension, Question
from calibrant.dsl.replayscm.extensions.noise import parse_rate

Forecast: TypeAlias = list[list[dict[str, float]]]
"""Of each world, of each row: free endogenous variable -> probability of 1."""


@dataclass(frozen=True)
class WorldRequest:
    """A world that an action asks for.

    constants: variable -> bit; contexts: numbers of the chosen contexts, None where they are not chosen
    """

    constants: Mapping[str, int]
    contexts: tuple[int, ...] | None


def read_action(action: object, extension: Extension) -> WorldRequest | None:
    """Return the world that an action asks for, None for a well-shaped submission; `ActionError` states a refusal."""
    allowance = extension.allowance
    assert allowance is not None
    chosen = frozenset({"contexts"}) if allowance.contexts is Contexts.CHOSEN else frozenset()
    verb = verb_of(action, {"do": chosen, "submit": frozenset()})
    assert isinstance(action, Mapping)
    if verb == "submit":
        check_submission(action["submit"], extension)
        return None
    constants = _read_constants(action["do"], extension, allowance)
    return WorldRequest(constants, _read_contexts(action["contexts"], extension, allowance) if chosen else None)


def _read_constants(raw: Any, extension: Extension, allowance: Allowance) -> dict[str, int]:
    if not isinstance(raw, Mapping):
        raise ActionError(f"'do' takes an object of variable: 0 or 1, found {short_repr(raw)}")
    for variable, value in raw.items():
        if variable in extension.hidden:
            raise ActionError(f"{variable} is hidden and cannot be set")
        if variable not in extension.variables:
            raise ActionError(f"{short_repr(variable)} is no variable; known: {', '.join(extension.variables)}")
        if type(value) is not int or value not in (0, 1):
            raise ActionError(f"{variable} can be set to 0 or 1, found {short_repr(value)}")
    if len(raw) > allowance.max_targets:
        raise ActionError(f"{len(raw)} variables set; at most {allowance.max_targets} can be")
    return {variable: raw[variable] for variable in extension.variables if variable in raw}


def _read_contexts(raw: Any, extension: Extension, allowance: Allowance) -> tuple[int, ...]:
    num_roots = len(extension.roots)
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not 1 <= len(raw) <= allowance.rows:
        raise ActionError(f"'contexts' takes 1 to {allowance.rows} texts, found {short_repr(raw)}")
    for context in raw:
        if not isinstance(context, str) or len(context) != num_roots or context.strip("01"):
            raise ActionError(f"context {short_repr(context)} is not {num_roots} characters 0 or 1")
    return tuple(int(context[::-1] or "0", 2) for context in raw)


def check_submission(raw: Any, extension: Extension) -> None:
    """Check the shape of what `submit` takes; `ActionError` states a refusal."""
    if not isinstance(raw, Mapping):
        raise ActionError(f"'submit' takes an object, found {short_repr(raw)}")
    if extension.question is Question.FORECAST and raw.keys() == {"forecast"}:
        _check_forecast(raw["forecast"], extension)
        return
    if not {"mechanisms"} <= raw.keys() <= {"mechanisms", "noise"}:
        forecast = "'forecast', or " if extension.question is Question.FORECAST else ""
        raise ActionError(f"a submission has {forecast}'mechanisms' and if wished 'noise'; found {short_repr(raw)}")
    mechanisms = raw["mechanisms"]
    if not isinstance(mechanisms, Mapping) or not all(isinstance(text, str) for text in mechanisms.values()):
        raise ActionError(f"'mechanisms' takes an object of variable: formula, found {short_repr(mechanisms)}")
    if "noise" in raw:
        try:
            parse_rate(raw["noise"], "noise")
        except PoolError as error:
            raise ActionError(str(error)) from None


def _check_forecast(raw: Any, extension: Extension) -> None:
    worlds = extension.forecast_worlds
    if not isinstance(raw, list) or len(raw) != len(worlds):
        raise ActionError(f"'forecast' takes a list of {len(worlds)} worlds, found {short_repr(raw)}")
    for number, (rows, world) in enumerate(zip(raw, worlds, strict=True)):
        free = {v for v in extension.variables if v not in extension.roots and v not in world.constants}
        if not isinstance(rows, list) or len(rows) != len(world.contexts):
            raise ActionError(f"world {number} takes a list of {len(world.contexts)} rows, found {short_repr(rows)}")
        for row in rows:
            if not isinstance(row, Mapping) or row.keys() != free or not all(map(_is_probability, row.values())):
                names = ", ".join(sorted(free)) or "no variables"
                raise ActionError(f"a row of world {number} takes probabilities of {names}; found {short_repr(row)}")


def _is_probability(value: object) -> bool:
    return type(value) in (int, float) and isinstance(value, int | float) and 0 <= value <= 1
