"""Canonical presentation of questions about programs: rows read the model, over canonical names and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from calibrant.bench.protocols.presentation import Presentation, replace_words
from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import value_of
from calibrant.solvers.causim.canonical import canonical_names, rename_task

_NAME = re.compile(r"\b[KQ][0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a question over canonical names; as it is where its tables are too large to order."""
    names = canonical_names(task)
    if names is None:
        return Presentation(task, lambda content: content)
    keys = {new: old for old, new in names.keys.items()}
    values = {
        names.keys[key]: {value_of(new): value_of(old) for old, new in listed.items()}
        for key, listed in names.values.items()
    }

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() <= keys.keys():
            return {keys[key]: values[key].get(value, value) for key, value in content.items()}
        return replace_words(content, _NAME, keys)

    return Presentation(rename_task(task, names), restore)
