"""What the rates of bench.lab.speed are measured on."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from calibrant.audits.blickets.attribution import attribute_runs
from calibrant.bench.lab.speed.blickets import text_log, toggles
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import Form, Rule, all_rules
from calibrant.dsl.blickets.text_game import text_runs
from tests.support.blickets.items import static_item


@given(st.sampled_from(all_rules(8)), st.integers(0, 30), st.integers(0, 100))
def test_logs_are_read_as_the_games_are_and_keep_their_rule(rule: Rule, num_moves: int, seed: int) -> None:
    (run,) = text_runs([text_log(rule, num_moves, Random(seed))])
    assert run.rule == rule
    assert len(run.steps) == num_moves + 1
    assert not any(step.refused for step in run.steps)
    counted = attribute_runs([run])
    assert (counted.runs, counted.truth_kept) == (1, 1)


def test_toggles_are_never_refused() -> None:
    episode = BlicketEpisode(static_item(Rule(Form.CONJUNCTIVE, 3), 5))
    steps = [episode.act(action) for action in toggles(episode.task.objects, 75, Random(3))]
    assert len(steps) == 75
    assert all(step.reading for step in steps)
