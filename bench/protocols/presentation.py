"""Canonical presentations: items as rows of the project are handed them, whatever their names and orders.

A row that breaks a tie by the first name, or seeds a draw by the task's text, then answers equally up to the renaming.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.bench.core.capabilities import Capability
from calibrant.dsl.episode import Step


@dataclass(frozen=True)
class Presentation:
    """A task or an item of an episode in canonical form.

    content: the task or item; restore: from JSON over its names to JSON over the names of the pool
    """

    content: Any
    restore: Callable[[Any], Any]

    def restore_step(self, step: Step[Any]) -> Step[Any]:
        """Return a step over the names of the pool."""
        action: Mapping[str, Any] = self.restore(step.action)
        return Step(action, self.restore(step.reading), self.restore(step.refused), step.cost)


PRESENT: Capability[Callable[[Any], Presentation]] = Capability("canonical presentation")
"""Presents a task, or the item of an episode."""


def replace_words(content: Any, word: re.Pattern[str], names: Mapping[str, str]) -> Any:
    """Return JSON in which every match of a pattern that is a name is replaced, in texts and keys."""
    if isinstance(content, str):
        return word.sub(lambda match: names.get(match[0], match[0]), content)
    if isinstance(content, Mapping):
        return {replace_words(key, word, names): replace_words(value, word, names) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [replace_words(part, word, names) for part in content]
    return content
