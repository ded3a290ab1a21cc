"""The four kinds of an answer."""

from __future__ import annotations

import pytest

from calibrant.audits.attribution import FourCounts, Kind, attribute_answer, four_counts
from tests.support.counter_game import Numbers


@pytest.mark.parametrize(
    ("space", "answer", "correct", "kind", "fits"),
    [
        (Numbers(3, 3), 3, True, Kind.EARNED, True),
        (Numbers(3, 3), 4, False, Kind.MISSED, False),
        (Numbers(3, 5), 4, True, Kind.LUCKY, True),
        (Numbers(3, 5), 5, False, Kind.SHORT, True),
        (Numbers(3, 5), None, False, Kind.SHORT, None),
        (Numbers(3, 2), 5, False, Kind.SHORT, False),  # nothing of the class fits: nothing is decided
    ],
)
def test_an_answer_is_of_one_of_four_kinds(
    space: Numbers, answer: int | None, correct: bool, kind: Kind, fits: bool | None
) -> None:
    found = attribute_answer(space, answer, correct=correct)
    assert (found.kind, found.fits, found.members, found.in_words) == (kind, fits, space.count, "the numbers")


def test_counts_and_the_ceiling_that_evidence_gives() -> None:
    counts = four_counts([Kind.EARNED, Kind.EARNED, Kind.MISSED, Kind.LUCKY])
    assert counts == FourCounts(2, 1, 1, 0)
    assert (counts.total, counts.ceiling) == (4, 0.75)
    assert four_counts([]).ceiling == 0
