"""JSON objects of a text, and thoughts apart from the answer."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, SupportsIndex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import calibrant
import calibrant.dsl.json_objects
from calibrant.datasets import bundled_pool, right_answer
from calibrant.dsl.answer_text import read_answer_text
from calibrant.dsl.errors import PoolError
from calibrant.dsl.json_objects import MAX_NESTING, decode, json_fragments, json_objects
from calibrant.dsl.parse_limits import possessive
from calibrant.dsl.yaml_text import UNREADABLE, NotPlainError, load_whole, load_yaml, plain_document
from tests.support.commands import CHECKOUT
from tests.support.effort import examples

PRODUCT = ("dsl", "solvers", "audits", "baselines", "bench", "calibrant_tasks")

# --- JSON objects of a text: the same as decoding at every brace, and linear on the texts where that is not -----------
Located = tuple[str, int, int]  # a value by its repr, which tells NaN from NaN's absence and 1 from 1.0 from True

TOKENS = [
    *'{}[]":,\\ \n\t0a',
    *(
        '{"',
        '"}',
        '{"a":',
        '{"b": ',
        '"a"',
        '\\"',
        "\\\\",
        "\\u00",
        "\\ud83d",
        "\\ude00",
        "\\n",
        "}}",
        "]}",
        "{}",
        "[]",
    ),
    *("1", "-", "-1.5", "1e5", "01", ".5", "E+", "true", "null", "NaN", "-Infinity", "Infinit", "False"),
    *("\0", "\x7f", "\u2028", "\ufeff", "\xa0", "\ud800", "\udc00", "\U0001f600", "é", "٣"),
]
NOISE = st.lists(st.sampled_from(TOKENS), max_size=25).map("".join)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1.5, float("inf"), "", "{", '"}', '{"a":1}', "\\", "\n", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "{", '"']), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def jsonish(draw: st.DrawFn) -> str:
    """JSON and noise one after the other, then some characters cut out and some tokens put in."""
    dumped = st.builds(json.dumps, VALUES, indent=st.sampled_from([None, 1]), ensure_ascii=st.booleans())
    text = "".join(draw(st.lists(dumped | NOISE, max_size=4)))
    for _ in range(draw(st.integers(0, 3))):
        place, width = draw(st.integers(0, len(text))), draw(st.integers(0, 2))
        text = text[:place] + draw(st.sampled_from(["", *TOKENS])) + text[place + width :]
    return text


def _decoded_at_every_brace(text: str) -> list[Located]:
    decoder, found = json.JSONDecoder(), []
    for start, character in enumerate(text):
        if character == "{":
            try:
                value, end = decoder.raw_decode(text, start)
            except ValueError:
                continue
            found.append((repr(value), start, end))
    return found


def _found(text: str) -> list[Located]:
    return [(repr(value), start, end) for value, start, end in json_objects(text)]


@settings(max_examples=examples(600))
@given(jsonish() | NOISE)
@example('{"a":{"b":1},"c":tru}{"{\\"a\\":1}":"{}"}')
@example('{"a": "{" , "b" : {"x{":"}"} }')
@example('{"a":1,"b":{},"a":{"a":NaN}}')
@example('{"n":' + "9" * 4300 + '}{"n":' + "9" * 4301 + "}")
@example('{"\\ud83d\\ude00":"\\ud83d"}{"\ud83d\ude00":1}{"\\ud83d\\u12":1}')
def test_the_objects_are_those_that_decode_at_their_brace(text: str) -> None:
    assert _found(text) == _decoded_at_every_brace(text)


@settings(max_examples=examples(300))
@given(jsonish() | VALUES.map(json.dumps))
@example("1")
@example("[1] 2")
@example('{"a":1}}')
@example("\ufeff{}")
@example("")
def test_decoding_the_whole_text_is_what_json_does(text: str) -> None:
    text = text.strip()
    try:
        expected = repr(json.loads(text))
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011  # the type is all that is promised
            decode(text)
    else:
        assert repr(decode(text)) == expected


CHAINS = {"objects": ('{"a":', "1", "}"), "both": ('{"a":[', "", "]}"), "spaced": ('{ "a" : [ 1 , ', "{}", " ] }")}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("depth", [1, 249, 250, 251, 499, 500, 501, 3000])
def test_an_object_that_nests_too_deeply_does_not_decode_but_those_inside_do(chain: str, depth: int) -> None:
    before, core, after = CHAINS[chain]
    text = before * depth + core + after * depth
    per_link, innermost = before.count("{") + before.count("["), core.count("{")
    starts = [i * len(before) for i in range(depth) if (depth - i) * per_link + innermost <= MAX_NESTING]
    starts += [depth * len(before)] * innermost
    assert [start for _, start, _ in json_objects(text)] == starts
    assert all(end == len(text) - start // len(before) * len(after) for _, start, end in json_objects(text))
    if starts[0] == 0:
        assert decode(text) == json.loads(text)
    else:
        with pytest.raises(ValueError, match="not one JSON value"):
            decode(text)


def _standing_deep(task: Callable[[], object], frames: int) -> object:
    return _standing_deep(task, frames - 1) if frames else task()


def test_what_decodes_does_not_depend_on_how_deep_the_caller_stands() -> None:
    text = '{"a":' * 400 + "[]" + "}" * 400
    expected = json.loads(text)

    def decode_here() -> object:
        with nullcontext() if sys.version_info >= (3, 12) else pytest.raises(RecursionError):
            json.loads(text)  # frames of C count in the limit of 3.11 alone
        return decode(text)

    assert _standing_deep(decode_here, sys.getrecursionlimit() - 300) == expected


class CountedText(str):
    """A text that counts the characters that are read of it."""

    __slots__ = ("read",)
    read: int

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self.read += max(len(part), 1)
        return part

    def find(self, sub: str, start: Any = 0, end: Any = None) -> int:
        place = super().find(sub, start, end)
        self.read += (place if place >= 0 else len(self)) - start + 1
        return place

    def index(self, sub: str, start: Any = 0, end: Any = None) -> int:
        place = self.find(sub, start, end)
        if place < 0:
            raise ValueError
        return place


def _characters_read(text: str) -> int:
    """Characters looked at to find every object, those that C code is handed included."""
    counted = CountedText(text)
    counted.read = 0
    scan_scalar = calibrant.dsl.json_objects._scan_scalar

    def counting_scalar(text: str, position: int) -> tuple[Any, int]:
        value, end = scan_scalar(text, position)
        counted.read += end - position
        return value, end

    def counting_string(literal: str, position: int) -> tuple[str, int]:
        counted.read += len(literal)  # a failure costs all of what was handed over
        value, end = scanstring(literal, position)
        return value, end

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrant.dsl.json_objects, "_scan_scalar", counting_scalar)
        patch.setattr(calibrant.dsl.json_objects, "scanstring", counting_string)
        assert sum(1 for _ in json_objects(counted)) <= text.count("{")
    return counted.read


MOST_READS = 12  # per character: two attempts, in each a quote is searched, counted back from, copied and unescaped
HOSTILE = {
    "braces": "{",
    "objects": '{"a":',
    "arrays": '{"a":[',
    "alternating": "[{",
    "in strings": '{"a":"{"a":"',
    "empty": "{}",
    "bad strings": '{"\n',
    "escaped quotes": '{"\\"',
    "backslashes": '{"\\',
    "spaces": "{    ",
    "members": '{"a":1,',
    "closed members": '{"a":{},',
    "NUL": "{\0",
    "surrogates": '{"\ud800":',
    "digits": '{"a":1111111',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(kind: str) -> None:
    text = HOSTILE[kind] * (20_000 // len(HOSTILE[kind]))
    assert _characters_read(text) <= MOST_READS * len(text)
    assert _characters_read('{"' + text + '"}') <= MOST_READS * (len(text) + 4)


@settings(max_examples=examples(150), deadline=None)
@given(NOISE.filter(bool), NOISE, st.integers(1, 60))
def test_no_repeated_text_is_read_more_than_a_few_times(before: str, after: str, count: int) -> None:
    text = before * count + after * count
    assert _characters_read(text) <= MOST_READS * (len(text) + 1)


def test_one_attempt_holds_no_more_than_the_nesting_limit() -> None:
    """A quarter of a million open arrays are not kept: that would be some forty megabytes."""
    text = '{"a":' + "[" * 250_000
    tracemalloc.start()
    try:
        assert list(json_objects(text)) == []
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a":{},"b":"unfin', [{"a": {}}]),
        ('{"a":{}', [{"a": {}}]),
        ('{"a":{}} {"b":[] /* c */}', [{"b": []}]),
        ('{"a":"x","a":[1,', [{}]),
        ('{"o":{"a":[1],"b":[2,{"c":3,"d":tru', [{}, {"a": [1]}, {"c": 3}]),
        ('{"a":1, {"b":2,}', [{"a": 1}, {"b": 2}]),
        ('{"a":{"b":2}} ["c"', []),
        ('{"a":[{"b":1}]]', [{"a": [{"b": 1}]}]),
        ('{"t":"{"a":1,"b', [{"t": "{"}, {"a": 1}]),
    ],
)
def test_what_an_object_held_before_it_broke(text: str, members: list[dict[str, Any]]) -> None:
    found = sorted(json_fragments(text), key=lambda fragment: fragment.start)
    assert [fragment.value for fragment in found] == members
    assert all(text[fragment.start] == "{" for fragment in found)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4), st.data())
def test_an_object_cut_short_keeps_the_members_before_the_cut(value: dict[str, Any], data: st.DataObject) -> None:
    members = [f"{json.dumps(key)}:{json.dumps([member])}" for key, member in value.items()]
    text = "{" + ",".join(members)
    cut = data.draw(st.integers(1, len(text)))
    ends = [len("{" + ",".join(members[: i + 1])) for i in range(len(members))]
    kept = [(key, [member]) for (key, member), end in zip(value.items(), ends, strict=True) if end <= cut]
    outermost = [fragment for fragment in json_fragments(text[:cut]) if fragment.start == 0]
    assert [repr(fragment.value) for fragment in outermost] == [repr(dict(kept))]


# --- Plain YAML from events says what the safe loader says, type by type; whatever else there is goes to that loader -


SCALARS = [
    "~", "null", "Null", "NULL", "nUll", "yes", "Yes", "no", "No", "on", "On", "OFF", "off", "true", "True", "TRUE",
    "tRUE", "y", "n", "0", "-0", "+1", "-17", "012", "08", "0o7", "0x1F", "0xfg", "0b11", "0b2", "1_000", "_1",
    "1__0", "190:20:30", "-1:30", "1:90", "9223372036854775808", "1.5", "-.5", "1.", ".5", "1e3", "1.0e+3", "1.0e3",
    "1_0.5", "1:30.5", ".inf", "-.INF", "+.Inf", ".nan", ".NaN", "nan", "inf", "1e999", "2001-01-01", "2001-1-1",
    "2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43Z", "2001-12-14", "'0101'", '"1"', "''", '"~"', "'a''b'",
    '"\\x41\\u263a\\n"', "X1", "a:b", "a#b", "-x", "?x", "(and-X1)", "\u263a",
]  # fmt: skip


def shape(value: Any) -> Any:
    """Return a value with the types of everything in it, in order."""
    if isinstance(value, dict):
        return [(shape(key), shape(one)) for key, one in value.items()]
    return [shape(one) for one in value] if isinstance(value, list) else (type(value), repr(value))


@pytest.mark.parametrize("scalar", [*SCALARS, "2001-12-14 21:59:43", "|\n  two\n  lines\n", ">-\n  folded\n  text"])
def test_scalars_are_what_the_loader_makes_of_them(scalar: str) -> None:
    text = f"a: {scalar}\nb:\n- {scalar}\n"
    assert shape(plain_document(text)) == shape(load_whole(text))


def test_keys_are_scalars_too() -> None:
    text = "".join(f"{scalar}: {i}\n" for i, scalar in enumerate(["1", "~", "1.5", "2001-01-01", "no", "'1'", "? x\n"]))
    assert shape(plain_document(text)) == shape(load_whole(text))


NOT_PLAIN = [
    "a: &a x\nb: *a", "&a [x]", "!!str 1", "! 1", "a: !!binary eA==", "<<: {a: b}", "{a: 1, <<: {a: 2}}", "a: 1\na: 2",
    "1: a\n1.0: b\n", "{[a]: b}", "? {a: b}\n: c", "a: =", "=: a", "a: 2024-13-45", "--- a\n--- b", "", "# nothing",
    "[" * 201 + "]" * 201,
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_the_loader(text: str) -> None:
    with pytest.raises(NotPlainError):
        plain_document(text)
    assert outcome(load_yaml, text) == outcome(load_whole, text)


def outcome(load: Any, text: str) -> Any:
    try:
        return shape(load(text))
    except PoolError as error:
        return str(error)


PIECES = [
    *SCALARS,
    " ", "\n", "\n  ", "\n- ", "- ", ": ", "? ", "{", "}", "[", "]", ", ", "&a ", "*a", "!!int ", "<<: ", "|", ">",
    "#", "a: ", "b: ", "---\n", "...\n", "%YAML 1.1\n", "\t", "\0", "\ufeff", "\u2028", "\x85",
]  # fmt: skip


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read_or_refused_as_by_the_loader(text: str) -> None:
    expected = outcome(load_whole, text)
    assert outcome(load_yaml, text) == expected
    try:
        made = plain_document(text)
    except (NotPlainError, *UNREADABLE):
        return
    assert shape(made) == expected


# --- Thoughts apart from the answer text, whatever stands in them -----------------------------------------------------
ITEM = calibrant.load_pool(bundled_pool("causim"))[0]
RIGHT = json.dumps(right_answer(ITEM))
PLAIN = st.text(st.characters(exclude_characters="<>[]`◁▷|", exclude_categories=["Cs"]), max_size=40)
DRAFTS = st.one_of(PLAIN, st.just(RIGHT), st.builds("{} {}".format, PLAIN, st.just(RIGHT)))


def test_the_draft_is_right_where_it_is_the_answer() -> None:
    assert calibrant.score(ITEM, RIGHT).correct is True


@given(DRAFTS, DRAFTS)
def test_thoughts_change_nothing(draft: str, text: str) -> None:
    if "assistantfinal" in draft + text or text.lstrip().startswith("analysis"):
        return
    alone = calibrant.score(ITEM, text).correct
    assert calibrant.score(ITEM, f"<think>{draft}</think>{text}").correct is alone
    assert calibrant.score(ITEM, f"{draft}</think>{text}").correct is alone
    assert calibrant.score(ITEM, f"<think>{draft}").correct is False


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>b", "b"),
        ("b<think>a", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a</thinking>b", ""),
        ("< Think x='1' >a</ THINK >b", "b"),
        ("`<think>` b", "`<think>` b"),
        ("``<think>`` b", "``"),
        ('{"a": "<think>"}', '{"a": "<think>"}'),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "b"),
        ("<|channel|>analysis<|message|>a<|end|>b", "b"),
        ("analysisWe think.assistantfinalb", "b"),
    ],
)
def test_what_is_outside(text: str, answer: str) -> None:
    assert read_answer_text(text).text == answer


def test_a_kelvin_sign_is_no_letter_of_a_mark() -> None:
    assert read_answer_text("<thin\N{KELVIN SIGN}>a").text == "<thin\N{KELVIN SIGN}>a"


def test_no_pattern_repeats_a_group_possessively_but_where_the_interpreter_can() -> None:
    """CPython 3.11.0 to 3.11.4 match too much there (gh-106052); `possessive` knows, and alone spells it."""
    spelled = re.compile(r"\)(?:[*+?]|\{[^}]*\})\+")
    sources = [path for name in PRODUCT for path in sorted((CHECKOUT / name).rglob("*.py"))]
    assert len(sources) > 500
    assert {path.name for path in sources if spelled.search(path.read_text(encoding="utf-8"))} == {"parse_limits.py"}


@pytest.mark.parametrize("times", ["*", "+", "?", "{2,}"])
def test_a_possessive_group_matches_what_an_atomic_one_does(times: str) -> None:
    group = r'"[^"]*+":1(?:,(?=")|(?=\}))'
    ours, atomic = re.compile(possessive(group, times)), re.compile(f"(?>(?:{group}){times})")
    for length in range(7):
        for letters in product('":1,}', repeat=length):
            text = "".join(letters)
            assert str(ours.match(text)) == str(atomic.match(text)), text
