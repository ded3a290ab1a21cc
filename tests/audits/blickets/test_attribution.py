"""Attribution of episodes: the four kinds, from transcripts made to be of that kind."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from calibrant.audits.attribution import DECIDED_AT, Kind
from calibrant.audits.blickets.attribution import attribute_episode
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import Form, Rule
from calibrant.dsl.episode import TranscriptError
from calibrant.solvers.blickets.exact import class_of, exact_learner, space_after
from calibrant.solvers.blickets.learner import conclude_episode
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.blickets import opened, static_item

ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b011), 3)
DECIDING = [{"place": "A"}, {"place": "B"}, {"remove": "A"}]
RIGHT = {"check": {"rule": "conjunctive", "blickets": ["B", "A"]}}
WRONG = {"check": {"rule": "disjunctive", "blickets": ["A", "B"]}}


@pytest.mark.parametrize(
    ("moves", "check", "kind", "decided_at", "fits"),
    [
        (DECIDING, RIGHT, Kind.EARNED, 3, True),
        (DECIDING, WRONG, Kind.MISSED, 3, False),
        (DECIDING[:2], RIGHT, Kind.LUCKY, None, True),
        (DECIDING[:2], WRONG, Kind.SHORT, None, False),
        ([*DECIDING, {"place": "C"}, {"place": "C"}], RIGHT, Kind.EARNED, 3, True),
    ],
)
def test_an_answer_is_of_the_kind_that_its_readings_say(
    moves: list[dict[str, str]], check: dict[str, object], kind: Kind, decided_at: int | None, fits: bool
) -> None:
    found = attribute_episode(ITEM, opened(ITEM, [*moves, check]).steps)
    assert (found.attribution.kind, found.attribution.fits) == (kind, fits)
    assert (found.decided_at, found.submitted_at) == (decided_at, len(moves))


def test_without_an_answer_nothing_fits() -> None:
    found = attribute_episode(ITEM, opened(ITEM, DECIDING).steps)
    assert (found.attribution.kind, found.attribution.fits, found.submitted_at) == (Kind.MISSED, None, None)


@pytest.mark.parametrize("suite", ["conjunctive", "disjunctive", "graded", "order", "order-3-of-4"])
def test_what_an_exact_learner_answers_is_earned(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 2), 10):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        found = attribute_episode(item, episode.steps)
        assert found.attribution.kind is Kind.EARNED
        assert found.decided_at == found.submitted_at


@pytest.mark.parametrize("suite", ["stochastic", "noisy-switch"])
def test_an_unreliable_detector_is_decided_by_a_posterior(suite: str) -> None:
    kinds = Counter[Kind]()
    for item in islice(sample_items(SUITES[suite], 2), 8):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        found = attribute_episode(item, episode.steps)
        posterior = max(space_after(class_of(item), item.task, episode.steps).posterior().values())
        assert found.attribution.posterior == posterior
        assert found.attribution.decided == (posterior >= DECIDED_AT)
        assert (found.decided_at is not None) or not found.attribution.decided
        kinds[found.attribution.kind] += 1
    assert kinds[Kind.EARNED] > 0


def test_a_reliable_detector_has_no_posterior() -> None:
    assert attribute_episode(ITEM, opened(ITEM, [*DECIDING, RIGHT]).steps).attribution.posterior is None


def test_the_class_decides_what_is_decided_and_is_named() -> None:
    """The static learner stops at a rule that is unique in its class, which the class with switches leaves open."""
    (item,) = islice(sample_items(SUITES["easy-9"], 2), 1)
    episode = BlicketEpisode(item)
    static = exact_learner(ITEM)
    assert isinstance(static, Found)
    conclude_episode(episode, static.value)
    knowing = attribute_episode(item, episode.steps).attribution
    unaware = attribute_episode(item, episode.steps, StaticSpace.full(5)).attribution
    assert (knowing.kind, unaware.kind) == (Kind.LUCKY, Kind.EARNED)
    assert "one rule throughout" in unaware.in_words
    assert "the second in force" in knowing.in_words


def test_a_transcript_that_lies_is_not_attributed() -> None:
    with pytest.raises(TranscriptError, match="step 1"):
        attribute_episode(ITEM, opened(static_item(Rule(Form.CONJUNCTIVE, 0b111), 3), DECIDING).steps)
