"""Refusal of extended items by what is for plain ones."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.item import Problem


def require_plain(items: Iterable[Problem], subject: str) -> None:
    """Refuse episodes, noise, hidden variables and stated classes; subject: the command, as the refusal names it."""
    for item in items:
        if item.task.extension is not None:
            kind = f"{in_one_line(item.id)} is of the setting {item.setting} with a stated class"
            raise CalibrantError(f"{subject} does not support extended items; {kind}")
