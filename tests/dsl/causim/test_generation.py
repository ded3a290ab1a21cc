"""Grown programs: legal, the same bytes for a seed, and read back in every form; those of the shared vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.dsl.causim.bundle import Bundle, bundle_of, load_bundle, load_source, module_text
from calibrant.dsl.causim.generated_functions import (
    TOPOLOGIES,
    Draws,
    Insertion,
    bundle_objections,
    graph_of,
    insert_node,
    insertions,
    is_acyclic,
    satisfies,
    topologies,
    vacuity,
)
from calibrant.dsl.causim.generation import Diversity, QuestionOptions, draw_question, grow
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import Model, ModelError, Node, assignment_text, rows, run, symbol, table_node
from calibrant.dsl.causim.prompt import prompt, prose, read_prose, same_model
from calibrant.dsl.causim.question import TYPES, QuestionRecord, check_question, question_from_record, record_of
from calibrant.dsl.causim.records import (
    ExpectedOutput,
    Instance,
    QueryFile,
    QueryMeta,
    query_path,
    read_queries,
    read_states,
    write_queries,
)
from calibrant.dsl.causim.reference import Worked, work_out
from calibrant.dsl.causim.score import extract, majority, reasons
from calibrant.dsl.errors import PoolError
from tests.support.causim.models import PROGRAMS, QUESTIONS, answer_texts, bundles, models, printed, questions, vectors


# --- Grown programs: legal, verified, and the same bytes for a seed ---------------------------------------------------
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_version_passes_the_verifier_and_loads_to_its_model(topology: str) -> None:
    for number in range(1):
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


# --- How different generated programs are: motifs and supports by hand ------------------------------------------------


def node(name: str, parents: tuple[str, ...], rows: Mapping[tuple[tuple[Any, ...], Any], object]) -> Node:
    """Return a node whose noise values are as probable as each other."""
    noises = sorted({noise for _, noise in rows}, key=repr)
    table = {(tuple(map(symbol, row)), symbol(noise)): symbol(value) for (row, noise), value in rows.items()}
    return table_node(name, f"U_{name}", parents, {symbol(noise): Fraction(1, len(noises)) for noise in noises}, table)


def coin(name: str, values: tuple[object, ...] = (0, 1)) -> Node:
    return node(name, (), {((), k): value for k, value in enumerate(values)})


def either(name: str, first: str, second: str, values: tuple[object, ...] = (0, 1)) -> Node:
    rows: dict[Any, object] = {((a, b), 0): values[a or b] for a in (0, 1) for b in (0, 1)}
    return node(name, (first, second), rows)


def counted(*models: Model) -> Diversity:
    diversity = Diversity()
    for model in models:
        part = Diversity()
        part.add_graph(model)
        part.add_tables(model)
        diversity.add(part)
    return diversity


def test_motifs_and_supports_are_counted() -> None:
    model = Model([coin("A"), coin("B"), either("C", "A", "B")])
    report = counted(model, Model([coin("A"), coin("B", (0, 1, 2))])).to_dict()
    assert report["motifs"] == {
        "2": {"models": 1, "forks": 0.0, "colliders": 0.0},
        "3": {"models": 1, "forks": 0.0, "colliders": 1.0},
    }
    assert report["support_sizes"] == {"1": 1, "2": 3, "3": 1}
    assert report["mechanisms"] == 5


# --- Predicates on known graphs, and insertions that keep them --------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": []}, {*TOPOLOGIES, "poly_tree_strict"}),
        ({"a": [], "b": ["a"]}, {*TOPOLOGIES, "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["b"]}, {"chain", "tree", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a"]}, {"star", "tree", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": [], "c": ["a", "b"]}, {"inverted_star", "layered", "poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, {"poly_tree"}),
        ({"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}, {"poly_tree", "poly_tree_strict"}),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"layered", "poly_tree"}),
        ({"a": [], "b": []}, set()),
        ({"a": ["b"], "b": ["a"]}, set()),
    ],
)
def test_predicates_of_known_graphs(graph: dict[str, list[str]], expected: set[str]) -> None:
    assert {name for name, holds in topologies(graph).items() if holds} == expected


def test_a_node_between_others_takes_the_childs_place_under_its_parent() -> None:
    graph = {"a": (), "b": ("a",)}
    between = Insertion(("a",), (("b", ("",)),))
    assert between in insertions(graph, "chain")
    assert insert_node(graph, between, "c") == {"a": (), "c": ("a",), "b": ("c",)}
    assert is_acyclic(graph)


# --- Program, canonical model, program; model, sentences, model; files written and read; prompts ----------------------
def test_a_program_written_from_the_canonical_model_has_that_model() -> None:
    for model in models().values():
        assert same_model(load_bundle(bundle_of(model)), model)


def test_sentences_are_read_back_to_the_same_model() -> None:
    for model in models().values():
        assert same_model(read_prose(prose(model)), model)


def test_values_that_python_takes_for_equal_stay_apart_in_a_written_program() -> None:
    source = _coin("1, 1.0, True, '1'").replace("return u_a", "return str([u_a])")
    model = load_source(source)
    assert len(model.system[0].domain) == 4
    assert same_model(load_source(module_text(bundle_of(model))), model)


def _coin(values: str) -> str:
    return (
        f"import random\ndef U_A():\n    return random.choice([{values}])\ndef f_A(u_a):\n    return u_a\n"
        "def run_once(seed=None):\n    u = U_A()\n    a = f_A(u)\n    return {'A': a}\n"
    )


NOISE = 'The noise "U_A" is 1 with probability 1.\n'


@pytest.mark.parametrize(
    "text",
    [
        'The noise "U_A" is 1 with probability 1/2.',
        'The noise "U_A" is 1 with probability 1/1',
        'The variable "A" follows from its noise "U_A": it is always 1.',
        NOISE + 'The variable "A" follows from "B" and its noise "U_A": it is always 1.',
        NOISE + 'The variable "A" follows from its noise "U_A": it is 2 if "C" is 1, and 1 otherwise.',
        "Something else.",
        'The noise "U_A" is ' + "[" * 100_000,
    ],
)
def test_other_sentences_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        read_prose(text)
    assert "\n" not in str(refusal.value)


def test_bundles_that_contradict_their_programs_are_refused() -> None:
    bundle = bundles()["paper-b"]
    load_bundle(bundle)
    for changed in (
        {"v": 4},
        {"graph": bundles()["paper-a"].graph},
    ):
        fields = {name: getattr(bundle, name) for name in Bundle.__struct_fields__}
        with pytest.raises(ModelError):
            load_bundle(Bundle(**(fields | changed)))


def test_query_files_lie_where_the_paper_puts_them_and_are_read_as_written(tmp_path: Path) -> None:
    record = next(record for record in vectors("question") if record["type"] == "counterfactual")
    _, question = questions()[record["id"]]
    given = record_of(question)
    expected = ExpectedOutput(record["expect"]["answers"], record["required_keys"], record["expect"]["size"], True)
    instance = Instance(
        7, given.fixed_exogenous, given.unknown_exogenous, given.do, given.observed_endogenous, expected
    )
    queries = QueryFile(QueryMeta("0001", 3, "counterfactual", "stochastic"), [instance])
    path = write_queries(tmp_path, queries)
    place = "scm_0001/causal_queries/counterfactual/stochastic/causal_queries_v3.json"
    assert path == tmp_path / place
    assert read_queries(path) == queries


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"scms": 3}', '{"scms": [{"scm_id": "../x", "history": []}]}', "[" * 10**5]
)
def test_other_files_are_refused_with_their_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(PoolError, match=r"^state\.json: "):
        read_states(path)


def test_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="scm_id"):
        query_path(tmp_path, QueryMeta("../../x", 1, "deduction", "deterministic"))


def test_prompts_hold_everything_that_is_given_and_nothing_of_the_answer() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        if record["program"] == "paper-cancer":
            continue
        source = module_text(bundles()[record["program"]], comments=False)
        for view in ("code", "prose"):
            text = prompt(model, question, record["scenario"], source=source, view=view)
            for name, value in {**question.fixed, **question.do, **question.observed}.items():
                assert f'"{name}":{value}' in text
            assert (source.rstrip() in text) is (view == "code")
            assert text.rstrip().endswith("one JSON object with exactly these keys.")


def test_names_of_questions_count_in_any_case_that_fits_one_name() -> None:
    model = models()["paper-a"]
    given = QuestionRecord({}, ["u_zy"], {"zy": "x"}, {"Zy": True})
    question = question_from_record(given, "counterfactual", model)
    assert (question.unknown, question.do, question.observed) == (("U_ZY",), {"ZY": '"x"'}, {"ZY": "true"})
    with pytest.raises(ModelError, match=r"do: .*two cases"):
        question_from_record(QuestionRecord({}, ["U_ZY"], {"zy": 1, "ZY": 1}, {}), "intervention", model)
    twins = next(model for model in models().values() if len({name.lower() for name in model.names}) < len(model))
    name = next(one for one in twins.names if sum(one.lower() == other.lower() for other in twins.names) == 2)
    with pytest.raises(ModelError, match="do"):
        question_from_record(QuestionRecord({}, list(twins.noises), {_other_case(name): 1}, {}), "intervention", twins)


def _other_case(name: str) -> str:
    """Return the name in a case that is neither all small nor all capital letters, nor capitalised."""
    return "".join(letter.upper() if k % 2 else letter.lower() for k, letter in enumerate(name))


# --- Programs of the shared vectors: noise with its probabilities, tables, topologies, and what makes no difference ---
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


def test_majorities_are_as_expected() -> None:
    for record in vectors("majority"):
        answers = [extract(text, record["required_keys"]).answer for text in record["replies"]]
        assert majority(answers) == {key: symbol(value) for key, value in record["expect"]["answer"].items()}
