"""Shared vectors of noise, hidden variables and episodes, and exact checks against what they state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, NoiseModel, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.noise.local_weights import EvidenceRow, target_mask, text_word, word_text
from calibrant.solvers.replayscm.noise.most_probable import MostProbable, most_probable
from calibrant.solvers.replayscm.noise.posterior import Posterior, cell_marginals, probability
from tests.oracles.shares import clean_behaviours, fixed_part
from tests.support.shared import shared_records


# --- Classes, evidence and SCMs of the shared vectors of noise, hidden variables and episodes -------------------------
def frontier_vectors(name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a vector file of noise, hidden variables or episodes."""
    return shared_records(f"vectors_{name}_dev.jsonl", part="frontier")


def class_of(raw: Mapping[str, Any], noise: Any) -> MechanismClass:
    """Return the class of a vector."""
    observed, hidden = tuple(raw["variables"]), raw["hidden"]
    variables, roots = (*observed, *hidden), tuple(raw["roots"])
    disclosure = Ordered(tuple(raw["order"]), roots) if raw["order"] else HiddenOrder(variables, roots)
    return MechanismClass(
        observed,
        roots,
        disclosure,
        raw["max_parents"],
        Prior(raw["prior"]),
        noise_of(noise),
        {name: None if parents is None else tuple(parents) for name, parents in hidden.items()},
    )


def noise_of(noise: Any) -> NoiseModel:
    if isinstance(noise, str):
        return known_rate(Fraction(noise))
    pairs = noise["each"] if isinstance(noise, dict) else noise
    kind = NoiseKind.EACH if isinstance(noise, dict) else NoiseKind.SHARED
    return NoiseModel(kind, tuple((Fraction(rate), Fraction(prior)) for rate, prior in pairs))


def evidence_of(worlds: list[dict[str, Any]]) -> tuple[EvidenceWorld, ...]:
    return tuple(EvidenceWorld(world["do"], tuple(world["rows"])) for world in worlds)


def mechanisms_of(raw: Mapping[str, Any]) -> dict[str, LocalFunction]:
    """Functions written as parents and a table whose character r is the value in row r."""
    return {
        v: LocalFunction(
            tuple(f["parents"]), TruthTable(len(f["parents"]), sum(int(b) << r for r, b in enumerate(f["table"])))
        )
        for v, f in raw.items()
    }


def record_of(line: Mapping[str, Any], **changes: Any) -> ProblemRecord:
    """Return the native record of an episode vector."""
    item = line["item"]
    raw = item["class"]
    disclosure: Any = {"type": "hidden_order", "roots": raw["roots"]}
    if raw["order"]:
        disclosure = {"type": "ordered", "order": raw["order"], "roots": raw["roots"]}
    gold = {v: _formula(f["parents"], f["table"], raw["roots"]) for v, f in item["gold"].items()}
    record = {
        "id": line["id"],
        "kind": "CAL_A_SCM_EPISODE",
        "variables": raw["variables"],
        "units": [],
        "disclosure": disclosure,
        "training": [],
        "sealed": {"gold": gold, "seed": item["seed"]},
        "max_parents": raw["max_parents"],
        "prior": raw["prior"],
        "hidden": raw["hidden"],
        "allowance": item["allowance"],
    }
    if item["noise"] != "0":
        record["noise"] = item["noise"]
    return msgspec.convert(record | changes, ProblemRecord)


def _formula(parents: list[str], table: str, roots: list[str]) -> str:
    if not parents:
        return f"(iff {roots[0]} {roots[0]})" if table == "1" else f"(xor {roots[0]} {roots[0]})"
    bits = TruthTable(len(parents), sum(int(b) << r for r, b in enumerate(table)))
    return render(formula_for(bits, parents, STANDARD_OPERATORS))


def problem_of(line: Mapping[str, Any], **changes: Any) -> Problem:
    return problem_from_record(record_of(line, **changes))


# --- Checks of a posterior against the expectations of a shared vector, all exact -------------------------------------
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
