"""Canonical presentation of ReplaySCM tasks and episodes."""

from __future__ import annotations

from calibrant.bench.protocols.base import Presentation
from calibrant.bench.replayscm.extended.presentation import present_episode
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.replayscm.canonical import canonical_task


def present(content: Task | Problem) -> Presentation:
    """Return a task or an episode in canonical form."""
    if isinstance(content, Problem):
        return present_episode(content)
    canonical = canonical_task(content)
    return Presentation(canonical.task, canonical.restore)
