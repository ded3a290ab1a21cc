"""Notes on a task: what is valid and still likely to surprise, a line each."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from calibrant.dsl.logic.prior import class_edges, node_names, reachable, successors
from calibrant.dsl.logic.task import Task, kept_names
from calibrant.dsl.text import nearest_names

MAX_LISTED_NAMES = 8


def task_notes(task: Task) -> list[str]:
    """Return what a report says before its numbers; nothing of it is an error."""
    setup, options = task.setup, task.options
    prior = set(task.prior)
    names = node_names(tuple(prior))
    reached = reachable(setup.stimuli, successors(task.edges))
    outside = sorted({v for row in task.values for v in row if v is not None and not 0 <= v <= 1})
    candidates = [
        ("edges into stimuli, dropped", map(str, sorted(e for e in prior if e.target in setup.stimuli))),
        ("self-edges, dropped", map(str, sorted(e for e in prior if e.source == e.target))),
        ("stimuli that the prior lacks", (_with_nearest(s, names) for s in setup.stimuli if s not in names)),
        (
            "readouts that the prior lacks, predicted 0",
            (_with_nearest(r, names) for r in setup.readouts if r not in {*names, *setup.stimuli}),
        ),
        (
            "readouts that no stimulus reaches, of constant misfit",
            (r for r in setup.readouts if r in names and r not in reached),
        ),
        ("readouts that are stimuli, predicted by their clamp", (r for r in setup.readouts if r in setup.stimuli)),
        ("values outside [0, 1]", (f"{value:g}" for value in outside)),
    ]
    notes = [f"{heading}: {_listed(entries)}" for heading, entries in ((h, list(e)) for h, e in candidates) if entries]
    if options.compress:
        names_to_keep = kept_names(setup)
        reverse = class_edges(task.prior, setup.stimuli, names_to_keep, compress=True, reverse=True)
        if reverse != task.edges:
            notes.append("compression depends on names: merging in reverse order leaves other edges; see --no-compress")
    return notes


def _with_nearest(name: str, names: Collection[str]) -> str:
    """Return a name that the prior lacks, with those of the prior that it may be a misspelling of."""
    near = nearest_names(name, sorted(names))
    return f"{name} (did you mean {' or '.join(near)}?)" if near else name


def _listed(entries: Iterable[str]) -> str:
    texts = list(entries)
    return ", ".join(texts[:MAX_LISTED_NAMES]) + (", ..." if len(texts) > MAX_LISTED_NAMES else "")
