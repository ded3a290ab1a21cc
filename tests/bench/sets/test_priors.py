"""Masses under priors: closed forms, sums over all worlds, and frequencies of draws."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, prod, sqrt
from random import Random

import pytest

from calibrant.baselines.replayscm.posterior.choice import certified_member
from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.core.sets import HYPOTHESES, covered_mass
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.dsl.causim.model import assignment_text, run
from calibrant.solvers.replayscm.canonical import canonical_task


def test_draws_cover_what_inclusion_and_exclusion_gives() -> None:
    """1 - sum p (1 - p)^k = 1 - sum_j (-1)^j C(k, j) S_(j+1), S_j the sum of p^j; and all draws listed."""
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    for size in range(1, 5):
        sums = [sum(p**j for p in shares) for j in range(size + 2)]
        closed = 1 - sum((-1) ** j * comb(size, j) * sums[j + 1] for j in range(size + 1))
        listed = sum(
            prod(shares[i] for i in draws) * sum(shares[i] for i in set(draws))
            for draws in product(range(3), repeat=size)
        )
        assert closed == listed
        assert covered_mass([(float(p), float(p)) for p in shares], size) == pytest.approx(float(closed))
    assert covered_mass([(1.0, 1.0)], 3) == 1


def test_answers_of_questions_have_the_probability_of_their_worlds() -> None:
    of = benchmark_of(bundled_sample("causim"))
    checked = 0
    for item in of.items.read_pool(bundled_sample("causim")).items[::3]:
        hypotheses = of.require(HYPOTHESES)(item)
        model, question = item.task.model, item.task.question
        if prod(len(node.support) for node in model.nodes) > 3_000 or hypotheses.prior is None:
            continue
        shares: Counter[str] = Counter()
        for values in product(*(node.support for node in model.nodes)):
            world = {node.noise: value for node, value in zip(model.nodes, values, strict=True)}
            factual, intervened = run(model, world, {}), run(model, world, question.do)
            if all(world[key] == value for key, value in question.fixed.items()) and all(
                factual[key] == value for key, value in question.observed.items()
            ):
                keys = question.required_keys(model)
                answer = {key: intervened[key] if key in model.position else world[key] for key in keys}
                weights = zip(model.nodes, values, strict=True)
                shares[assignment_text(answer)] += prod(n.weights[n.support.index(v)] for n, v in weights)
        total = sum(shares.values())
        assert len(shares) == hypotheses.count
        for text, share in shares.items():
            assert hypotheses.prior.probability(json.loads(text)) == pytest.approx(float(share / total))
        assert sum(weight for weight, _ in hypotheses.prior.terms) == pytest.approx(1)
        checked += 1
    assert checked >= 8


def test_scms_have_the_probability_of_their_draws() -> None:
    """Of draws from the posterior, the most frequent SCMs occur as often as their probability says."""
    of = benchmark_of(bundled_sample("hidden_order"))
    item = of.items.read_pool(bundled_sample("hidden_order")).items[12]
    prior = of.require(HYPOTHESES)(item).prior
    assert prior is not None
    canonical, rng, number = canonical_task(item.task), Random(4), 400
    posterior = Posterior(canonical.task)
    draws = Counter(posterior.sample(rng) for _ in range(number))
    for member, times in draws.most_common(3):
        model = canonical.restore_scm(certified_member(canonical.task, member))
        probability = prior.probability(scm_answer(item.task.kind, model))
        assert abs(times / number - probability) < 5 * sqrt(probability * (1 - probability) / number)
        assert probability == pytest.approx(posterior.probability(member))
    assert prior.draws_mass(1) <= prior.draws_mass(4) <= 4 * prior.draws_mass(1)
