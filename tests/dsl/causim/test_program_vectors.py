"""Programs of the shared vectors: noise with its probabilities, tables, topologies, and what makes no difference."""

from __future__ import annotations

import pytest

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import rows, symbol
from calibrant.dsl.causim.topology import graph_of, topologies, vacuity
from tests.support.causim.vectors import PROGRAMS, models, printed, vectors


def test_every_program_has_the_expected_nodes_worlds_and_tables() -> None:
    records = vectors("program")
    assert len(records) >= PROGRAMS
    for record in records:
        model, expected = models()[record["id"]], record["expect"]
        assert model.worlds == expected["worlds"]
        assert set(model.names) == set(expected["nodes"])
        for name, node_expected in expected["nodes"].items():
            node, local = model.nodes[model.position[name]], model.system[model.position[name]]
            assert list(node.parents) == node_expected["parents"]
            assert list(local.domain) == [symbol(value) for value in node_expected["domain"]]
            noise = [[value, printed(weight)] for value, weight in zip(node.support, node.weights, strict=True)]
            assert noise == [[symbol(value), weight] for value, weight in node_expected["noise"]]
            assert local.table.size == node_expected["rows"]
            if "table" in node_expected:
                expected_rows = [
                    (tuple(map(symbol, row)), symbol(value), symbol(given))
                    for row, value, given in node_expected["table"]
                ]
                assert list(rows(model, name)) == expected_rows


def test_every_program_has_the_expected_topologies_and_vacuity() -> None:
    for record in vectors("program"):
        model, expected = models()[record["id"]], record["expect"]
        found = vacuity(model)
        assert topologies(graph_of(model)) == expected["topologies"]
        assert sorted(map(list, found.edges)) == sorted(expected["vacuous_edges"])
        assert sorted(found.noise) == sorted(expected["vacuous_noise"])
        assert sorted(found.constants) == sorted(expected["constant_nodes"])


def test_hostile_and_unfit_sources_are_refused_and_the_others_load() -> None:
    records = vectors("loader")
    assert len(records) >= 20
    for record in records:
        expected = record["expect"]
        if not expected["supported"]:
            with pytest.raises(Unsupported) as refusal:
                load_source(record["source"])
            assert "\n" not in str(refusal.value)
            continue
        model = load_source(record["source"])
        for name, node_expected in expected["nodes"].items():
            node, local = model.nodes[model.position[name]], model.system[model.position[name]]
            assert list(node.parents) == node_expected["parents"]
            assert list(local.domain) == [symbol(value) for value in node_expected["domain"]]
            noise = [[value, printed(weight)] for value, weight in zip(node.support, node.weights, strict=True)]
            assert noise == [[symbol(value), weight] for value, weight in node_expected["noise"]]
