"""Canonical presentation of tasks and episodes: neither names nor the order of columns decides an answer.

What the start shows comes first. Variables that it leaves alike are put in order by the environment, which knows the
mechanisms, and shuffled by a seed of what it knows: all spellings of an item are shown in one order, which tells
nothing. Flips and contexts stay those of the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any

from calibrant.bench.protocols import Presentation, replace_words
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.episode import ScmEpisode, shown_worlds, task_class
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.replayscm.canonical import (
    PanelOrder,
    canonical_task,
    rename_problem,
    unchanged_order,
    variable_colours,
)

# --- Canonical presentation of episodes: variables in an order that neither names nor the order of columns decides ----
_NAME = re.compile(r"\bV[0-9]+\b")


def present_episode(problem: Problem) -> Presentation:
    """Return an episode over the variables V1, V2, ... of its presentation."""
    names = {variable: f"V{place}" for place, variable in enumerate(_presented_order(problem), start=1)}
    renamed = rename_problem(problem, names, PanelOrder((), (), {}), unchanged_order(problem.sealed.heldout))
    old, new = problem.task.extension, renamed.task.extension
    assert old is not None
    assert new is not None
    return Presentation(renamed, _Restoring(names, old, new).restore)


def _presented_order(problem: Problem) -> list[str]:
    """Return all variables, hidden ones too: first by what the start shows, then as the environment puts them."""
    task, sealed, extension = problem.task, problem.sealed, problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    start = shown_worlds(task_class(task), ScmEpisode(problem).steps[:1])
    start_colours = variable_colours(replace(task, training=Panel(task.variables, start), shares_units=False))
    colours: dict[str, object] = dict(start_colours)
    if not extension.noise.is_silent or extension.allowance.contexts is not Contexts.ALL:
        # flips and contexts go by names, which are part of the item then
        hashed = {} if sealed.spelling is None else sealed.spelling.names
        colours = {variable: (colour, hashed.get(variable, variable)) for variable, colour in start_colours.items()}
    everything = Panel(task.variables, (*start, *sealed.heldout.worlds))
    whole = canonical_task(replace(task, training=everything, reference=sealed.gold, shares_units=False), colours)
    assert whole.task.reference is not None
    worlds = [(world.intervention.signature, world.columns) for world in whole.task.training.worlds]
    mechanisms = sorted((variable, render(formula)) for variable, formula in whole.task.reference.mechanisms.items())
    content = repr((whole.task.disclosure, worlds, mechanisms, sealed.seed))
    order = list(whole.names.values())
    Random(sha256(content.encode()).hexdigest()).shuffle(order)
    return sorted(order, key=start_colours.__getitem__)


@dataclass(frozen=True)
class _Restoring:
    """Restores what was said over the variables of a presentation: names, columns and rows.

    names: name in the pool -> name in the presentation; old, new: the fields of the item and of its presentation
    """

    names: Mapping[str, str]
    old: Extension
    new: Extension

    def restore(self, content: Any) -> Any:
        """Return JSON over the names of the pool."""
        if isinstance(content, Mapping):
            if content.keys() == {"world", "rows"}:
                return {"world": content["world"], "rows": self._rows(content["rows"])}
            restored = {self._words(key): self.restore(value) for key, value in content.items()}
            if "do" in content and "contexts" in content:
                restored["contexts"] = [_picked(text, self._root_places) for text in content["contexts"]]
            return restored
        if isinstance(content, list | tuple):
            return [self.restore(part) for part in content]
        return self._words(content)

    def _words(self, content: Any) -> Any:
        return replace_words(content, _NAME, self._names_in_pool)

    @cached_property
    def _names_in_pool(self) -> dict[str, str]:
        return {new: old for old, new in self.names.items()}

    @cached_property
    def _root_places(self) -> list[int]:
        return [self.new.roots.index(self.names[root]) for root in self.old.roots]

    def _rows(self, rows: list[str]) -> list[str]:
        columns = [self.new.variables.index(self.names[variable]) for variable in self.old.variables]
        assert self.old.allowance is not None
        numbers = range(len(rows))
        if self.old.allowance.contexts is Contexts.ALL:
            places = self._root_places
            order = [sum((context >> i & 1) << place for i, place in enumerate(places)) for context in numbers]
            rows = [rows[number] for number in order]
        return [_picked(row, columns) for row in rows]


def _picked(text: str, places: list[int]) -> str:
    return "".join(text[place] for place in places)


# --- Canonical presentation of ReplaySCM tasks and episodes -----------------------------------------------------------


def present(content: Task | Problem) -> Presentation:
    """Return a task or an episode in canonical form."""
    if isinstance(content, Problem):
        return present_episode(content)
    canonical = canonical_task(content)
    return Presentation(canonical.task, canonical.restore)
