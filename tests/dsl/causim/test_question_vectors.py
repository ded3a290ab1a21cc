"""Questions, replies, pass@k and majorities of the shared vectors, by running every world."""

from __future__ import annotations

from functools import cache

from calibrant.dsl.causim.model import assignment_text, symbol
from calibrant.dsl.causim.reference import Worked, work_out
from calibrant.dsl.causim.score import extract, majority, pass_at_k, reasons
from tests.support.causim.vectors import QUESTIONS, answer_texts, printed, questions, vectors


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
