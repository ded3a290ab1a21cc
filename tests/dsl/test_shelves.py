"""Stores: what is met again stays, what is not makes room, and never more is kept than was said."""

from __future__ import annotations

from calibrant.dsl.shelves import Shelf, Store


def recalled(store: Store, shelf: Shelf[str], text: str) -> str | None:
    return shelf.made.get(text) or store.again(shelf, text)


def test_what_is_met_again_stays_and_the_rest_makes_room() -> None:
    store = Store(3, longest=10)
    one, other = store.shelf(), store.shelf()
    for number in range(50):
        store.put(one if number % 2 else other, f"text {number}", str(number))
        if number:
            assert recalled(store, one, "text 1") == "1"
        assert sum(len(shelf.made) + len(shelf.older) for shelf in (one, other)) <= 6
    assert recalled(store, one, "text 3") is None
    assert recalled(store, one, "text 49") == "49"


def test_long_texts_are_not_kept_and_clearing_leaves_nothing() -> None:
    store = Store(2, longest=3)
    shelf: Shelf[str] = store.shelf()
    store.put(shelf, "long", "a")
    assert not shelf.made
    for text in ("a", "b", "c"):
        store.put(shelf, text, text)
    assert shelf.older
    assert shelf.made
    store.clear()
    assert [recalled(store, shelf, text) for text in "abc"] == [None] * 3
