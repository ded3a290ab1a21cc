"""Laboratories with other names of properties, and records in another order."""

from __future__ import annotations

from random import Random

from calibrant.bench.lab.renamings.measure import RenamedItem, permuted_names, shuffled
from calibrant.dsl.causalab.item import LabItem, rename_item


def rename(item: LabItem, random: Random) -> RenamedItem:
    """Return a laboratory with other names of properties, and records in another order."""
    names = permuted_names(item.task.properties, random)
    renamed = rename_item(item, names, shuffled(range(len(item.task.records)), random))
    coefficients = {f"{c}_{old}": f"{c}_{new}" for c in ("c", "c2") for old, new in names.items()}
    return RenamedItem(renamed, {**names, **coefficients})
