"""JSON written piece by piece, for documents that should not be held in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def list_pieces(elements: Iterable[Any], depth: int = 0) -> Iterator[str]:
    """Yield the pieces of `json.dumps(list(elements), indent=1)`, one for each element.

    depth: of the list
    """
    margin, opening = "\n" + " " * (depth + 1), "["
    for element in elements:
        yield opening + margin + json.dumps(element, indent=1).replace("\n", margin)
        opening = ","
    yield "[]" if opening == "[" else "\n" + " " * depth + "]"


def object_pieces(lists: Mapping[str, Iterable[Any]], fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pieces of an object: first the long lists, then the other fields."""
    opening = "{"
    for name, elements in lists.items():
        yield f"{opening}\n {json.dumps(name)}: "
        yield from list_pieces(elements, 1)
        opening = ","
    for name, value in fields.items():
        yield f"{opening}\n {json.dumps(name)}: " + json.dumps(value, indent=1).replace("\n", "\n ")
        opening = ","
    yield "{}" if opening == "{" else "\n}"
