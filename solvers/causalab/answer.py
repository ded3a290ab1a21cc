"""Answer of a solver of laboratories, and its submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Answer:
    """Mechanism that reproduces all readings, by the reference, and the frequency that it predicts.

    unique: whether no other mechanism of the class `in_words` does; otherwise it is one of several
    """

    mechanism: Mechanism
    frequency: float
    unique: bool
    in_words: str


def submit_hypothesis(episode: LabEpisode, hypothesis: Mapping[str, Any], frequency: float) -> None:
    """Dial the frequency once and submit the hypothesis."""
    episode.act({"reactor": frequency})
    episode.act({"submit": {"hypothesis": dict(hypothesis)}})


def submit_answer(episode: LabEpisode, answer: Answer) -> None:
    submit_hypothesis(episode, state_mechanism(answer.mechanism), answer.frequency)
