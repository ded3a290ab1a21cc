"""Findings about items, files and printed rows, with the figures of the released data; certificates and forgeries."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.audits.causalab.items import (
    ambiguous_finding,
    find_truth,
    generate_labelled,
    item_findings,
    labels,
    mattering_edges,
    number_verdicts,
    vacuous_finding,
)
from calibrant.audits.causalab.suites import (
    PrintedRow,
    abstention_finding,
    class_size_finding,
    denominator_findings,
    mean_class_sizes,
    mixture_finding,
    suite_findings,
    unwinnable_chance,
)
from calibrant.audits.causalab.verify import (
    AMBIGUOUS,
    CANNOT_MATTER,
    FREQUENCY_DECIDED,
    GRAPH_DECIDED,
    NOT_A_MEAN,
    UNWINNABLE,
    VERIFIERS,
    item_evidence,
)
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, certify, verify
from calibrant.dsl.causalab.configs import Config, View, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, Plan, generate_items, with_labels
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.records import item_of_record, record_of_item
from calibrant.dsl.causalab.reference import SettingMeaning, bases_of, values
from calibrant.dsl.causalab.score import imec_by_definition
from calibrant.solvers.causalab.evidence import EXACT, Evidence, evidence_of, misfit, predict_frequency
from calibrant.solvers.causalab.experiments import solve_by_experiments
from calibrant.solvers.causalab.space import WeightedDags
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.causalab import (
    LINEAR,
    SUITES,
    item_with_base,
    items,
    made_item,
    released_suite,
    weighted_graphs,
)
from tests.support.effort import examples
from tests.support.shared import shared_json


def by_kind(item: LabItem) -> dict[str, Finding]:
    return {finding.kind: finding for finding in item_findings(item)}


def certificate_of(finding: Finding) -> Certificate:
    assert finding.certificate is not None
    return finding.certificate


def holds(item: LabItem, certificate: Certificate) -> bool:
    return verify(certificate, item_evidence(item), VERIFIERS).holds


@settings(max_examples=examples(60), deadline=None)
@given(items(tuple(s for s in SUITES if s[0] in "345")))
def test_every_certificate_holds_and_survives_json(item: LabItem) -> None:
    for finding in item_findings(item):
        text = msgspec.json.encode(certificate_of(finding))
        assert holds(item, msgspec.json.decode(text, type=Certificate)), finding
    assert item_evidence(with_labels(replace(item, id="other"), {"edges": 3})) == item_evidence(item)


@pytest.mark.parametrize("suite", ["6nodes", "6nodes_freqparent", "7nodes", "6nodes_golden"])
def test_certificates_of_large_items_hold(suite: str) -> None:
    (item,) = generate_items(PLANS[suite], 3, 1)
    found = item_findings(item)
    assert {finding.kind for finding in found} >= {"vacuous", "trivial", "ambiguous"}
    assert all(holds(item, certificate_of(finding)) for finding in found)


def unwinnable_item() -> LabItem:
    items = (item_of_config(made, seed) for seed in range(3) for made in released_suite("6nodes"))
    return next(item for item in items if item.sealed.target >= 10_005)


def test_targets_beyond_the_dial_are_unwinnable() -> None:
    item = unwinnable_item()
    finding = by_kind(item)["unwinnable"]
    assert finding.verdict is ClaimStatus.PROVED
    assert holds(item, certificate_of(finding))


def changed(certificate: Certificate, **data: Any) -> Certificate:
    return msgspec.structs.replace(certificate, data={**certificate.data, **data})


def test_forged_certificates_do_not_hold() -> None:
    item = item_of_config(released_suite("5nodes")[3], 0)
    found = by_kind(item)
    edges = sorted(item.sealed.mechanism.edges)
    decided = certificate_of(found["ambiguous"])
    for forged in [
        changed(certificate_of(found["trivial"]), frequency=item.sealed.target + 1),
        changed(certificate_of(found["vacuous"]), edges=[list(e) for e in edges]),
        changed(certificate_of(found["vacuous"]), edges=[["a", "b"]]),
        changed(decided, edges=[list(e) for e in edges[1:]]),
        changed(decided, settings=[]),
        changed(decided, settings=[["nothing", 3.0]]),
        msgspec.structs.replace(decided, evidence="0" * 64),
        msgspec.structs.replace(decided, data={}),
    ]:
        assert not holds(item, forged)


def test_a_winnable_item_has_no_unwinnable_certificate() -> None:
    item = item_of_config(released_suite("3nodes")[0], 0)
    made = certify(UNWINNABLE, "frequencies", item_evidence(item), {"target": item.sealed.target})
    assert "activates" in verify(made, item_evidence(item), VERIFIERS).reason
    other = certify(UNWINNABLE, "frequencies", item_evidence(item), {"target": 20_000.0})
    assert "the target is" in verify(other, item_evidence(item), VERIFIERS).reason


def test_forged_pairs_of_members_do_not_hold() -> None:
    item, finding = next(
        (item, finding)
        for item in generate_items(PLANS["4nodes_freqparent"], 0, 20)
        if (finding := by_kind(item)["ambiguous"]).verdict is ClaimStatus.PROVED
    )
    certificate = certificate_of(finding)
    first, second = certificate.data["members"]
    assert holds(item, certificate)
    assert not holds(item, changed(certificate, members=[first, first]))
    heavy = json.loads(json.dumps(second))
    next(e for e in heavy.values() if e["terms"])["terms"][0][2] = 4
    assert not holds(item, changed(certificate, members=[first, heavy]))
    other = json.loads(json.dumps(second))
    term = next(e for e in other.values() if e["terms"])["terms"][0]
    term[2] = 1 + term[2] % 3
    assert not holds(item, changed(certificate, members=[first, other]))


@settings(max_examples=examples(60), deadline=None)
@given(items((*LINEAR, "4nodes_freqparent")))
def test_an_edge_matters_exactly_if_its_weight_changes_the_prediction(item: LabItem) -> None:
    """With everything shown: the frequency from the shown values, with the weight of one edge made larger."""
    truth, shown = item.sealed.mechanism, item.task.reactor
    for parent, child in truth.edges:
        heavier = {
            node: replace(
                e, terms=tuple(t._replace(weight=t.weight + (t.parent == parent and node == child)) for t in e.terms)
            )
            for node, e in truth.equations.items()
        }
        first, second = (
            (e[FREQUENCY].base or 0) + sum(t.weight * shown[t.parent] for t in e[FREQUENCY].terms)
            for e in (truth.equations, heavier)
        )
        assert (first != second) == ((parent, child) in mattering_edges(item)) or shown.get(parent) == 0


def test_hidden_properties_make_the_edges_before_them_matter() -> None:
    for item in generate_items(replace(PLANS["6nodes"], view=View.ROOTS), 3, 10):
        hidden = set(item.task.properties) - set(item.task.reactor)
        mattering = mattering_edges(item)
        assert {e for e in item.sealed.mechanism.edges if e[1] == FREQUENCY} <= mattering
        assert all(child == FREQUENCY or child in hidden for _, child in mattering)


def test_the_chance_of_a_target_beyond_the_dial_counts_every_crystal() -> None:
    """F = 4900 + 30 a + 40 b with b = b0 + a: by the reference, over all bases of the two properties."""
    terms = {"b": (Term("a", 1, 1.0),), FREQUENCY: (Term("a", 1, 30.0), Term("b", 1, 40.0)), "a": ()}
    mechanism = Mechanism({n: Equation(own, 4900.0 if n == FREQUENCY else None) for n, own in terms.items()})
    beyond = sum(
        values(mechanism, {"a": float(a), "b": float(b)})[FREQUENCY] >= 10_005 for a in range(101) for b in range(101)
    )
    assert unwinnable_chance(mechanism) == Fraction(beyond, 101**2) > 0
    bent = Mechanism({**mechanism.equations, "b": Equation((Term("a", 2, 0.5),))})
    with pytest.raises(ValueError, match="not linear"):
        unwinnable_chance(bent)


@pytest.mark.parametrize("base", [10.0, 30.0])
def test_bases_that_the_generator_never_draws_are_named_and_decide_nothing(base: float) -> None:
    """Without records a mechanism with bases in the range may fit, which has another frequency."""
    wrong = 0
    for seed in range(12):
        item = item_with_base(base, seed=seed, num_records=0)
        found = by_kind(item)
        assert f"base {base:g}: the generator draws whole numbers, 15 to 25" in found["unusual-bases"].claim
        if "trivial" in found:
            assert found["trivial"].data["frequency"] == item.sealed.target
        decided = decided_frequency(space_of(item.task, bounded=True))
        wrong += decided not in (None, item.sealed.target)
    assert wrong, "no item whose generator's range alone decides a false frequency"


def test_usual_bases_are_not_named() -> None:
    assert all("unusual-bases" not in by_kind(made_item(suite, 0)) for suite in SUITES)


@pytest.fixture(scope="module")
def findings() -> dict[tuple[str, str], Finding]:
    suites = {suite: released_suite(suite) for suite in SUITES}
    return {(f.kind, f.where): f for f in suite_findings(suites, range(2))}


def test_the_figures_of_the_released_files(findings: dict[tuple[str, str], Finding]) -> None:
    shares = [findings["vacuous", suite].data["share"] for suite in LINEAR]
    assert [f"{share:.0%}" for share in shares] == ["33%", "51%", "60%", "68%", "75%"]
    for suite, mean, unique in (("4nodes_freqparent", "2.30", 0.46), ("6nodes_freqparent", "2.50", 0.58)):
        data = findings["ambiguous", suite].data
        assert f"{data['mean']:.2f}" == mean
        assert data["unique"] == round(unique * float(data["episodes"]))
    assert findings["never suffices", "6nodes_golden"].data["without"] == 14
    assert findings["never suffices", "4nodes_golden"].verdict is ClaimStatus.REFUTED
    assert [where for kind, where in findings if kind == "duplicate"] == ["4nodes_hidden_n1 = 4nodes_hidden_vrange_pm5"]
    assert {suite for kind, suite in findings if kind == "unwinnable"} == {
        "5nodes",
        "6nodes",
        "6nodes_freqparent",
        "6nodes_golden",
        "7nodes",
    }
    trivial = {suite: f.data for (kind, suite), f in findings.items() if kind == "trivial"}
    assert set(trivial) == set(SUITES)
    assert trivial.pop("4nodes_quad_hard")["decided"] == 0
    assert all(float(data["decided"]) >= 0.98 * float(data["episodes"]) for data in trivial.values())


def test_the_fixed_seed_of_the_records_gives_every_graph_away(findings: dict[tuple[str, str], Finding]) -> None:
    seeds = [f for (kind, where), f in findings.items() if kind == "leak" and where.endswith(": seed")]
    assert len(seeds) == 16
    assert all(f.data["decided"] == 50 for f in seeds)
    names = [f.data for (kind, where), f in findings.items() if kind == "leak" and where.endswith(": names")]
    assert {data["least"] for data in names} == {1}
    assert max(data["most"] for data in names) == 5


def test_the_order_of_keys_is_topological_in_the_released_records() -> None:
    for made in released_suite("6nodes"):
        order = list(values(made.mechanism, dict.fromkeys(made.mechanism.nodes_with_drawn_base, 1.0)))
        assert all(order.index(parent) < order.index(child) for parent, child in made.mechanism.edges)


def printed_rows(table: str) -> list[PrintedRow]:
    found = shared_json("causalab_paper_rows.json", part="family")
    about = found["tables"][table]
    labels = len(about["labels"])
    rows = []
    for row in about["rows"]:
        where = f"Table {table}: {' '.join(row[:labels])}"
        rows.append(PrintedRow(where, dict(zip(about["columns"], row[labels:], strict=True))))
    return rows


def graphs(configs: tuple[Config, ...]) -> list[Any]:
    return [made.mechanism.edges for made in configs]


def test_pure_observation_rows_equal_correct_abstention() -> None:
    verdicts = {}
    for table, suite in (("11", "4nodes"), ("12", "6nodes")):
        rows = [row for row in printed_rows(table) if "pure observation" in row.where]
        verdicts[table] = [abstention_finding(row, graphs(released_suite(suite))).verdict for row in rows]
    assert verdicts["11"] == [ClaimStatus.PROVED] * 3
    assert verdicts["12"] == [
        ClaimStatus.REFUTED,
        ClaimStatus.PROVED,
        ClaimStatus.PROVED,
    ]  # the first is .990/.316/.469


def test_pure_intervention_rows_look_like_mixtures_and_that_is_left_open() -> None:
    rows = {row.where: mixture_finding(row) for table in ("9", "10", "11", "12") for row in printed_rows(table)}
    assert {f.verdict for f in rows.values()} == {ClaimStatus.OPEN}
    alike = [where for where, f in rows.items() if "look like" in f.claim]
    assert alike == [f"Table 11: pure intervention 0o{n}i" for n in (3, 6, 12)] + [
        f"Table 12: pure intervention 0o{n}i" for n in (5, 10, 20)
    ]


def test_printed_class_sizes_lie_between_none_and_one_property_set() -> None:
    released = {suite: released_suite(suite) for suite in ("3nodes", "4nodes")}
    sizes = {suite: mean_class_sizes([config.mechanism for config in released[suite]]) for suite in released}
    assert [round(size, 2) for size in sizes["3nodes"]] == [4.36, 1.34, 1.0]
    assert [round(size, 2) for size in sizes["4nodes"]] == [8.64, 2.07, 1.17, 1.0]
    for suite, column in (("3nodes", "imec_3_nodes"), ("4nodes", "imec_4_nodes")):
        for row in printed_rows("8"):
            finding = class_size_finding(row, column, sizes[suite])
            assert finding.verdict is ClaimStatus.OPEN
            assert "lies between those of 0 and 1 properties set" in finding.claim
    row = PrintedRow("Table 8: x", {"size": "9.5"})
    assert "above that of none set" in class_size_finding(row, "size", sizes["4nodes"]).claim


def test_printed_distances_are_means_over_fewer_rows_than_claimed() -> None:
    found = {finding.where: finding for finding in denominator_findings(printed_rows("7"))}
    for finding in found.values():
        evidence = {"printed": finding.data["printed"], "rows": finding.data["rows"]}
        assert verify(certificate_of(finding), evidence, VERIFIERS).holds
    expected = {
        "Table 7: GPT-5-mini 3": (22, 48),
        "Table 7: GPT-5.2-high 4": (18, 46),
        "Table 7: GPT-5.2-high 7": (219, 46),
    }
    for where, (whole, rows) in expected.items():
        assert (found[where].data["total"], found[where].data["denominator"]) == (whole, rows)
    assert "Table 7: Qwen3.5 non-thinking 3" not in found
    forged = changed(certificate_of(found["Table 7: GPT-5-mini 3"]), denominators=[50])
    assert not verify(forged, {"printed": "0.458", "rows": 50}, VERIFIERS).holds


def test_each_claim_has_a_verifier() -> None:
    claims = {UNWINNABLE, CANNOT_MATTER, FREQUENCY_DECIDED, GRAPH_DECIDED, AMBIGUOUS, NOT_A_MEAN}
    assert set(VERIFIERS) == claims


@pytest.mark.parametrize("suite", ["4nodes", "4nodes_freqparent", "4nodes_golden"])
def test_an_ambiguous_finding_counts_the_settings_of_its_certificate(suite: str) -> None:
    for item in generate_items(PLANS[suite], 8, 3):
        found = ambiguous_finding(item)
        assert found is not None
        assert found.certificate is not None
        assert found.data["settings"] == len(found.certificate.data["settings"])
        assert (found.verdict is ClaimStatus.REFUTED) == (found.data["members"] == "1")


def test_an_edge_to_what_leads_nowhere_is_not_said_to_be_shown() -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    parent = Equation((Term("a", 1, 2.0),))
    mechanism = Mechanism({"a": Equation(), "b": parent, FREQUENCY: Equation((Term("a", 1, 3.0),), 20.0)})
    item = lab_item(Name("x", "s"), Terms(Family.LINEAR, 4, shown=("a",)), mechanism, bases)
    found = vacuous_finding(item)
    assert found is not None
    assert (found.data["idle"], found.data["edges"]) == (1, 2)
    assert found.claim.endswith("the reactor shows what they lead to, or the frequency does not follow from it")


# --- Labels of generated items: the fewest settings against brute force over sequences of settings and all mechanisms
VALUES = (0, 100, 37)


def all_members(evidence: Evidence) -> list[Mechanism]:
    """By the reference: every mechanism whose crystals have integer bases from 0 to 100, and 15 to 25 for F."""
    found = []
    first = dict(zip(evidence.nodes, evidence.observations[0].values, strict=True))
    for terms in weighted_graphs(evidence.nodes, sink=not evidence.task.freq_parent):
        base = first[FREQUENCY] - sum(t.weight * first[t.parent] for t in terms[FREQUENCY])
        if not 15 <= base <= 25:
            continue
        made = Mechanism({n: Equation(own, base if n == FREQUENCY else None) for n, own in terms.items()})
        crystals = [dict(zip(evidence.nodes, s.values, strict=True)) for s in evidence.observations]
        crystals.append(dict(evidence.task.reactor) | {FREQUENCY: predict_frequency(made, evidence)})
        bases = [b for crystal in crystals for b in bases_of(made, crystal).values()]
        fits = all(0 <= b <= 100 and b == int(b) for b in bases)
        if fits and misfit(made, evidence, reading=evidence.task.reading, shifts=()) <= EXACT:
            found.append(made)
    return found


def left_after(item: LabItem, members: list[Mechanism], names: tuple[str, ...]) -> int:
    """Verdicts of the members that read as the truth does after these settings, least over a few values."""
    numbers = []
    for chosen in product(VALUES, repeat=len(names)):
        episode = LabEpisode(item)
        for name, value in zip(names, chosen, strict=True):
            episode.act({"set": name, "value": value})
        evidence = evidence_of(item.task, episode.steps)
        kept = [m for m in members if misfit(m, evidence, reading=item.task.reading, shifts=()) <= EXACT]
        numbers.append(len({(m.edges, predict_frequency(m, evidence)) for m in kept}))
    return min(numbers)


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        (Plan("3nodes", 3), 6),
        (Plan("3base", 3, reading=SettingMeaning.BASE), 4),
        (Plan("3freqparent", 3, freq_parent=True), 4),
    ],
    ids=lambda value: value.suite if isinstance(value, Plan) else str(value),
)
def test_the_fewest_settings_are_those_of_brute_force(plan: Plan, count: int) -> None:
    """Sequences with repeats, values of three kinds; half of the items are chosen because something is left to do."""
    first = list(generate_items(plan, 21, 40))
    undecided = [item for item in first if labels(item)["members_bounded"] > 1]
    for item in [*first[: count - count // 2], *undecided[: count // 2]]:
        members = all_members(evidence_of(item.task))
        properties = item.task.properties
        final = left_after(item, members, properties)
        fewest = next(
            size
            for size in range(len(properties) + 1)
            if any(left_after(item, members, names) == final for names in product(properties, repeat=size))
        )
        found = labels(item)
        assert found["members_bounded"] == len(members)
        assert (found["fewest_settings"], found["decidable"]) == (fewest, float(final == 1))
    assert len(undecided) >= count // 2


def test_members_are_numbered_by_graph_and_predicted_frequency() -> None:
    """With hidden properties and without, as the members written out say; frequencies differ within one graph."""
    finer = set()
    for item in generate_items(Plan("4roots", 4, view=View.ROOTS, records=0, freq_parent=True), 21, 12):
        space = space_of(item.task, bounded=True)
        assert isinstance(space, WeightedDags)
        members, truth = list(space.members()), item.sealed.mechanism
        stated = [(member.edges, predict_frequency(member, space.evidence)) for member in members]
        numbers = number_verdicts(space).tolist()
        assert len({*zip(numbers, stated, strict=True)}) == len({*numbers}) == len({*stated})
        found = members[find_truth(truth, space)]
        assert all(found.weights(node) == truth.weights(node) for node in truth.equations)
        if len({*stated}) > len({member.edges for member in members}):
            finer.add(space.predicts)
    assert finer == {False, True}


@pytest.mark.parametrize("suite", PLANS)
def test_labels_are_there_for_every_suite_and_travel_with_the_item(suite: str) -> None:
    for item in generate_labelled(PLANS[suite], 4, 1):
        found = item.sealed.labels
        edges = item.sealed.mechanism.edges
        assert found["edges"] == len(edges)
        assert found["mattering"] == len(mattering_edges(item)) / len(edges)
        assert "members" in found
        assert ("fewest_settings" in found) == (item.task.family.value == "linear" and not item.task.noise)
        if item.task.allowance == 0 and "fewest_settings" in found:
            assert found["fewest_settings"] == 0
        if len(edges) <= 7:
            assert found["imec"] == imec_by_definition(edges)
        assert item_of_record(record_of_item(item)) == item


def test_no_experimenter_needs_fewer_settings_than_the_label_says() -> None:
    for item in generate_items(PLANS["6nodes"], 5, 8):
        episode = LabEpisode(item)
        outcome = solve_by_experiments(episode)
        assert isinstance(outcome, Found)
        assert outcome.value.unique
        found = labels(item)
        assert found["fewest_settings"] <= len(episode.steps)
        assert found["decidable"]


def test_settings_that_are_not_allowed_do_not_count() -> None:
    for item in generate_items(replace(PLANS["5nodes"], fixed=3), 6, 10):
        assert labels(item)["fewest_settings"] <= 1
    for item in generate_items(replace(PLANS["5nodes"], view=View.HIDE_ONE), 6, 3):
        assert labels(item)["mattering"] > 0


def test_a_laboratory_without_edges_has_labels_without_shares() -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    mechanism = Mechanism({"a": Equation(), "b": Equation(), FREQUENCY: Equation((), 20.0)})
    found = labels(lab_item(Name("x", "s"), Terms(Family.LINEAR, 4), mechanism, bases))
    assert (found["edges"], found["imec"], found["winnable"]) == (0, 1, 1.0)
    assert "mattering" not in found
    # by hand: no edge, or one of weight 1 to 3 in either direction; with bases in range no edge, or a -> b of weight 1
    assert (found["members"], found["members_bounded"], found["fewest_settings"]) == (7, 2, 1)


def test_a_mechanism_outside_the_class_has_no_fewest_settings() -> None:
    bases = Bases(({"a": 3.0, "b": 4.0},), {"a": 5.0, "b": 6.0}, {"a": 7.0, "b": 8.0})
    mechanism = Mechanism({"a": Equation(), "b": Equation(), FREQUENCY: Equation((Term("a", 1, 2.5),), 20.0)})
    found = labels(lab_item(Name("x", "s"), Terms(Family.LINEAR, 4), mechanism, bases))
    assert found["mattering"] == 1
    assert "fewest_settings" not in found
