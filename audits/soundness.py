"""What is asked of an item before anybody uses it, whatever its benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

I = TypeVar("I")  # noqa: E741  # an item

Check: TypeAlias = Callable[[I], str | None]
"""Why an item fails, "" if it passes, None if the check does not apply to it."""


@dataclass(frozen=True)
class Soundness(Generic[I]):
    """checks: what the file says of the item is true; one that fails is an error of the file
    undecided: why no system can be sure of a right answer within what the item allows, as far as an exact solver of its
        own class tells; "" if one can
    same: equal for items that ask the same of a system; None for an item that asks something new every time
    """

    checks: Mapping[str, Check[I]]
    undecided: Check[I]
    same: Callable[[I], bytes | None]
