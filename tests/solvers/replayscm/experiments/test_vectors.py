"""Episodes against the shared vectors: masses after every step, shares, bits, cells, greedy and optimal trees."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from calibrant.dsl.replayscm.episode import candidate_worlds, episode_contexts, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.experiments.listed import list_candidates
from calibrant.solvers.replayscm.experiments.shares import (
    best_by_bits,
    best_by_share,
    expected_bits,
    expected_share,
    request_rows,
)
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.vectors import frontier_vectors, problem_of

EVERY = 6  # candidate worlds of every sixth line; all were compared when this was written


def test_masses_after_every_step() -> None:
    for line in frontier_vectors("episode"):
        problem = problem_of(line)
        assert problem.sealed.gold is not None
        posterior = Posterior(task_class(problem.task))
        for step in line["steps"]:
            if step["rows"] is None:
                continue
            before = posterior.mass
            posterior = posterior.condition(EvidenceWorld(step["action"].get("do", {}), tuple(step["rows"])))
            assert posterior.mass == Fraction(step["mass"])
            assert posterior.num_members == step["members"]
            share = posterior.likelihood(problem.sealed.gold.local_functions) / posterior.mass
            assert share == Fraction(step["gold_share"])
            if "predicted" in step:
                assert posterior.mass / before == Fraction(step["predicted"])


def test_noise_free_candidates() -> None:
    lines = [line for line in frontier_vectors("episode") if "candidates" in line and line["item"]["noise"] == "0"]
    for line in lines[::EVERY]:
        check_listed(line, problem_of(line))
    assert len(lines) == 104


def test_noisy_candidates() -> None:
    lines = [line for line in frontier_vectors("episode") if line["item"]["noise"] != "0"]
    for line in lines[::EVERY]:
        problem = problem_of(line)
        start, worlds = after_start(line, problem)
        rows = [request_rows(start.scm_class, do, contexts) for do, contexts in worlds]
        shares = [expected_share(start, world) for world in rows]
        bits = [expected_bits(start, world) for world in rows]
        assert shares == [Fraction(share) for share in line["shares_after_start"]]
        assert max(abs(a - float(b)) for a, b in zip(bits, line["bits_after_start"], strict=True)) < 1e-8
        assert best_by_bits(bits) == line["greedy_first"]
    assert len(lines) == 34


def after_start(
    line: Mapping[str, Any], problem: Problem
) -> tuple[Posterior, list[tuple[Mapping[str, int], tuple[int, ...]]]]:
    """Return the posterior after the start and the candidates of world 1."""
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    start = Posterior(task_class(problem.task)).condition(EvidenceWorld({}, tuple(line["steps"][0]["rows"])))
    contexts = episode_contexts(extension, 1, problem.sealed.seed)
    return start, [(do, contexts) for do in candidate_worlds(extension.variables, extension.allowance.max_targets)]


def check_listed(line: Mapping[str, Any], problem: Problem) -> None:
    listed = list_candidates(*after_start(line, problem))
    shares = [listed.share(listed.every_cell, place) for place in range(len(line["candidates"]))]
    assert shares == [Fraction(share) for share in line["shares_after_start"]]
    assert best_by_share(shares) == listed.greedy_choice(listed.every_cell) == line["greedy_first"]
    if "clairvoyant" not in line:
        return
    assert problem.sealed.gold is not None
    gold = dict(problem.sealed.gold.local_functions)
    cell = next(cell for member, cell in zip(listed.members, listed.cell_of, strict=True) if dict(member) == gold)
    assert listed.num_cells == line["cells_after_start"]
    assert listed.cell_sizes()[cell] == line["floor"]
    assert len(listed.clairvoyant(cell)) == line["clairvoyant"]
    assert listed.greedy_path(cell) == line["greedy_against_gold"]
    assert listed.greedy_mean() == Fraction(line["greedy_mean"])
    if "optimal_mean" in line:
        assert listed.optimal_mean() == Fraction(line["optimal_mean"])
