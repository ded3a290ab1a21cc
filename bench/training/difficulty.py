"""Meaning of the difficulty labels of items, which `training.difficulty` of a benchmark gives."""

from __future__ import annotations

from collections.abc import Mapping

LABELS: Mapping[str, str] = dict(  # noqa: C408  # names of labels, one of which a benchmark has too
    answers="right answers to the question (CauSim)",
    blickets="objects that the first rule mentions (blickets)",
    edges="edges of the graph",
    experiments="experiments whose values are shown (logic models)",
    moves="moves that the episode allows (blickets)",
    nodes="nodes of the graph",
    objects="objects beside the detector (blickets)",
    parents="parents of the variable that has most of them (ReplaySCM)",
    rules="rules that are in force one after another (blickets)",
    settings="settings that the episode allows (CausaLab)",
    variables="variables, roots too (ReplaySCM)",
    worlds="training worlds (ReplaySCM)",
)
