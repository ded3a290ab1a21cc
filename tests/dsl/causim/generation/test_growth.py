"""Grown programs: legal, verified, the same bytes for a seed, and children that keep their tables."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import msgspec
import pytest

from calibrant.dsl.causim.bundle import load_bundle, module_text
from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generation import QuestionOptions, Tally, draw_question, draw_world, grow
from calibrant.dsl.causim.model import Model, run
from calibrant.dsl.causim.prompt import prose, read_prose, same_model
from calibrant.dsl.causim.question import TYPES, check_question
from calibrant.dsl.causim.topology import TOPOLOGIES, bundle_objections, graph_of, satisfies


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_version_passes_the_verifier_and_loads_to_its_model(topology: str) -> None:
    for number in range(2):
        versions = grow(5, str(number), topology, 8)
        assert [version.bundle.v for version in versions] == list(range(1, 9))
        for version in versions:
            model = load_bundle(version.bundle)
            assert same_model(model, version.model)
            assert satisfies(graph_of(model), topology)
            assert bundle_objections(version.bundle, model, module_text(version.bundle)) == []
            assert all(2 <= len(node.support) <= 6 for node in model.nodes)
            assert all(2 <= len(local.domain) <= 4 for local in model.system)
            assert same_model(read_prose(prose(model)), model)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_version_is_the_one_before_and_one_node(topology: str) -> None:
    versions = grow(6, "x", topology, 7, vocabulary="medical")
    for before, after in pairwise(versions):
        new = set(after.model.names) - set(before.model.names)
        assert new == {after.bundle.plan.new_function[2:]} if after.bundle.plan else False
        assert set(before.model.names) < set(after.model.names)


def _keeps_its_table(before: Model, after: Model, child: str, new: str) -> bool:
    """Whether, at some value of the new parent, the child's table over its other parents is what it was."""
    i, j = before.position[child], after.position[child]
    parents = after.nodes[j].parents
    if set(before.nodes[i].parents) != set(parents) - {new}:
        return True  # it lost a parent, whose values follow from the new node now
    for value in after.system[after.position[new]].domain:
        if all(
            before.nodes[i].value(tuple(row[parent] for parent in before.nodes[i].parents), noise)
            == after.nodes[j].value(tuple({**row, new: value}[parent] for parent in parents), noise)
            for row in _rows(before, before.nodes[i].parents)
            for noise in before.nodes[i].support
        ):
            return True
    return False


def _rows(model: Model, names: tuple[str, ...]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = [{}]
    for name in names:
        rows = [{**row, name: value} for row in rows for value in model.system[model.position[name]].domain]
    return rows


@pytest.mark.parametrize("topology", ["inverted_star", "chain", "poly_tree", "layered"])
def test_a_child_keeps_its_old_table_at_some_value_of_its_new_parent(topology: str) -> None:
    versions = grow(7, "y", topology, 7)
    compared = 0
    for before, after in pairwise(versions):
        assert after.bundle.plan is not None
        new = after.bundle.plan.new_function[2:]
        for child in after.bundle.plan.direct_children:
            assert _keeps_its_table(before.model, after.model, child, new)
            compared += 1
    assert compared > 0


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    one, same, other = (grow(seed, "z", "tree", 5)[-1].bundle for seed in (1, 1, 2))
    assert msgspec.json.encode(one) == msgspec.json.encode(same)
    assert module_text(one) != module_text(other)


def test_draws_are_the_words_of_sha_256_under_their_key() -> None:
    block = hashlib.sha256(b"a\x1f1\x1e0").digest()
    draws = Draws("a", 1)
    assert [draws.below(1000) for _ in range(4)] == [
        int.from_bytes(block[start : start + 8], "big") % 1000 for start in (0, 8, 16, 24)
    ]


def test_the_tally_counts_drafts() -> None:
    tally = Tally()
    grow(1, "t", "star", 6, tally=tally)
    assert tally.accepted == 6
    assert [outcomes["accepted"] for _, outcomes in sorted(tally.versions.items())] == [1] * 6
    assert sum(sum(outcomes.values()) for outcomes in tally.versions.values()) == 6 + sum(tally.refused.values())
    assert 0 < tally.rate <= 1


def test_drawn_questions_fit_their_worlds() -> None:
    model = grow(3, "q", "layered", 6)[-1].model
    for options in (QuestionOptions(), QuestionOptions(evidence="minimal", with_noise=True)):
        for seed in range(30):
            for kind in TYPES:
                drawn = draw_question(Draws(seed), model, kind, options)
                question = check_question(drawn.question, model)
                factual = run(model, drawn.world, {})
                assert all(factual[name] == value for name, value in question.observed.items())
                assert all(drawn.world[noise] == value for noise, value in question.fixed.items())
                assert all(factual[name] != value for name, value in question.do.items())
                assert bool(question.do) is (kind in ("intervention", "counterfactual"))
                if kind == "counterfactual" and options.evidence == "minimal":
                    (noise,) = question.unknown
                    i = model.of_noise[noise]
                    assert set(question.observed) == {model.names[k] for k in (i, *model.children[i])}


def test_worlds_are_drawn_with_their_probabilities() -> None:
    model = grow(3, "q", "chain", 1)[-1].model
    node = model.nodes[0]
    drawn = [draw_world(Draws("w", k), model)[node.noise] for k in range(4000)]
    for value, weight in zip(node.support, node.weights, strict=True):
        assert abs(drawn.count(value) / 4000 - float(weight)) < 0.05
