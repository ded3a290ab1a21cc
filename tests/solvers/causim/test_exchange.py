"""Query files from items and back; what a pipeline with caps stores of complete answer sets."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.generation import Version, grow
from calibrant.dsl.causim.item import CausimItem, Labels, Task
from calibrant.dsl.causim.model import plain, symbol
from calibrant.dsl.causim.question import TYPES, record_of
from calibrant.dsl.causim.records import read_states, write_queries, write_states
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.errors import PoolError
from calibrant.solvers.causim.exact import Judge
from calibrant.solvers.causim.exchange import items_from_queries, query_files, scm_of
from calibrant.solvers.causim.generation import Caps, items_of_version, sampled_supports, store_answers
from tests.support.causim.vectors import bundles, questions, vectors


@pytest.fixture(scope="module")
def versions() -> list[Version]:
    return grow(21, "p", "layered", 5)


@pytest.fixture(scope="module")
def items(versions: list[Version]) -> list[CausimItem]:
    return [item for version in versions for item in items_of_version(version, "p", num_questions=3)]


def labelled(items: list[CausimItem]) -> dict[tuple[int, str, bytes], Labels]:
    encode = msgspec.json.Encoder(order="deterministic").encode
    return {
        (item.version, item.task.question.type, encode(record_of(item.task.question))): item.labels for item in items
    }


def test_items_written_as_query_files_come_back_with_the_same_questions_and_labels(
    versions: list[Version], items: list[CausimItem], tmp_path: Path
) -> None:
    write_states(tmp_path / "states.json", [scm_of("p", versions)])
    scms = read_states(tmp_path / "states.json")
    back: list[CausimItem] = []
    for queries in query_files(items):
        path = write_queries(tmp_path, queries)
        assert json.loads(path.read_text())["meta"]["type"] == queries.meta.type
        back.extend(items_from_queries(path, scms))
    assert labelled(back) == labelled(items)
    assert {item.task.source for item in back} == {item.task.source for item in items}
    assert {item.task.question.type for item in back} == set(TYPES)


def repeat_an_answer(file: dict[str, Any]) -> None:
    """Put a copy of the first answer in the place of the second, of an instance that has two."""
    supports = [instance["expected_output"]["support"] for instance in file["instances"]]
    support = next(support for support in supports if len(support) > 1)
    support[1] = support[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file["meta"].update(v=99), "meta: the state file has no version 99"),
        (lambda file: file["instances"][0]["expected_output"]["required_keys"].pop(), "required_keys"),
        (lambda file: file["instances"][0]["expected_output"]["support"].pop(), "right, 0 are stored|are stored"),
        (repeat_an_answer, "answers 0 and 1 are equal"),
        (lambda file: file["instances"][0]["fixed_exogenous"].update(U_none=1), "fixed_exogenous"),
        (lambda file: file["instances"][0]["unknown_exogenous"].append("U_none"), "unknown_exogenous"),
        (lambda file: file["instances"][0]["expected_output"]["support"][0].update(more=1), "answer 0 is wrong"),
    ],
)
def test_files_that_contradict_the_program_are_refused_with_file_and_field(
    versions: list[Version], items: list[CausimItem], tmp_path: Path, change: object, message: str
) -> None:
    files = (queries for queries in query_files(items) if queries.meta.v == 4)
    queries = next(file for file in files if any(one.expected_output.size > 1 for one in file.instances))
    path = write_queries(tmp_path, queries)
    assert list(items_from_queries(path, [scm_of("p", versions)]))
    file = json.loads(path.read_text())
    change(file)  # type: ignore[operator]
    path.write_text(json.dumps(file))
    with pytest.raises(PoolError, match=rf"^{path.name}: .*({message})"):
        list(items_from_queries(path, [scm_of("p", versions)]))


def test_without_caps_the_pipeline_stores_the_complete_set_and_with_caps_a_part(items: list[CausimItem]) -> None:
    cut = 0
    for item in items[::3]:
        model, question = item.task.model, item.task.question
        complete = set(work_out(model, question).answers)
        everything = store_answers(
            model, question, Caps(domain_samples=None, max_combinations=10**6, max_support=10**6)
        )
        assert set(everything.answers) == complete
        assert everything.exhausted
        few = store_answers(model, question, Caps(None, max_combinations=4, max_support=2))
        assert set(few.answers) <= complete
        assert len(few.answers) <= 2
        if few.exhausted:
            assert set(few.answers) == complete
        cut += not few.exhausted
    assert cut > 5


def test_sampled_domains_are_parts_of_the_exact_ones_and_lack_what_is_rare(versions: list[Version]) -> None:
    model = versions[-1].model
    exact = {node.noise: set(node.support) for node in model.nodes}
    found = sampled_supports(model, 2_000, 1)
    assert all(set(values) <= exact[noise] for noise, values in found.items())
    assert all(len(values) == 1 for values in sampled_supports(model, 1, 1).values())
    common = {node.noise for node in model.nodes if min(node.weights) > Fraction(1, 50)}
    assert all(set(found[noise]) == exact[noise] for noise in common)


# --- Verdicts on the replies of the vectors, and their reasons -------------------------------------------------------


def judge(name: str) -> Judge:
    record = next(record for record in vectors("question") if record["id"] == name)
    source = module_text(bundles()[record["program"]], comments=False)
    return Judge(Task(source, questions()[name][1], record["scenario"]))


def test_replies_of_the_vectors_get_their_rewards() -> None:
    compared = 0
    for record in vectors("verdict"):
        judging = judge(record["question"])
        for reply in record["replies"]:
            verdict = judging.judge_reply(reply["text"])
            assert verdict.reward == reply["reward"], reply["why"]
            assert (verdict.why is None) is bool(reply["reward"])
            compared += 1
            if reply["why"] in ("no object", "not closed"):
                assert verdict.why == "no_object"
            if reply["why"] in ("missing key", "extra key", "one key in two cases", "nested one level down"):
                assert verdict.why == "wrong_keys"
    assert compared > 300


def test_answers_of_the_vectors_get_their_reasons() -> None:
    for record in vectors("question"):
        judging = judge(record["id"])
        for given in record["expect"].get("reasons", []):
            verdict = judging.judge_answer({key: symbol(value) for key, value in given["answer"].items()})
            assert (verdict.reward, verdict.nodes) == (given["reward"], given["reasons"])
            assert verdict.answer is not None
            assert plain(verdict.answer) == given["answer"]


def test_abductions_have_no_reasons_by_node() -> None:
    name = next(record["id"] for record in vectors("question") if record["type"] == "abduction")
    _, question = questions()[name]
    assert judge(name).judge_answer(dict.fromkeys(question.unknown, '"x"')).nodes is None
