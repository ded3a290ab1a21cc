"""Checks of a posterior against the expectations of a shared vector, all exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from calibrant.dsl.replayscm.extensions.extension import Prior
from calibrant.solvers.replayscm.noise.local_weights import EvidenceRow, target_mask, text_word, word_text
from calibrant.solvers.replayscm.noise.most_probable import MostProbable, most_probable
from calibrant.solvers.replayscm.noise.posterior import Posterior, cell_marginals, probability
from tests.oracles.shares import clean_behaviours, fixed_part
from tests.support.replayscm.extensions.vectors import class_of, evidence_of


def vector_posterior(line: Mapping[str, Any]) -> Posterior:
    scm_class = class_of(line["class"], line["noise"])
    return Posterior(scm_class).condition(*evidence_of(line["worlds"]))


def check_members(line: Mapping[str, Any]) -> None:
    """Class size, mass, edges, rates, best SCM and what hidden variables do."""
    posterior, expect = vector_posterior(line), line["expect"]
    assert Posterior(posterior.scm_class).num_members == expect["members"]
    assert posterior.mass == Fraction(expect["mass"])
    if "edges" in expect:
        edges = {f"{u}>{v}": share for (u, v), share in posterior.edges.items()}
        assert edges == {edge: Fraction(share) for edge, share in expect["edges"].items()}
    if "noise_posterior" in expect:
        assert posterior.noise_posterior == tuple(map(Fraction, expect["noise_posterior"]))
    if "best" in expect:
        best = MostProbable(Fraction(expect["best"]["share"]), expect["best"]["number"], expect["least_mismatches"])
        assert most_probable(posterior) == best
    if "fitting" in expect:
        hidden = posterior.scm_class.hidden_parents
        assert posterior.num_members == expect["fitting"]
        assert Fraction(posterior.num_members, 2 ** len(hidden)) == Fraction(expect["up_to_negation"])
        uniform = replace(posterior, scm_class=replace(posterior.scm_class, prior=Prior.UNIFORM))
        needed = {h: 1 - uniform.without_children(h) for h in hidden}
        assert needed == {h: Fraction(share) for h, share in expect["needed"].items()}


def check_query(line: Mapping[str, Any]) -> None:
    """Predictions of the rows of the line's query."""
    posterior, expect, query = vector_posterior(line), line["expect"]["query"], line["query"]
    scm_class = posterior.scm_class
    clamped = target_mask(scm_class, query["do"])
    rows = [EvidenceRow(text_word(row), clamped) for row in query["rows"]]
    fixed = [(fixed_part(posterior, row.word, clamped), clamped) for row in rows]
    assert [probability(posterior, [row]) for row in rows] == [Fraction(share) for share in expect["joint"]]
    assert probability(posterior, rows) == Fraction(expect["all"])
    marginals = [cell_marginals(posterior, word, clamped) for word, _ in fixed]
    assert [{scm_class.variables[i]: share for i, share in row.items()} for row in marginals] == [
        {v: Fraction(share) for v, share in row.items()} for row in expect["ones"]
    ]
    behaviours = clean_behaviours(posterior, fixed)
    tops = [words for words, share in behaviours.shares.items() if share == behaviours.top_share]
    texts = min([word_text(word, len(scm_class.observed)) for word in words] for words in tops)
    assert len(behaviours.shares) == expect["clean"]["behaviours"]
    assert behaviours.top_share == Fraction(expect["clean"]["top_share"])
    assert behaviours.is_decided == expect["clean"]["decided"]
    assert texts == expect["clean"]["top"]
