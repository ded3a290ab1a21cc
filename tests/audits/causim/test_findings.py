"""Findings about programs, questions, pipelines and printed tables, against figures worked out elsewhere."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from calibrant.audits.causim.attribution import hundredths, repeated_rows
from calibrant.audits.causim.items import (
    abduction_sizes,
    labels_by_running,
    miss_probability,
    missed_values,
    network_findings,
    question_findings,
    shares,
    vacuous_parts,
)
from calibrant.audits.claims import ClaimStatus
from calibrant.bench.statistics import wilson
from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.item import CausimItem, Labels, Task
from calibrant.dsl.causim.networks import network
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import generated_items
from tests.support.causim.vectors import bundles, models, questions, vectors
from tests.support.shared import shared_json


@cache
def paper() -> dict[str, Any]:
    tables: dict[str, Any] = shared_json("causim_paper_rows.json", part="family")["tables"]
    return tables


def rows(table: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in paper()[table]["rows"]}


def test_the_grid_makes_edges_vacuous_that_the_cells_keep() -> None:
    assert [(finding.where, finding.data["edges"]) for finding in network_findings()] == [
        ("asia", "asia -> tub"),
        ("cancer", "Pollution -> Cancer, Smoker -> Cancer"),
        ("survey", "none"),
    ]


def test_the_parts_of_a_program_that_make_no_difference_are_found() -> None:
    kinds = [finding.data["name"] for finding in vacuous_parts(models()["paper-cancer"], "printed")]
    assert kinds == ["Smoker -> Cancer", "Pollution -> Cancer"]
    assert [f.claim for f in vacuous_parts(network("asia"), "asia")] == ["the noise of either changes nothing"]


def test_two_thousand_samples_miss_a_value_of_a_thousandth_in_an_eighth_of_scans() -> None:
    assert round(miss_probability(Fraction(1, 1000)), 3) == 0.135
    found = list(missed_values(network("cancer"), "cancer"))
    assert [(finding.data["noise"], finding.data["probability"]) for finding in found] == [("U_Cancer", "1/1000")]
    assert list(missed_values(network("cancer", "grid"), "cancer")) == []


def item_of(name: str) -> CausimItem:
    record = next(record for record in vectors("question") if record["id"] == name)
    _, question = questions()[name]
    source = module_text(bundles()[record["program"]], comments=False)
    expected = record["expect"]
    labels = Labels(
        expected["size"], expected["trivial"], expected["effect_all"], expected["effect_some"], expected["copy"]
    )
    return CausimItem(name, Task(source, question, record["scenario"]), labels)


def test_flags_of_questions_are_those_of_the_vectors() -> None:
    seen: Counter[str] = Counter()
    for record in vectors("question"):
        if record["program"] == "paper-cancer":
            continue
        kinds = {finding.kind for finding in question_findings(item_of(record["id"]))}
        expected = record["expect"]
        assert ("trivial" in kinds) is expected["trivial"]
        assert ("copyable" in kinds) is bool(expected["copy"])
        assert ("vacuous" in kinds) is (expected["effect_some"] is False)
        assert "wrong_label" not in kinds
        seen.update(kinds)
    assert min(seen["trivial"], seen["copyable"], seen["vacuous"]) > 5


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(9, topology, 1, nodes=6, num_questions=3)]


def test_shares_count_what_the_labels_say(items: list[CausimItem]) -> None:
    found = {(share.flag, share.group): share for share in shares(items)}
    for topology in TOPOLOGIES:
        own = [item for item in items if item.topology == topology and item.task.question.type == "counterfactual"]
        share = found["copyable", f"{topology}/counterfactual"]
        assert (share.count, share.total) == (sum(bool(item.labels.copy) for item in own), len(own))
        assert ("copyable", f"{topology}/deduction") not in found


def test_wrong_labels_are_found_by_running_every_world(items: list[CausimItem]) -> None:
    assert all(labels_by_running(item) is None for item in items[:60])
    item = items[0]
    wrong = CausimItem(item.id, item.task, Labels(item.labels.size + 1, item.labels.trivial), item.sealed)
    finding = labels_by_running(wrong)
    assert finding is not None
    assert finding.kind == "wrong_label"
    assert [f.kind for f in question_findings(wrong) if f.kind == "wrong_label"] == ["wrong_label"]


def test_a_cap_on_worlds_drops_abduction_items() -> None:
    large = list(generated_items(2, "chain", 3, nodes=10, num_questions=1, types=["abduction"]))
    finding = abduction_sizes(large)
    many = [item for item in large if item.task.model.worlds > 200_000]
    assert finding.data["dropped"] == len(many) > 0
    assert abduction_sizes([]).verdict is ClaimStatus.OPEN


def test_the_same_untrained_model_is_printed_twice() -> None:
    gains = [row for system, row in rows("3").items() if system == "7B (self-generation)"]
    finding = repeated_rows(rows("3")["Base"], rows("5")["Base"], gains, "Tables 3 and 5")
    assert (finding.data["apart"], finding.data["gain"]) == (0.038, 0.065)
    finding = repeated_rows(rows("4")["Base"], rows("6")["Base"], gains, "Tables 4 and 6")
    assert finding.data["apart"] == 0.037


def test_cells_of_the_network_table_are_hundredths_of_a_hundred_questions() -> None:
    table = {graph: row[2:] for graph, row in rows("25").items()}
    assert hundredths(table, "Table 25").verdict is ClaimStatus.PROVED
    assert hundredths({"x": ["0.015"]}, "x").verdict is ClaimStatus.REFUTED
    base, trained = wilson(6, 100), wilson(19, 100)
    assert [round(bound, 2) for bound in (*base, *trained)] == [0.03, 0.12, 0.13, 0.28]
