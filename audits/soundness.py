"""Soundness checks of an item before it is used; the same three for every benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

I = TypeVar("I")  # noqa: E741  # an item

Check: TypeAlias = Callable[[I], str | None]
"""Why an item fails, "" if it passes, None if the check does not apply to it."""


@dataclass(frozen=True)
class ItemIdentity(Generic[I]):
    """Keys by which items are the same.

    units: word for latent models, as `programs`
    duplicate_key: equal for items that show and ask the same, whatever a system does within the budget
    model_keys: of the latent models that an item is about, equal up to renaming; empty where the item states none
    structure_key: equal for models of one graph up to renaming; of items with a model
    """

    units: str
    duplicate_key: Callable[[I], bytes]
    model_keys: Callable[[I], tuple[bytes, ...]]
    structure_key: Callable[[I], bytes]


@dataclass(frozen=True)
class Soundness(Generic[I]):
    """Soundness of an item.

    checks: statements of the file about the item; a failed one is an error of the file
    explain_undecided: why no system can be sure of a right answer within the item's budget, by an exact solver of the
        item's class; "" if one can
    identity: when two items are the same
    """

    checks: Mapping[str, Check[I]]
    explain_undecided: Check[I]
    identity: ItemIdentity[I]
