"""Generated extended items: deterministic, readable again, gold in the class, hidden variables needed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest

from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import ExtendedStratum, extended_strata
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.replayscm.episode import ScmEpisode, task_class
from calibrant.dsl.replayscm.extensions.scores import SubmittedMap, score_map
from calibrant.dsl.replayscm.pools.files import as_written, read_pool, record_from_problem
from calibrant.solvers.replayscm.noise.posterior import Posterior

STRATA = list(extended_strata())
SMALL = [s for s in STRATA if s.shape.base.num_variables == 6]


def test_strata_are_shapes_by_rates_by_hidden_variables() -> None:
    assert len(STRATA) == 45
    assert len({stratum.name for stratum in STRATA}) == 45


@pytest.mark.parametrize("is_episode", [True, False])
@pytest.mark.parametrize("setting", ["hidden-order", "ordered"])
@pytest.mark.parametrize("stratum", SMALL[::4], ids=lambda s: s.name)
def test_items_are_read_again_and_gold_replays(stratum: ExtendedStratum, setting: str, is_episode: bool) -> None:
    problem = sample_extended(stratum, 5, setting=setting, is_episode=is_episode)
    assert msgspec.json.encode(record_from_problem(problem)) == msgspec.json.encode(
        record_from_problem(sample_extended(stratum, 5, setting=setting, is_episode=is_episode))
    )
    assert as_written(problem) == problem
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    submitted = SubmittedMap(gold.mechanisms, gold.order)
    score = score_map(scm_class, submitted, problem.task.training.worlds, problem.sealed.heldout.worlds)
    assert score.heldout_exact
    if is_episode:
        assert len(ScmEpisode(problem).steps[0].reading["rows"]) == 8  # type: ignore[index]
    else:
        cells = problem.task.training.num_rows * len(scm_class.endogenous)
        assert score.train_match is not None
        assert abs(float(1 - score.train_match) - float(stratum.rate)) < 4 * (0.25 / cells) ** 0.5 + 0.01
        assert (score.train_match == 1) == (stratum.rate == 0)
    for hidden in scm_class.hidden_parents:
        assert sum(hidden in f.parents for f in gold.local_functions.values()) >= 2


def test_gold_comes_from_the_stated_prior() -> None:
    """The number of parents is uniform over 0 to 3 under the prior, up to what acyclicity takes."""
    stratum = next(s for s in SMALL if s.rate == Fraction(1, 20) and not s.num_hidden)
    counts = [0] * 4
    for seed in range(60):
        gold = sample_extended(stratum, seed).sealed.gold
        assert gold is not None
        for function in gold.local_functions.values():
            counts[len(function.parents)] += 1
    problem = sample_extended(stratum, 0)
    expected = _parents_law(Posterior(task_class(problem.task)))
    total = sum(counts)
    for count, share in zip(counts, expected, strict=True):
        assert abs(count - total * share) < 4.5 * (total * share * (1 - share)) ** 0.5


def _parents_law(posterior: Posterior) -> list[float]:
    """Return the mean share of mechanisms with each number of parents, from exact marginals."""
    from calibrant.solvers.acyclic.draws import Marginals

    shares = [0.0] * 4
    (term,) = posterior.terms()
    marginals = Marginals(term.weights)
    for v in term.weights.endogenous:
        weights = marginals.of(v)
        for mask, weight in weights.items():
            shares[mask.bit_count()] += weight / sum(weights.values()) / len(term.weights.endogenous)
    return shares


def test_bundled_episodes_are_what_their_seeds_give() -> None:
    """Labels apart: those take a minute."""
    pool = read_pool(bundled_sample("replayscm_episodes"))
    by_name = {stratum.name: stratum for stratum in STRATA}
    assert len(pool.problems) == 8
    for problem in pool.problems:
        labels = problem.sealed.labels
        drawn = sample_extended(by_name[labels["stratum"]], int(labels["seed"]))
        assert as_written(problem) == problem
        assert {**labels, **drawn.sealed.labels} == labels
        assert replace(problem, sealed=replace(problem.sealed, labels=drawn.sealed.labels)) == as_written(drawn)
