"""From response text to answer: the published vectors, the official samples, and the protocol's rule case by case."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.dsl.replayscm.extraction
from calibrant.dsl.memory import CacheBudget
from calibrant.dsl.replayscm import extraction
from calibrant.dsl.replayscm.extraction import EXTRACTORS, PLAIN, Extraction, Kind, extract_published, paper
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator
from tests.dsl.test_json_objects import jsonish
from tests.support.effort import examples
from tests.support.replayscm.strategies import answer_of, legal_maps, problems
from tests.support.shared import shared_file, shared_records

KINDS: tuple[Kind, ...] = get_args(Kind)
MAP = '{"mechanisms":{"X3":"(xor X1 X2)"}}'
ROOTS = '{"roots":["X1","X2"],"mechanisms":{"X3":"(not X1)"}}'
ALTERNATIVE = (
    '{"alternative":{"mechanisms":{"X3":"(not X1)"}},"experiment":{"type":"hard_do","assignments":{"X1":1}},'
    '"witness":{"rootAssignment":{"X1":0},"differences":[{"variable":"X3","reference":0,"alternative":1}]}}'
)
ANSWERS: dict[Kind, str] = {"scm": MAP, "roots": ROOTS, "alternative": ALTERNATIVE}


def _written(value: object) -> str:
    """Distinguishes 1, 1.0 and true, and makes NaN equal to itself."""
    return json.dumps(value, sort_keys=True)


def _with_floats(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    if isinstance(value, dict):
        return float(value["$float"]) if list(value) == ["$float"] else {k: _with_floats(v) for k, v in value.items()}
    return value


def test_the_published_rule_agrees_with_every_vector() -> None:
    vectors = list(shared_records("extraction_vectors.jsonl"))
    assert len(vectors) == 81
    for vector in vectors:
        found, expect = extract_published(vector["rawResponse"], "scm"), vector["expect"]
        selected = [] if expect["selected"] is None else [_with_floats(expect["selected"])]
        assert _written(found.candidates) == _written(selected), vector["id"]
        assert found.failure == expect.get("errorCategory"), vector["id"]
        assert not found.broken


def _official_responses() -> list[tuple[str, dict[str, Any]]]:
    """Return the 18 stored raw responses with the answers that were scored."""
    with shared_file("official_sample.runtime.yaml").open(encoding="utf-8") as file:
        problems = yaml.load(file, Loader=yaml.CSafeLoader)["problems"]
    results = [result for problem in problems for result in problem["modelResults"].values()]
    return [(result["rawResponse"], result["extractedAnswer"]) for result in results]


def _is_answer(found: Extraction, answer: dict[str, Any]) -> bool:
    """Compare with the stored answer, less the reasoning that two responses carry in the same object."""
    best = dict(found.candidates[0])
    best.pop("reasoningTrace", None)
    return best == answer


def test_the_protocol_finds_the_scored_answer_in_every_official_response() -> None:
    responses = _official_responses()
    assert len(responses) == 18
    assert all(_is_answer(paper(text, "alternative"), answer) for text, answer in responses)


def test_the_published_rule_loses_the_official_responses_that_break_after_the_answer() -> None:
    kept = lost = 0
    for text, answer in _official_responses():
        whole = _is_answer(extract_published(text, "alternative"), answer)
        kept, lost = kept + whole, lost + (not whole)
        assert paper(text, "alternative").broken == (not whole)
    assert (kept, lost) == (14, 4)


WRAPPERS = {
    "bare": "{}",
    "fence": "```json\n{}\n```",
    "prose": "f_{{X3}} is set {{1, 2}}, so: {} Done. {{ }}",
    "answer key": '{{"answer":{},"p":1,"q":2,"r":3,"s":4}}',
    "array": "[{}]",
    "byte order mark": "\ufeff{}",
    "tag": "<answer>{}</answer>",
    "after a broken draft": '{{"mechanisms": {{"X3": {}',
    "reasoning in front": '<think>{{"X3":"X1","X4":"X2","X5":"X1","X6":"X1","X7":"X1"}}</think>{}',
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_answer_is_found_whatever_stands_around_it(kind: Kind, wrapper: str) -> None:
    found = paper(WRAPPERS[wrapper].format(ANSWERS[kind]), kind)
    assert found.candidates[0] == json.loads(ANSWERS[kind])
    assert (found.failure, found.broken) == (None, False)


RANKED = [  # kind, text, and the candidates in order
    # shape before keys: a bare map is no answer about roots, roots are none without a map
    ("roots", f'{{"roots":[],"a":1,"b":2}} {{"mechanisms":{{}}}} {ROOTS}', [ROOTS, '{"mechanisms":{}}', None]),
    ("roots", '{"roots":["X1"],"mechanisms":[]} {"roots":{},"mechanisms":{}}', ['{"roots":{},"mechanisms":{}}', None]),
    (
        "alternative",
        f'x {ALTERNATIVE} {{"alternative":{{}},"experiment":{{}},"witness":{{}},"a":1}}',
        [ALTERNATIVE, None],
    ),
    (
        "alternative",
        '{"experiment":{},"witness":{},"a":1} {"alternative":{"mechanisms":{}}}',
        ['{"alternative":{"mechanisms":{}}}', None],
    ),
    ("alternative", '{"witness":{},"a":1} {"experiment":{}}', ['{"experiment":{}}', None]),
    ("scm", '{"mechanisms":[],"parents":[],"mechanism":""} {"mechanisms":{}}', ['{"mechanisms":{}}']),
    # then keys
    ("scm", 'a {"mechanisms":{"X3":"X1"}} {"mechanisms":{},"a":1}', ['{"mechanisms":{},"a":1}', None]),
    # then length of the text, white space and escapes included
    ("scm", 'a {"mechanisms":{"X3":"X1"}} {"mechanisms": {"X3":"X2"}}', ['{"mechanisms":{"X3":"X2"}}', None]),
    # then the earliest
    ("scm", 'a {"mechanisms":{"X3":"X1"}} {"mechanisms":{"X3":"X2"}}', ['{"mechanisms":{"X3":"X1"}}', None]),
    # objects inside an answer, and inside strings, are candidates too
    ("scm", 'a {"mechanisms":{"mechanisms":{}}}', ['{"mechanisms":{"mechanisms":{}}}', '{"mechanisms":{}}']),
    ("scm", '{"mechanisms":"{"mechanisms":{}}"}', ['{"mechanisms":{}}']),
    # what has no part of the shape stands in for an answer only when there is none
    ("scm", '{"X3":"X1"} {"a":1,"b":2}', ['{"a":1,"b":2}']),
    ("scm", "{} x {}", ["{}"]),
    ("scm", '{"answer":{"mapping":{"X3":"X1"}}}', ['{"answer":{"mapping":{"X3":"X1"}}}']),
    # a text that is an answer and nothing else is not searched
    ("scm", '{"mechanisms":{"mechanisms":{},"a":1,"b":2}}', ['{"mechanisms":{"mechanisms":{},"a":1,"b":2}}']),
]


@pytest.mark.parametrize(("kind", "text", "expected"), RANKED)
def test_the_order_of_candidates(kind: Kind, text: str, expected: list[str | None]) -> None:
    """None ends a list of which only the first is written out: at least one more candidate follows."""
    found = [_written(candidate) for candidate in paper(text, kind).candidates]
    first = [_written(json.loads(answer)) for answer in expected if answer is not None]
    assert found[: len(first)] == first
    assert (len(found) > len(first)) == (None in expected)


BREAKS = {
    "reasoning cut off": ',"reasoning":"so X3 = ',
    "bad escape": ',"reasoning":"done.\\ nNext"}',
    "comment": "/* final */}",
    "Python literal": ',"ok":True}',
    "damaged number": ',"size":01}',
    "end": "",
    "wrong bracket": "]",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", BREAKS)
def test_an_answer_that_was_complete_before_its_object_broke_counts(kind: Kind, what: str) -> None:
    text = 'Here: {"answer": ' + ANSWERS[kind].removesuffix("}") + BREAKS[what]
    found = paper(text, kind)
    assert found.candidates[0] == json.loads(ANSWERS[kind])
    assert (found.broken, found.strict_json, found.failure) == (True, False, None)


def test_an_answer_that_broke_afterwards_goes_before_half_an_answer() -> None:
    found = paper(f'{{"mechanisms":{{}},"a":1,"b":2}} {ROOTS.removesuffix("}")},"note":"', "roots")
    assert found.candidates[:2] == (json.loads(ROOTS), {"mechanisms": {}, "a": 1, "b": 2})


@pytest.mark.parametrize(
    ("kind", "text", "best"),
    [
        ("scm", '{"mechanisms":{"X3":"X1","X4":"X', None),
        ("scm", '{"mechanisms":{"X3":{"a":1},"X4":"X', '{"a":1}'),
        ("roots", '{"mechanisms":{"X3":"X1"},"roots":["X1"', '{"X3":"X1"}'),
        ("alternative", ALTERNATIVE[:-20], '{"type":"hard_do","assignments":{"X1":1}}'),
        ("scm", f'{MAP} {{"mechanisms":{{"X3":"X1","X4":"X2"}},"note":"the better one, bu', MAP),
    ],
)
def test_a_part_that_is_cut_is_no_answer_and_a_whole_answer_goes_first(kind: Kind, text: str, best: str | None) -> None:
    found = paper(text, kind)
    assert not found.broken
    assert found.candidates[:1] == (() if best is None else (json.loads(best),))


FAILURES = {
    "": "empty",
    " \n\t\u00a0": "empty",
    "I could not solve this.": "no_json",
    "} {": "no_json",
    "{": "no_json",
    "42": "no_json",
    "[1, 2]": "no_json",
    "{X3: X1}": "could_not_parse",
    "{\0}": "could_not_parse",
    "{'mechanisms': {'X3': 'X1'}}": "could_not_parse",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", FAILURES)
def test_why_there_is_no_candidate(kind: Kind, text: str) -> None:
    assert paper(text, kind) == Extraction((), False, FAILURES[text])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        (MAP, True),
        (f"{MAP}\n", True),
        (f"{MAP}\r\n", True),
        ('{"a": 1, "b": "line\\nbreak"}', True),
        (f" {MAP}", False),
        (f"\n{MAP}", False),
        (f"{MAP} ", False),
        (f"{MAP}\u00a0", False),
        (json.dumps(json.loads(MAP), indent=1), False),
        ('{"mechanisms":\r{}}', False),
        (f"[{MAP}]", False),
        (f"{MAP}.", False),
        (f"```json\n{MAP}\n```", False),
        (f"{MAP}{MAP}", False),
        (f"\ufeff{MAP}", False),
    ],
)
@pytest.mark.parametrize("rule", EXTRACTORS)
def test_strict_json_is_one_object_on_one_line(rule: str, text: str, strict: bool) -> None:
    assert EXTRACTORS[rule](text, "scm").strict_json is strict


def test_an_answer_and_nothing_else_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(calibrant.dsl.replayscm.extraction, "json_objects")
    for kind, answer in ANSWERS.items():
        assert paper(f"{answer}\n", kind) == Extraction((json.loads(answer),), True, None)
        assert paper(f"see {answer}.", kind) == Extraction((json.loads(answer),), False, None)
    for text in (f"{{ {MAP}", f"{MAP} {{", f"see {MAP}{MAP}", 'see {"mechanisms":{},"a":"{}"}'):
        with pytest.raises(NameError):
            paper(text, "scm")


DEEP = 100_000


@pytest.mark.parametrize("rule", EXTRACTORS)
@pytest.mark.parametrize(
    "text",
    [
        '{"mechanisms":' * DEEP + "1" + "}" * DEEP,
        "[" * DEEP + MAP + "]" * DEEP,
        '{"a":' * DEEP,
        '{"mechanisms":{"X3":' + "1" * DEEP + "}}",
        '{"mechanisms":{"X3":"' + "\0" * DEEP + '"}}',
        "\ud800" * DEEP + "{",
    ],
    ids=range(6),
)
def test_hostile_texts_have_an_outcome(rule: str, text: str) -> None:
    found = EXTRACTORS[rule](text, "scm")
    assert bool(found.candidates) == (found.failure is None)
    assert not found.strict_json


@settings(max_examples=examples(300))
@given(jsonish(), st.sampled_from(KINDS))
def test_there_are_candidates_or_a_failure(text: str, kind: Kind) -> None:
    protocol, release = paper(text, kind), extract_published(text, kind)
    assert bool(protocol.candidates) == (protocol.failure is None)
    assert bool(release.candidates) == (release.failure is None)
    assert protocol.candidates or not release.candidates  # what the released scorer can read, the protocol's rule can


def test_rules_are_chosen_by_name() -> None:
    assert dict(EXTRACTORS) == {"paper": paper, "published": extract_published}


# --- What is read quickly or met again has the verdict that the rules give to it when it is read in full, for once ----
SCM = '{"mechanisms": {"X1": "(not X3)", "X4": "(xor X1 X6)"}}'
PLAIN_ROOTS = '{"roots": ["X3", "X6"], "mechanisms": {"X1": "(not X3)"}}'
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
    *(SCM, PLAIN_ROOTS, '{"answer": ', '"alternative": {"mechanisms": {}}'),
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


PLAIN_ANSWERS = st.sampled_from(
    (SCM, PLAIN_ROOTS, SCM.replace(": {", ":\n{"), f"I think:\n```json\n{SCM}\n```", f" {PLAIN_ROOTS}\n", f"[{SCM}]")
)


@settings(max_examples=examples(600))
@given(
    mutated(PLAIN_ANSWERS), st.sampled_from(("paper", "published")), st.sampled_from(("scm", "roots", "alternative"))
)
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
        (PLAIN_ROOTS, "roots", True),
    ],
)
def test_ordinary_answers_are_plain(text: str, kind: Kind, strict: bool) -> None:
    answer = json.loads(PLAIN_ROOTS if kind == "roots" else SCM)
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
    budget = CacheBudget(3, max_chars=5)
    one, other = budget.new_cache(), budget.new_cache()
    for cache, text in ((one, "a"), (other, "b"), (one, "c")):
        budget.store(cache, text, text)
    budget.store(one, "longer", "longer")
    assert (dict(one.newer), dict(other.newer)) == ({"a": "a", "c": "c"}, {"b": "b"})
    budget.store(other, "d", "d")
    assert (dict(one.newer), dict(other.newer)) == ({}, {"d": "d"})
