"""Programs of the shared vectors: noise with its probabilities, tables, topologies, and what makes no difference."""

from __future__ import annotations

from functools import cache

import pytest

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import assignment_text, rows, symbol
from calibrant.dsl.causim.reference import Worked, work_out
from calibrant.dsl.causim.score import extract, majority, pass_at_k, reasons
from calibrant.dsl.causim.topology import graph_of, topologies, vacuity
from tests.support.causim.models import PROGRAMS, QUESTIONS, answer_texts, models, printed, questions, vectors


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


# --- Questions, replies, pass@k and majorities of the shared vectors, by running every world -------------------------


@cache
def _worked(name: str) -> Worked:
    return work_out(*questions()[name])


def test_every_question_has_the_expected_answers_probabilities_and_flags() -> None:
    records = vectors("question")
    assert len(records) >= QUESTIONS
    for record in records:
        model, question = questions()[record["id"]]
        worked, expected = _worked(record["id"]), record["expect"]
        assert list(question.required_keys(model)) == record["required_keys"]
        assert worked.scenario == record["scenario"]
        assert (worked.worlds, worked.fitting) == (expected["worlds"], expected["fitting"])
        assert len(worked.answers) == expected["size"]
        assert list(worked.answers) == answer_texts(record)
        assert [printed(p) for p in worked.probabilities.values()] == expected["probabilities"]
        assert worked.trivial is expected["trivial"]
        assert worked.effect_all is expected["effect_all"]
        assert worked.effect_some is expected["effect_some"]
        assert worked.copy is expected["copy"]


def test_every_answer_has_the_expected_reasons() -> None:
    compared = 0
    for record in vectors("question"):
        for given in record["expect"].get("reasons", []):
            answer = {key: symbol(value) for key, value in given["answer"].items()}
            found = reasons(*questions()[record["id"]], answer)
            assert found == given["reasons"]
            assert (set(found.values()) == {"ok"}) is bool(given["reward"])
            compared += 1
    assert compared > 30


def test_every_reply_has_the_expected_reward() -> None:
    compared = 0
    for record in vectors("verdict"):
        model, question = questions()[record["question"]]
        for reply in record["replies"]:
            answer = extract(reply["text"], question.required_keys(model)).answer
            right = answer is not None and assignment_text(answer) in _worked(record["question"]).answers
            assert right == bool(reply["reward"]), reply["why"]
            compared += 1
    assert compared > 300


def test_pass_at_k_and_majorities_are_as_expected() -> None:
    for record in vectors("pass_at_k"):
        expected = record["expect"]
        assert printed(pass_at_k(record["n"], record["correct"], 1)) == expected["pass_at_1"]
        assert printed(pass_at_k(record["n"], record["correct"], record["k"])) == expected["pass_at_k"]
    for record in vectors("majority"):
        answers = [extract(text, record["required_keys"]).answer for text in record["replies"]]
        assert majority(answers) == {key: symbol(value) for key, value in record["expect"]["answer"].items()}
