"""Worlds of an episode as the solvers of plain items take them: panels, version spaces, rows as words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import evidence_panel_world
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.world import Panel, Rows
from calibrant.solvers.replayscm.version_space import ModelClass, VersionSpace

U64 = npt.NDArray[np.uint64]


def plain_task(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> Task:
    """Return the noise-free passive task of these worlds, without hidden variables."""
    named = tuple(evidence_panel_world(f"world{number}", scm_class, world) for number, world in enumerate(worlds))
    training = Panel(natural(scm_class.observed), named)
    return replace(task, kind=TaskKind.SCM, training=training, extension=None)


def version_space(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> VersionSpace:
    """Return the SCMs of the class that fit all rows; noise-free, without hidden variables."""
    return VersionSpace(plain_task(task, scm_class, worlds), ModelClass(scm_class.max_parents))


def candidate_rows(
    scm_class: MechanismClass, worlds: Sequence[tuple[Mapping[str, int], Sequence[int]]]
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return targets and roots of worlds that may be asked for as words over the variables in natural order.

    worlds: constants and contexts of each; the second part is where the rows of each begin, and their number
    """
    # natural order: version spaces number variables so, extended classes as the item lists them
    index = {v: i for i, v in enumerate(natural(scm_class.observed))}
    places = [index[root] for root in scm_class.roots]
    words, targets, spans = [], [], [0]
    for constants, contexts in worlds:
        clamped = sum(1 << index[v] for v in constants)
        values = sum(bit << index[v] for v, bit in constants.items())
        for context in contexts:
            word = sum((context >> i & 1) << place for i, place in enumerate(places))
            # a clamped root shows its constant, whatever the context
            words.append(word & ~clamped | values)
            targets.append(clamped)
        spans.append(len(words))
    return Rows(np.array(words, np.uint64), np.array(targets, np.uint64)), np.array(spans, np.int64)
