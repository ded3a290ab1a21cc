"""Worlds that an episode has shown: as evidence and as worlds of a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.extensions.model_class import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.world import Intervention, World, columns_from_rows


def steps_evidence(steps: Sequence[Step[Any]]) -> list[EvidenceWorld]:
    """Return the worlds that these steps have shown, the start first."""
    return [
        EvidenceWorld(step.action.get("do", {}), tuple(step.reading["rows"]))
        for step in steps
        if step.reading is not None
    ]


def world_evidence(scm_class: MechanismClass, world: World) -> list[EvidenceWorld]:
    """Return a world as evidence; targets set row by row are constants of single rows."""
    constants = {v: world.intervention.constants[v] for v in world.intervention.constants}
    rows = world.row_texts(scm_class.observed)
    if not world.intervention.assigned:
        return [EvidenceWorld(constants, tuple(rows))]
    single = []
    for text, values in zip(rows, world.rows(), strict=True):
        single.append(EvidenceWorld({v: values[v] for v in world.intervention.targets}, (text,)))
    return single


def worlds_evidence(scm_class: MechanismClass, worlds: Sequence[World]) -> list[EvidenceWorld]:
    """Return worlds as evidence, in their order."""
    return [rows for world in worlds for rows in world_evidence(scm_class, world)]


def evidence_panel_world(name: str, scm_class: MechanismClass, world: EvidenceWorld) -> World:
    """Return evidence as a world of a panel, whose units are its rows."""
    by_variable = dict(zip(scm_class.observed, columns_from_rows(world.rows, len(scm_class.observed)), strict=True))
    variables = natural(scm_class.observed)
    units = tuple(f"r{row}" for row in range(len(world.rows)))
    constants = {v: world.constants[v] for v in natural(world.constants)}
    return World(name, Intervention(constants), variables, units, tuple(by_variable[v] for v in variables))


def shown_worlds(scm_class: MechanismClass, steps: Sequence[Step[Any]]) -> tuple[World, ...]:
    """Return the worlds that these steps have shown, named by their numbers."""
    evidence = steps_evidence(steps)
    return tuple(evidence_panel_world(f"world_{number}", scm_class, world) for number, world in enumerate(evidence))
