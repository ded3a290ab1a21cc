"""What readings of a laboratory leave, against mechanisms enumerated and run by the reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from calibrant.audits.causalab.why import explain
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.solvers.causalab.evidence import evidence_of
from tests.support.causalab.enumerated import members_by_reference
from tests.support.causalab.laboratories import made_item

SEEDS = tuple(range(5))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_settings", [0, 1])
def test_edges_and_settings_are_those_of_every_mechanism_that_fits(seed: int, num_settings: int) -> None:
    item = made_item("3nodes", seed)
    episode = LabEpisode(item)
    for name in item.task.settable[:num_settings]:
        episode.act({"set": name, "value": 0})
    why = explain(item, episode.steps)
    members = members_by_reference(evidence_of(item.task, episode.steps), bounded=True)
    assert int(why.count.lower) == len(members)
    edges = Counter(edge for member in members for edge in _edges(member))
    assert {(one.cause, one.effect): int(one.number) for one in why.edges} == dict(edges)
    assert (why.state == "decided") == (len(why.frequencies) == 1 and set(edges.values()) == {len(members)})
    for one in why.experiments:
        assert sum(int(outcome.remaining) for outcome in one.outcomes) == len(members)
    for name in item.task.settable:  # what a setting promises is what it leaves once it is done
        after = LabEpisode(item)
        for step in episode.steps:
            after.act(step.action)
        promised = next((one for one in why.experiments if one.in_words.startswith(f"set {name} to ")), None)
        if promised is None:
            continue
        step = after.act({"set": name, "value": float(promised.in_words.rpartition(" ")[2])})
        left = len(members_by_reference(evidence_of(item.task, after.steps), bounded=True))
        assert left in [int(outcome.remaining) for outcome in promised.outcomes]
        assert not step.refused


def _edges(member: tuple[Any, ...]) -> set[tuple[str, str]]:
    """Return the edges of a mechanism, from the key that the support module gives it."""
    return {(term[1], term[0]) for term in member[1]}
