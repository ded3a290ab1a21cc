"""Soundness checks of an item before it is used; the same three for every benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

I = TypeVar("I")  # noqa: E741  # an item

Check: TypeAlias = Callable[[I], str | None]
"""Why an item fails, "" if it passes, None if the check does not apply to it."""


@dataclass(frozen=True)
class Soundness(Generic[I]):
    """Soundness of an item.

    checks: statements of the file about the item; a failed one is an error of the file
    explain_undecided: why no system can be sure of a right answer within the item's budget, by an exact solver of the
        item's class; "" if one can
    duplicate_key: equal for items that ask the same of a system; None for an item that asks something new every time
    """

    checks: Mapping[str, Check[I]]
    explain_undecided: Check[I]
    duplicate_key: Callable[[I], bytes | None]
