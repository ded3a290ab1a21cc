"""Canonical presentation of tasks of logic models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from calibrant.bench.protocols.presentation import Presentation, replace_words
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.canonical import canonical_task

_NAME = re.compile(r"\bn[0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a task in canonical form; tables of probabilities get the columns of the task back."""
    canonical = canonical_task(task)

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() == {"probabilities"}:
            return {
                "probabilities": [[row[column] for column in canonical.readouts] for row in content["probabilities"]]
            }
        return replace_words(content, _NAME, canonical.names)

    return Presentation(canonical.task, restore)
