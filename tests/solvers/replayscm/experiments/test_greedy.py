"""Greedy choices at real size: estimates against exact values, and whole episodes against the clairvoyant minimum."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from calibrant.dsl.replayscm.episode import ScmEpisode, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.replayscm.experiments import greedy
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.shares import expected_bits, request_rows
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of


@pytest.mark.parametrize("kind", ["plain", "hidden", "ordered"])
def test_greedy_reaches_the_floor(kind: str) -> None:
    lines = [x for x in frontier_vectors("episode") if x["id"].rpartition("-")[2].startswith(kind) and "floor" in x]
    for line in lines[:3]:
        problem = problem_of(line)
        scm_class = task_class(problem.task)
        chooser = WorldChooser(problem.task, scm_class, problem.id)
        allowance = {**line["item"]["allowance"], "worlds": 50}
        long = problem_of({**line, "item": {**line["item"], "allowance": allowance}})
        episode = ScmEpisode(long)
        worlds = [EvidenceWorld({}, tuple(line["steps"][0]["rows"]))]
        while (choice := chooser.choose(worlds)) is not None:
            do = chooser.candidates[choice.place]
            reading = episode.act({"do": do}).reading
            assert reading is not None
            worlds.append(EvidenceWorld(do, tuple(reading["rows"])))
        assert Posterior(scm_class).condition(*worlds).num_members == line["floor"]
        assert len(worlds) - 1 >= line["clairvoyant"]


def test_bits_are_those_of_listing_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,500 drawn readings the standard error is below 0.04 bits."""
    monkeypatch.setattr(greedy, "NUM_NOISY_DRAWS", 1_500)
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    problem = problem_of(line)
    scm_class = task_class(problem.task)
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
    contexts = [range(1 << len(scm_class.roots))]
    estimates = chooser.expected_bits([start], contexts, Random(3))
    posterior = Posterior(scm_class).condition(start)
    exact = [expected_bits(posterior, request_rows(scm_class, do, contexts[0])) for do in chooser.candidates]
    assert np.abs(estimates - exact).max() < 0.2


def test_sampled_contexts_and_chosen_ones_give_choices() -> None:
    for kind in ("drawn", "chosen", "noisedrawn"):
        line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}0"))
        problem = problem_of(line)
        chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
        start = EvidenceWorld({}, tuple(line["steps"][0]["rows"]))
        first, second = (chooser.choose([start]) for _ in range(2))
        assert first == second is not None
        rows = line["item"]["allowance"]["rows"]
        assert all(len(variant) == rows for variant in chooser.contexts(Random(0)))


def test_compared_candidates_of_large_noisy_items() -> None:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    names = [f"X{i}" for i in range(1, 9)]
    raw = {**line["item"]["class"], "variables": names, "roots": ["X1"], "parents_weights": []}
    item = {**line["item"], "class": raw, "gold": {}, "allowance": {**line["item"]["allowance"], "max_targets": 3}}
    gold = {name: {"parents": [], "table": "0"} for name in names[1:]}
    problem = problem_of({**line, "item": {**item, "gold": gold}})
    chooser = WorldChooser(problem.task, task_class(problem.task), problem.id)
    assert len(chooser.places) == 1 + 16 + greedy.NUM_OTHER_CANDIDATES
    assert chooser.places == sorted(chooser.places)
    assert chooser.scm_class.noise.max_rate > Fraction(0)
