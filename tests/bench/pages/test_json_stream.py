"""JSON written in pieces is what the standard library writes at once."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.runs.audits import list_pieces, object_pieces

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
LISTS = st.lists(VALUES, max_size=4)


@given(LISTS)
def test_lists(elements: list[object]) -> None:
    assert "".join(list_pieces(iter(elements))) == json.dumps(elements, indent=1)


@given(st.dictionaries(st.text(max_size=3), LISTS, max_size=2), st.dictionaries(st.integers(), VALUES, max_size=2))
def test_objects(lists: dict[str, list[object]], others: dict[int, object]) -> None:
    named = {f"other {name}": value for name, value in others.items()}
    made = "".join(object_pieces({name: iter(elements) for name, elements in lists.items()}, named))
    assert made == json.dumps(lists | named, indent=1)
