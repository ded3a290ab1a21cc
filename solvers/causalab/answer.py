"""What a solver of laboratories answers, and how it is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Answer:
    """A mechanism that gives all that was read, by the reference, and the frequency that it predicts.

    unique: whether nothing else of the class `in_words` does; otherwise it is one of several
    """

    mechanism: Mechanism
    frequency: float
    unique: bool
    in_words: str


def submit(episode: LabEpisode, hypothesis: Mapping[str, Any], frequency: float) -> None:
    """Dial the frequency once and hand in the hypothesis."""
    episode.act({"reactor": frequency})
    episode.act({"submit": {"hypothesis": dict(hypothesis)}})


def submit_answer(episode: LabEpisode, answer: Answer) -> None:
    submit(episode, state_mechanism(answer.mechanism), answer.frequency)
