"""Stores: what is met again stays, what is not makes room, and never more is kept than was said."""

from __future__ import annotations

from calibrant.dsl.memory import CacheBudget, TextCache


def recalled(budget: CacheBudget, shelf: TextCache[str], text: str) -> str | None:
    return shelf.made.get(text) or budget.again(shelf, text)


def test_what_is_met_again_stays_and_the_rest_makes_room() -> None:
    budget = CacheBudget(3, longest=10)
    one, other = budget.shelf(), budget.shelf()
    for number in range(50):
        budget.store(one if number % 2 else other, f"text {number}", str(number))
        if number:
            assert recalled(budget, one, "text 1") == "1"
        assert sum(len(shelf.made) + len(shelf.older) for shelf in (one, other)) <= 6
    assert recalled(budget, one, "text 3") is None
    assert recalled(budget, one, "text 49") == "49"


def test_long_texts_are_not_kept_and_clearing_leaves_nothing() -> None:
    budget = CacheBudget(2, longest=3)
    shelf: TextCache[str] = budget.shelf()
    budget.store(shelf, "long", "a")
    assert not shelf.made
    for text in ("a", "b", "c"):
        budget.store(shelf, text, text)
    assert shelf.older
    assert shelf.made
    budget.clear()
    assert [recalled(budget, shelf, text) for text in "abc"] == [None] * 3
