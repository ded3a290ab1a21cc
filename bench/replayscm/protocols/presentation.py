"""Canonical presentation of ReplaySCM tasks."""

from __future__ import annotations

from calibrant.bench.protocols.presentation import Presentation
from calibrant.dsl.replayscm.problem import Problem, Task
from calibrant.solvers.replayscm.canonical import canonical_task


def present(content: Task | Problem) -> Presentation:
    """Return a task in canonical form; an episode as it is."""
    if isinstance(content, Problem):
        return Presentation(content, lambda content: content)
    canonical = canonical_task(content)
    return Presentation(canonical.task, canonical.restore)
