"""Verdicts on the replies of the vectors, and their reasons."""

from __future__ import annotations

from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import plain, symbol
from calibrant.solvers.causim.exact import Judge
from tests.support.causim.vectors import bundles, questions, vectors


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
