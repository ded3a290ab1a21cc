"""Blickets as a benchmark: kinds of attribution, and text episodes with numbered moves."""

from __future__ import annotations

from calibrant.audits.attribution import Kind
from calibrant.bench.blickets.agents import text_episode
from calibrant.bench.core.attribution import KINDS
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.records import read_pool


def test_tables_know_the_kinds_of_attribution() -> None:
    assert tuple(Kind) == KINDS


# --- Text episodes with numbered moves, and the share of replies without an action ------------------------------------
def item() -> BlicketItem:
    return next(one for one in read_pool(bundled_sample("blickets")).items if len(one.task.objects) == 5)


def test_a_number_is_the_move_that_is_listed_under_it() -> None:
    episode = text_episode(item(), actions="numbered")
    opening = episode.reset()[-1]["content"]
    first, second = item().task.objects[:2]
    assert f"1. place {first}\n2. place {second}" in opening
    reaction = episode.reply("I think.\nACTION: 2")
    assert reaction.info["steps"][0]["action"] == {"place": second}
    assert f"1. place {first}\n2. remove {second}" in reaction.text
    assert episode.reply("**ACTION:** 2").info["steps"][0]["action"] == {"remove": second}
    assert episode.reply(f"ACTION: place {first}").info["steps"][0]["action"] == {"place": first}


def test_a_number_without_a_move_is_no_action_and_counts_as_unread() -> None:
    episode = text_episode(item(), actions="numbered")
    episode.reset()
    for reply in ("ACTION: 0", "ACTION: 6", "nothing"):
        reaction = episode.reply(reply)
        assert reaction.info["steps"] == []
        assert "Not understood" in reaction.text
    names = " ".join(item().task.objects[:2])
    score = episode.reply(f"ACTION: check conjunctive {names}").info["score"]
    assert score["unread"] == 0.75


def test_without_the_option_numbers_are_no_actions() -> None:
    episode = text_episode(item())
    assert "1. place" not in episode.reset()[-1]["content"]
    assert episode.reply("ACTION: 1").info["steps"] == []
