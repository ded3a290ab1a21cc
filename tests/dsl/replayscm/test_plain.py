"""What is read quickly or met again has the verdict that the rules give to it when it is read in full, for once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.memory import CacheBudget
from calibrant.dsl.replayscm import extraction
from calibrant.dsl.replayscm.extraction import EXTRACTORS, PLAIN, Kind
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.effort import examples
from tests.support.replayscm.problems import answer_of, legal_maps, problems

SCM = '{"mechanisms": {"X1": "(not X3)", "X4": "(xor X1 X6)"}}'
ROOTS = '{"roots": ["X3", "X6"], "mechanisms": {"X1": "(not X3)"}}'
PIECES = (
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        "\\",
        "\\u0058",
        "\\ud800",
        "\ud800",
        "\u2028",
        "\x0b",
        "\x1c",
        "\u00a0",
        "\ufeff",
    ),
    *("\n", "\r", "\t", " ", "\x00", "NaN", "1e999", "9" * 30, "null", "true", "0", "```json\n", "\n```", "answer: "),
    *(
        '"mechanisms"',
        '"mechanisms": {}',
        '"roots"',
        '"roots": []',
        '"X1"',
        '"X1": "X3", ',
        "X3",
        "(",
        ")",
        "é",
        "\U0001d51b",
    ),
    *(SCM, ROOTS, '{"answer": ', '"alternative": {"mechanisms": {}}'),
)


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Return a response with pieces put in, cut out and doubled anywhere."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.sampled_from((start, start + 1, start + 4)))
        text = text[:start] + draw(st.sampled_from(("", *PIECES))) + text[draw(st.sampled_from((start, end))) :]
    return text


ANSWERS = st.sampled_from(
    (SCM, ROOTS, SCM.replace(": {", ":\n{"), f"I think:\n```json\n{SCM}\n```", f" {ROOTS}\n", f"[{SCM}]")
)


@settings(max_examples=examples(600))
@given(mutated(ANSWERS), st.sampled_from(("paper", "published")), st.sampled_from(("scm", "roots", "alternative")))
def test_a_plain_answer_is_what_the_rule_comes_to(text: str, rule: str, kind: Kind) -> None:
    plain = PLAIN[rule](text, kind)
    if plain is not None:
        found = EXTRACTORS[rule](text, kind)
        assert plain == (found.candidates[0], found.strict_json)
        assert (len(found.candidates), found.broken) == (1, False)


@pytest.mark.parametrize(
    ("text", "kind", "strict"),
    [
        (SCM, "scm", True),
        (f"{SCM}\r\n", "scm", True),
        (f" {SCM}", "scm", False),
        (SCM.replace(": {", ":\n{"), "scm", False),
        (f"So:\n```json\n{SCM}\n```\n", "scm", False),
        (ROOTS, "roots", True),
    ],
)
def test_ordinary_answers_are_plain(text: str, kind: Kind, strict: bool) -> None:
    answer = json.loads(ROOTS if kind == "roots" else SCM)
    assert PLAIN["paper"](text, kind) == (answer, strict)
    assert PLAIN["published"](text, kind) == ((answer, strict) if text.strip()[0] == "{" else None)


@pytest.mark.parametrize(
    "text", [f"[{SCM}]", f"{SCM} {SCM}", SCM.replace("X3", "\\u0058"), '{"mechanisms": {"X1": 1}}']
)
def test_what_could_be_read_in_two_ways_is_left_to_the_rules(text: str) -> None:
    published = PLAIN["published"](text, "scm")
    assert published is None
    assert extraction.extract_published(text, "scm") is not None


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_verdict_is_the_same_with_and_without_what_was_kept(data: st.DataObject) -> None:
    problem: Problem = data.draw(problems())
    texts: list[str] = []
    for _ in range(3):
        answer: dict[str, Any] = answer_of(
            problem, data.draw(legal_maps(problem.task.disclosure, problem.sealed.latent_order))
        )
        spelled = st.sampled_from((json.dumps(answer), f"So:\n{json.dumps(answer, indent=1)}\n"))
        texts.append(data.draw(mutated(spelled)))
    rule = data.draw(st.sampled_from(("paper", "published")))
    kept = Evaluator(problem, extractor=rule)
    for text in data.draw(st.lists(st.sampled_from(texts), min_size=3, max_size=8)):
        alone = Evaluator(problem, extractor=rule)._score_extracted(EXTRACTORS[rule](text, kept.shape))
        again = kept.score_text(text)
        assert again.to_dict() == alone.to_dict()
        assert (again.answer, again.strict_json, again.model) == (alone.answer, alone.strict_json, alone.model)


def test_a_full_store_begins_anew_and_long_texts_are_not_kept() -> None:
    budget = CacheBudget(3, longest=5)
    one, other = budget.shelf(), budget.shelf()
    for shelf, text in ((one, "a"), (other, "b"), (one, "c")):
        budget.store(shelf, text, text)
    budget.store(one, "longer", "longer")
    assert (dict(one.made), dict(other.made)) == ({"a": "a", "c": "c"}, {"b": "b"})
    budget.store(other, "d", "d")
    assert (dict(one.made), dict(other.made)) == ({}, {"d": "d"})
