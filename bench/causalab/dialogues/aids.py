"""Aids of a text episode: the released configs that fit (as the paper's helper lists them), or the members left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from calibrant.audits.causalab.attribution import run_space
from calibrant.dsl.causalab.configs import Config, Transition, candidates, read_configs
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.budget import BudgetSpent

Aid: TypeAlias = Literal["none", "members"] | Path
"""members, or a released file whose configs are the candidates."""

MEMBERS: Final = "members"
MAX_LISTED = 50


def shown_aid(item: LabItem, steps: Sequence[LabStep], aid: Path) -> str:
    """Return what an aid shows after these steps; `CalibrantError` for a path that is neither an aid nor a suite."""
    return aid_text(MEMBERS if aid == Path(MEMBERS) else aid, item, steps)


def aid_text(aid: Aid, item: LabItem, steps: Sequence[LabStep]) -> str:
    """Return what an aid shows after these steps; empty for none."""
    if aid == "none":
        return ""
    return _members_text(item, steps) if aid == "members" else _candidates_text(Path(aid), item, steps)


def _members_text(item: LabItem, steps: Sequence[LabStep]) -> str:
    try:
        space = run_space(item, steps)
    except BudgetSpent:
        return "Mechanisms that fit all readings: too many to count."
    certain = ", ".join(f"{parent} -> {child}" for parent, child in sorted(space.certain_edges)) or "none"
    return f"Mechanisms that fit all readings: {space.count}. Edges that all of them have: {certain}."


def _candidates_text(path: Path, item: LabItem, steps: Sequence[LabStep]) -> str:
    fitting = candidates(_configs(path), item.task.properties, _transitions(item, steps))
    names = ", ".join(config.id for config in fitting[:MAX_LISTED]) or "none"
    return f"Candidates of {path.name} that fit all settings: {len(fitting)}: {names}."


@lru_cache(maxsize=8)
def _configs(path: Path) -> tuple[Config, ...]:
    configs = tuple(read_configs(path))
    if not configs:
        raise CalibrantError(f"{path.name}: no configs")
    return configs


def _transitions(item: LabItem, steps: Sequence[LabStep]) -> list[Transition]:
    """Return the settings of a run in their order, each from the values before it."""
    transitions, before = [], item.task.baseline
    for step in steps:
        if step.cost and step.reading is not None:
            name, value = str(step.action["set"]), float(step.action["value"])
            transitions.append(Transition(before, step.reading, name, value))
            before = step.reading
    return transitions
