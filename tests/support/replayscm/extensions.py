"""Extended items for tests: drawn problems, and the shared vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import msgspec

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.episode import clean_rows, noisy_rows
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    MechanismClass,
    NoiseKind,
    NoiseModel,
    Prior,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.replayscm.experiments.policies import member_formulas
from calibrant.solvers.replayscm.noise.most_probable import MostProbable, most_probable
from calibrant.solvers.replayscm.noise.posterior import Posterior, cell_marginals, probability
from calibrant.solvers.replayscm.noise.subset_tables import EvidenceRow, target_mask, text_word, word_text
from tests.oracles.shares import clean_behaviours, fixed_part
from tests.support.shared import shared_records

# --- Small extended items with held-out worlds: episodes, passive ones and forecasts, from a seed ---------------------
NUM_HELDOUT = 3


def small_problem(
    seed: int,
    *,
    rate: str | None = None,
    num_hidden: int = 0,
    is_episode: bool = True,
    is_forecast: bool = False,
    num_worlds: int = 6,
    contexts: str = "all",
    item_seed: int | None = None,
) -> Problem:
    """Return an item of 4 observed variables, 2 of them roots; the same arguments give the same item."""
    rng = Random(f"small|{seed}|{rate}|{num_hidden}")
    scm_class = random_class(rng, 4, num_hidden=num_hidden, stated=2, rate=None if rate is None else Fraction(rate))
    member = random_member(rng, scm_class)
    every = range(1 << len(scm_class.roots))
    rates = dict.fromkeys(scm_class.endogenous, Fraction(rate)) if rate else {}
    flips = seed if item_seed is None else item_seed
    heldout = [_constants(rng, scm_class) for _ in range(NUM_HELDOUT)]
    training = [{}, *(_constants(rng, scm_class) for _ in range(num_worlds - 1))]
    record: dict[str, Any] = {
        "id": f"small_{seed}_{rate}_{num_hidden}",
        "kind": "CAL_A_SCM_EPISODE" if is_episode else "CIND_A_SCM",
        "variables": list(scm_class.observed),
        "units": [f"u{row}" for row in every],
        "disclosure": _disclosure(scm_class),
        "training": []
        if is_episode
        else _worlds(
            "train",
            training,
            [
                noisy_rows(scm_class, member, do, every, seed=flips, world=index, rates=rates)
                for index, do in enumerate(training)
            ],
        ),
        "sealed": {
            "gold": {v: render(f) for v, f in member_formulas(scm_class.roots, member).items()},
            "seed": flips,
            "heldout": _worlds("heldout", heldout, [clean_rows(scm_class, member, do, every) for do in heldout]),
        },
        "max_parents": scm_class.max_parents,
        "prior": scm_class.prior.value,
        "hidden": {h: list(parents or ()) for h, parents in scm_class.hidden_parents.items()},
    }
    if rate is not None:
        record["noise"] = rate
    if is_episode:
        record["allowance"] = {"worlds": num_worlds, "rows": len(every), "max_targets": 2, "contexts": contexts}
    if is_forecast:
        texts = ["".join(str(c >> i & 1) for i in range(len(scm_class.roots))) for c in every]
        record |= {"question": "forecast", "asked": [{"constants": do, "contexts": texts} for do in heldout]}
    return problem_from_record(msgspec.convert(record, ProblemRecord))


def _constants(rng: Random, scm_class: MechanismClass) -> dict[str, int]:
    return {v: rng.getrandbits(1) for v in rng.sample(scm_class.observed, rng.randint(1, 2))}


def _disclosure(scm_class: MechanismClass) -> dict[str, Any]:
    if scm_class.disclosure.order is not None:
        return {"type": "ordered", "order": list(scm_class.disclosure.order), "roots": list(scm_class.roots)}
    return {"type": "hidden_order", "roots": list(scm_class.roots)}


def _worlds(
    name: str, interventions: Sequence[Mapping[str, int]], rows: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    return [
        {"id": f"{name}_{index}", "constants": dict(do), "rows": list(texts)}
        for index, (do, texts) in enumerate(zip(interventions, rows, strict=True))
    ]


def gold_submission(problem: Problem) -> dict[str, Any]:
    """Return the answer that states gold."""
    assert problem.sealed.gold is not None
    return {"mechanisms": {v: render(mechanism) for v, mechanism in problem.sealed.gold.mechanisms.items()}}


# --- Random classes with random members and the worlds that they show, for comparisons of fast paths ------------------
def random_class(
    rng: Random,
    num_observed: int,
    *,
    num_roots: int = 2,
    num_hidden: int = 0,
    max_parents: int = 2,
    stated: int | None = 2,
    rate: Fraction | None = None,
) -> MechanismClass:
    """Return a random class.

    stated: number of parents of each hidden variable; None for unknown ones
    """
    observed = tuple(f"X{i + 1}" for i in range(num_observed))
    roots = tuple(sorted(rng.sample(observed, num_roots)))
    order = [*roots, *rng.sample([v for v in observed if v not in roots], num_observed - num_roots)]
    hidden: dict[str, tuple[str, ...] | None] = {}
    for i in range(num_hidden):
        hidden[f"H{i + 1}"] = None if stated is None else tuple(sorted(rng.sample(order[:-1], stated)))
    for name, parents in hidden.items():
        places = [order.index(parent) for parent in parents or ()]
        order.insert(max(places, default=num_roots - 1) + 1, name)
    is_ordered = rng.random() < 0.3
    disclosure = Ordered(tuple(order), roots) if is_ordered else HiddenOrder((*observed, *hidden), roots)
    noise = NOISE_FREE if rate is None else known_rate(rate)
    prior = rng.choice(list(Prior))
    return MechanismClass(observed, roots, disclosure, max_parents, prior, noise, hidden)


def random_member(rng: Random, scm_class: MechanismClass) -> Mechanisms:
    """Return a member whose order is random among those that the class admits."""
    names = [*scm_class.hidden_parents, *scm_class.endogenous]
    while True:
        order = rng.sample(names, len(names))
        if scm_class.disclosure.order is not None:
            order = [v for v in scm_class.disclosure.order if v in names]
        placed, member = set(scm_class.roots), dict[str, LocalFunction]()
        for v in order:
            stated = scm_class.hidden_parents.get(v)
            able = [u for u in scm_class.admissible_parents(v) if u in placed]
            if stated is not None and not placed.issuperset(stated):
                break
            parents = stated or tuple(rng.sample(able, rng.randint(0, min(len(able), scm_class.max_parents))))
            member[v] = LocalFunction(parents, _essential(rng, len(parents)))
            placed.add(v)
        if len(member) == len(names):
            return member


def _essential(rng: Random, num_vars: int) -> TruthTable:
    while True:
        table = TruthTable(num_vars, rng.getrandbits(1 << num_vars))
        if len(support(table)) == num_vars:
            return table


def random_worlds(
    rng: Random, scm_class: MechanismClass, member: Mechanisms, num_worlds: int, num_rows: int, *, seed: int = 7
) -> list[EvidenceWorld]:
    """Worlds of a member with up to three random targets, flips included; the first without any."""
    rate = scm_class.noise.max_rate
    rates = dict.fromkeys(scm_class.endogenous, rate) if rate else {}
    worlds = []
    for number in range(num_worlds):
        targets = rng.sample(scm_class.observed, rng.randint(1, 3) if number else 0)
        do = {v: rng.getrandbits(1) for v in targets}
        contexts = [rng.getrandbits(len(scm_class.roots)) for _ in range(num_rows)]
        rows = noisy_rows(scm_class, member, do, contexts, seed=seed, world=number, rates=rates)
        worlds.append(EvidenceWorld(do, rows))
    return worlds


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
