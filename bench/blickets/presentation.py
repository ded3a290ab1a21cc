"""Canonical presentation of detectors: objects in an order that neither their names nor the item's order decides.

Before the first move nothing tells objects apart, so a row's first choice is arbitrary, and what it meets depends on
where the blickets stand. The environment, which knows them, puts objects in the order of their roles and shuffles that
by a seed from the roles alone: all spellings of a detector are shown in one order, which is independent of the roles.
"""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256
from random import Random

from calibrant.bench.protocols.presentation import Presentation, replace_words
from calibrant.dsl.blickets.item import BlicketItem, object_role, reorder_objects

_NAME = re.compile(r"\bO[0-9]+\b")


def present(item: BlicketItem) -> Presentation:
    """Return an item with objects O1, O2, ... in the order of its presentation."""
    num_objects = item.task.n
    names = [f"O{number}" for number in range(1, num_objects + 1)]
    by_role = sorted(range(num_objects), key=lambda index: object_role(item, index))
    canonical = reorder_objects(item, by_role, names)
    content = repr((canonical.condition, canonical.task, canonical.sealed.mechanisms, canonical.sealed.switches))
    # an empty start is a reading that every rule predicts: it may not move the order
    content += repr((canonical.sealed.noise_seed, canonical.sealed.draws, canonical.sealed.start_on or None))
    shuffled = Random(sha256(content.encode()).hexdigest()).sample(range(num_objects), num_objects)
    order = [by_role[place] for place in shuffled]
    objects = {name: item.task.objects[index] for name, index in zip(names, order, strict=True)}
    restore = partial(replace_words, word=_NAME, names=objects)
    return Presentation(reorder_objects(item, order, names), restore)
