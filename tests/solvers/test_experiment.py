"""The best experiment against its definition, and the loop that carries experiments out."""

from __future__ import annotations

from fractions import Fraction

import pytest

from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.space import Move, RatedExperiment, Space, best_experiment, play
from tests.support.counter_game import NumberGame, Numbers

NumberSpace = Space[int, int, bool, int]


def test_the_experiment_that_halves_the_space_is_best_and_the_first_of_equals_is_taken() -> None:
    assert best_experiment(Numbers(0, 7), range(9), lambda x: 1) == Found(RatedExperiment(4, 1, Fraction(1, 2)))
    # 3 of 7 and 4 of 7 leave the same share; 3 is first, unless the candidates come the other way round
    assert best_experiment(Numbers(0, 6), range(9), lambda x: 1) == Found(RatedExperiment(3, 1, Fraction(25, 49)))
    assert best_experiment(Numbers(0, 6), range(9, 0, -1), lambda x: 1) == Found(
        RatedExperiment(4, 1, Fraction(25, 49))
    )


def test_shares_are_compared_per_cost() -> None:
    """1/2 for a cost of 2 is as good as 0.7071 a unit: worse than 5/8 for 1, better than 25/32 for 1."""
    halving = {4: 2}
    assert best_experiment(Numbers(0, 7), [4, 2], lambda x: halving.get(x, 1)) == Found(
        RatedExperiment(2, 1, Fraction(5, 8))
    )
    assert best_experiment(Numbers(0, 7), [4, 1], lambda x: halving.get(x, 1)) == Found(
        RatedExperiment(4, 2, Fraction(1, 2))
    )


def test_no_experiment_is_best_where_none_splits() -> None:
    found = best_experiment(Numbers(3, 3), range(9), lambda x: 1)
    assert isinstance(found, Impossible)
    assert "the numbers" in found.exhausted
    with pytest.raises(ValueError, match="costs are 1 or more"):
        best_experiment(Numbers(0, 3), [2], lambda x: 0)


def _halving(space: NumberSpace) -> Move[int]:
    found = best_experiment(space, range(100), lambda x: 1)
    assert isinstance(found, Found)
    return Move({"ask": found.value.experiment}, found.value.experiment)


def test_play_acts_until_told_to_stop() -> None:
    for number in range(64):
        game = NumberGame(number, allowance=50)
        space = play(game, Numbers(0, 63), _halving, lambda space: space.count == 1)
        assert space.verdicts() == {number: 1}
        assert len(game.steps) == 6


def test_play_ends_with_the_allowance_and_does_not_hide_a_refusal() -> None:
    game = NumberGame(5, allowance=2)
    assert play(game, Numbers(0, 63), _halving, lambda space: False).count == 16
    with pytest.raises(ValueError, match="was refused: no verb"):
        play(NumberGame(5, 9), Numbers(0, 63), lambda space: Move({"fly": 1}, 1), lambda space: False)
