"""Readers of answers: thoughts by the plain reference, and the paper's, published and lenient rules beside each other.

What the paper's rule reads the lenient reader reads alike; an answer in another form keeps its value; where the fast
way takes one reading for all rules, the published rule is asked by itself; a response without an answer has one reason.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import calibrant
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.responses import EXCLUDED, REASONS, SAME, WRONG_FORMAT, Reading, ReadingOptions, Response
from calibrant.bench.scoring.reading import AnswerRules, item_rules, read_response
from calibrant.datasets import right_answer
from calibrant.dsl.answer_text import read_answer_text
from calibrant.dsl.lenient_json import comparable, read_leniently
from tests.oracles.independent import require
from tests.oracles.thought_marks import LITERALS, WORDS, outside_thoughts

ITEMS = 3  # of each bundled pool
WRAPPERS = ("answer", "final", "result", "arguments", "output")
MARKS = (*LITERALS, *(f"<{word}>" for word in WORDS), *(f"</{word}>" for word in WORDS))
PIECES = (
    *MARKS, "< think >", "<Think a='1'>", "</ THINK\t>", "<thinker>", "<think\n>", "`", "``", "<", ">", "<think ",
    "a", " ", "\n", "{", "}", "[", "]", '"', "'", ":", ",", "\\", "{}", '{"a": 1}', "```json\n", "```", "answer:\n",
    "<answer>", "</answer>", "\\boxed{", "// c\n", "/* c */", "#", "None", "NaN", "1e999", "9" * 30, "\ud800", "\x00",
    "\u201c", "\u201d", "\u2018", "\u2028", "rule: conjunctive\n", "blickets: A\n", "frequency: 1\n", "model:\n",
    "mechanisms:\n",
)  # fmt: skip


class FuzzedItem(NamedTuple):
    """An item with its rules and an answer that is right."""

    benchmark: Benchmark[Any]
    item: Any
    rules: AnswerRules
    answer: dict[str, Any]


@cache
def fuzzed_items() -> tuple[FuzzedItem, ...]:
    """Return items of all benchmarks that are answered at once."""
    items = []
    for name in TITLES:
        of = benchmark(name)
        for pool in of.bundled:
            for item in calibrant.load_pool(calibrant.datasets.bundled_pool(pool))[:ITEMS]:
                answer = right_answer(item)
                if answer:
                    items.append(FuzzedItem(of, item, item_rules(of, item), answer))
    return tuple(items)


def case(rng: random.Random) -> str:
    """One text; the outcome is its kind and the reason that its reading has."""
    if rng.random() < 0.4:
        return _marks(rng)
    fuzzed = rng.choice(fuzzed_items())
    kind = rng.choice(("form", "damaged", "noise"))
    text = _other_form(rng, fuzzed.answer)
    if kind == "form":
        _require_value(fuzzed, text)
    elif kind == "damaged":
        text = _damaged(rng, text)
    else:
        text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(30))) + rng.choice(("", text))
    reading = _require_order(fuzzed, text)
    return f"{fuzzed.benchmark.name}: {kind}: {reading.reason or 'read'}"


def _marks(rng: random.Random) -> str:
    text = "".join(rng.choice(MARKS if rng.random() < 0.5 else PIECES) for _ in range(rng.randrange(12)))
    expected = ("", False)
    for policy, opened in (("strip", False), ("opened", True)):
        read = read_answer_text(text, policy)  # type: ignore[arg-type]  # one of the policies
        expected = outside_thoughts(text, opened=opened)
        require((read.text, read.is_unclosed) == expected, f"{policy}: {read} for {expected} of {text!r}")
    require(read_answer_text(text, "keep").text == text, f"keep: {text!r}")
    return f"marks: {'unclosed' if expected[1] else 'outside' if expected[0].strip() else 'nothing'}"


def _require_value(fuzzed: FuzzedItem, text: str) -> None:
    """Require that the lenient reader by itself reads the value of the answer in another form."""
    stated = read_leniently(text, fuzzed.rules.shape)
    require(stated.answer is not None, f"not read: {stated.problem} {text!r:.400}")
    shaped = fuzzed.rules.shape.match(fuzzed.answer)
    assert shaped is not None
    require(comparable(stated.answer) == comparable(shaped.answer), f"another value: {stated.answer} of {text!r:.400}")


def _require_order(fuzzed: FuzzedItem, text: str) -> Reading:
    """Require what holds between the readings of a text by each rule; return that of the paper's."""
    response = Response(text)
    paper, published, lenient = (
        read_response(fuzzed.rules, response, ReadingOptions(name)) for name in ("paper", "published", "lenient")
    )
    for reading in (paper, published, lenient):
        require(not reading.reason or reading.reason in REASONS, f"{reading.reason!r} is no reason")
        require(reading.reason not in EXCLUDED, "a text is excluded")
        require(bool(reading.reason) or reading.answer is not None, "no answer and no reason")
    if not paper.reason:
        alike = not lenient.reason and comparable(paper.answer) == comparable(lenient.answer)
        require(alike, f"the lenient reader reads {lenient.answer} for {paper.answer} of {text!r:.400}")
    require((paper.reason == WRONG_FORMAT) == bool(paper.reason and not lenient.reason), f"{paper.reason}: {text!r}")
    if paper.published is SAME:
        by_itself = fuzzed.rules.read_published(text)
        require(not by_itself.problem, f"the published rule reads nothing: {text!r:.400}")
        same = comparable(by_itself.answer) == comparable(paper.answer)
        require(same or _score(fuzzed, by_itself.answer) == _score(fuzzed, paper.answer), f"differs: {text!r:.400}")
    else:
        require(published.reason != "" or paper.published is not None, f"published: {text!r:.400}")
    return paper


def _score(fuzzed: FuzzedItem, answer: object) -> object:
    return repr(calibrant.score(fuzzed.item, answer).to_dict())


# --- Another form of an answer, with the same value -------------------------------------------------------------------
def _other_form(rng: random.Random, answer: dict[str, Any]) -> str:
    value: Any = answer
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        as_text = json.dumps if not isinstance(value, str) else lambda v: [v]  # a text in a text is no container
        value = rng.choice((lambda v: {rng.choice(WRAPPERS): v}, lambda v: [v], as_text))(value)
    text = _spell(rng, value, rng.choice(("strict", "strict", "tolerant")))
    around: tuple[Callable[[str], str], ...] = (
        lambda text: text,
        lambda text: f"The answer:\n```json\n{text}\n```\nDone.",
        lambda text: f"Some words, (no) answer yet.\n\n{text}",
        lambda text: f"<answer>{text}</answer>",
        lambda text: f"{text} {text}",
    )
    return rng.choice(around)(text)


def _spell(rng: random.Random, value: Any, style: str) -> str:
    """Spell a value; tolerant: other quotes, comments, last commas and Python's words."""
    if style == "strict":
        return json.dumps(value, indent=rng.choice((None, None, 1)), ensure_ascii=rng.random() < 0.5)
    space = rng.choice(("", " ", "\n", " // c\n", "/* c */", " # c\n"))
    last = rng.choice(("", ","))
    if isinstance(value, dict):
        members = [f"{_quote(rng, key)}{space}:{space}{_spell(rng, part, style)}" for key, part in value.items()]
        return "{" + space + f",{space}".join(members) + (last if members else "") + space + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(_spell(rng, part, style) for part in value) + (last if value else "") + "]"
    if isinstance(value, str):
        return _quote(rng, value)
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value)


def _quote(rng: random.Random, text: str) -> str:
    spelled = json.dumps(text)
    if "\\" in spelled or not set("'“”„‘’").isdisjoint(text):  # noqa: RUF001  # quotes of prose
        return spelled
    opens, closes = rng.choice((('"', '"'), ("'", "'"), ("“", "”"), ("„", "“"), ("‘", "’")))  # noqa: RUF001
    return f"{opens}{text}{closes}"


def _damaged(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(text) + 1)
        match rng.randrange(3):
            case 0:
                text = text[:place] + text[place + rng.randrange(1, 4) :]
            case 1:
                text = text[:place] + rng.choice(PIECES) + text[place:]
            case _:
                text = text[:place] if rng.random() < 0.5 else text[place:] + text[:place]
    return text
