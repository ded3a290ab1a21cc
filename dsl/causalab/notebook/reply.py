"""Replies in the paper's own format (arXiv 2605.26029, A.4): one object a step, with the fields of a notebook.

`memory`, `thought` and `past_data` are the system's notes. `hypothesis` is read as everywhere. What is done stands in
`value`, which is a setting where `experiment` names a property and else the reactor's dial, or in `action`. Actions and
dialog options of the 2D world that surrounds the paper's laboratory are no actions of an episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.action import Action, ActionError
from calibrant.dsl.causalab.episode import HYPOTHESIS, VERBS
from calibrant.dsl.causalab.hypothesis import FILLERS
from calibrant.dsl.errors import short_repr

VALUE, EXPERIMENT, TARGET = "value", "experiment", "target_prop"
ACTION, DIALOG = "action", "chosen_dialog_option_int"
SUBMIT = "submit"
NOTES = frozenset({"memory", "thought", "past_data", EXPERIMENT})  # what they hold is no answer


def is_paper_reply(raw: Mapping[str, Any]) -> bool:
    """Return whether an object states an action in the paper's format, and not by a verb of an episode."""
    stated = raw.get(VALUE) is not None or raw.get(DIALOG) is not None or isinstance(raw.get(ACTION), str)
    return stated and VERBS.keys().isdisjoint(raw)


def paper_action(raw: Mapping[str, Any], properties: Sequence[str]) -> Action:
    """Return the action of an episode that such an object states, with its hypothesis.

    `ActionError` if it states none.
    """
    stated = {HYPOTHESIS: raw[HYPOTHESIS]} if isinstance(raw.get(HYPOTHESIS), Mapping) else {}
    if submits(raw):
        return {SUBMIT: stated}
    if (why := outside_laboratory(raw)) is not None:
        raise ActionError(why)
    target = experiment_target(raw)
    if target is None:
        return {"reactor": raw[VALUE], **stated}
    return {"set": resolved_property(target, properties), "value": raw[VALUE], **stated}


def submits(raw: Mapping[str, Any]) -> bool:
    action = raw.get(ACTION)
    return isinstance(action, str) and action.strip().lower() == SUBMIT


def outside_laboratory(raw: Mapping[str, Any]) -> str | None:
    """Why an object states nothing that a laboratory does; None if it does."""
    if raw.get(VALUE) is not None or submits(raw):
        return None
    for key in (ACTION, DIALOG):
        if raw.get(key) is not None:
            return (
                f"{key} {short_repr(raw[key])} belongs to the world around the laboratory, which is not simulated; "
                'give a value, or "action": "SUBMIT"'
            )
    return None


def experiment_target(raw: Mapping[str, Any]) -> object | None:
    """Return the name that the announced experiment is about.

    None if none is announced. `ActionError` if it is no object.
    """
    experiment = raw.get(EXPERIMENT)
    if experiment is None:
        return None
    if not isinstance(experiment, Mapping):
        raise ActionError(f"{EXPERIMENT} is {short_repr(experiment)}, not an object")
    target: object = experiment.get(TARGET)
    return None if target is None or (isinstance(target, str) and not target.strip()) else target


def resolved_property(name: object, properties: Sequence[str]) -> object:
    """Return the one property that a name means, whatever its case, blanks, _ and -; else the name as it is."""
    if not isinstance(name, str) or name in properties:
        return name
    meant = [candidate for candidate in properties if _plain(candidate) == _plain(name)]
    return meant[0] if len(meant) == 1 else name


def _plain(name: str) -> str:
    return "".join(name.translate(FILLERS).split()).lower()
