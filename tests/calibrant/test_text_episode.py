"""`text_episode`: the options of each benchmark reach the conversation, and what has no episode is refused."""

from __future__ import annotations

from typing import Any

import pytest

import calibrant
from calibrant.bench.core.registry import bundled_pool

DETECTOR = calibrant.generate(1, of="blickets", suite="conjunctive")
LAB = calibrant.generate(1, of="causalab", suite="4nodes")
LOOSE: Any = calibrant.text_episode  # without the types of its options


def opening(item: Any, **options: Any) -> str:
    episode: calibrant.TextEpisode = LOOSE(item, **options)
    return "\n".join(message["content"] for message in episode.reset())


@pytest.mark.parametrize(
    ("item", "options", "words"),
    [
        (DETECTOR, {"prompting": "cg"}, "Transitions open to you"),
        (DETECTOR, {"prompting": "cg+db"}, "Transitions open to you"),
        (DETECTOR, {"actions": "numbered"}, "1. place A"),
        (LAB, {"aid": "members"}, "289"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_option_changes_what_the_agent_starts_from(item: Any, options: dict[str, str], words: str) -> None:
    assert words in opening(item, **options)
    assert words not in opening(item)


def test_a_laboratory_repeats_the_notebook_and_returns_a_broken_schema() -> None:
    reply = '{"set": "ph", "value": 20, "hypothesis": {"edges": [{"from": "mass", "to": "ph"}]}}'
    texts = {}
    ways: dict[str, dict[str, Any]] = {"plain": {}, "carry": {"carry": True}, "paper": {"schema": "paper"}}
    for name, options in ways.items():
        episode = LOOSE(LAB, **options)
        episode.reset()
        texts[name] = episode.reply(reply).text
    assert "Your previous state" in texts["carry"]
    assert "The hypothesis was not taken" in texts["paper"]
    assert "Settings left: 11." in texts["plain"]


@pytest.mark.parametrize(
    ("item", "options", "reason"),
    [
        (calibrant.generate(1, of="causim", suite="chain"), {}, "`text_episode` does not support CauSim"),
        (next(iter(calibrant.load_pool(bundled_pool("ordered")))), {}, "no episode: it is answered at once"),
        (DETECTOR, {"prompting": "loud"}, "known: base, cg, cg\\+db"),
        (DETECTOR, {"aid": "members"}, "text_episode has no option 'aid'; its options: prompting, actions"),
        (3, {}, "is no item"),
    ],
    ids=["causim", "answered at once", "value", "option", "no item"],
)
def test_what_has_no_episode_and_wrong_options_are_refused(item: Any, options: dict[str, str], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason):
        LOOSE(item, **options)
