"""Canonical presentation of laboratories."""

from __future__ import annotations

import re
from functools import partial

from calibrant.bench.protocols.presentation import Presentation, replace_words
from calibrant.dsl.causalab.item import LabItem, rename_item
from calibrant.solvers.causalab.canonical import canonical_names

_NAME = re.compile(r"(?<![A-Za-z0-9])p[0-9]+(?![A-Za-z0-9])")  # also inside names of coefficients: c_p1


def present(item: LabItem) -> Presentation:
    """Return an item with properties p1, p2, ... in an order that its readings decide."""
    canonical = canonical_names(item.task)
    names = {new: old for old, new in canonical.names.items()}
    restore = partial(replace_words, word=_NAME, names=names)
    return Presentation(rename_item(item, canonical.names, canonical.records), restore)
