"""Readers of answers: thoughts and other forms by plain references; the paper's, published and lenient rules together.

What the paper's rule reads the lenient reader reads alike; an answer in another form keeps its value; where the fast
way takes one reading for all rules, the published rule is asked by itself; a response without an answer has one reason.
What thoughts hold changes no verdict: `<think>d</think>t`, `d</think>t` and `t` are scored alike, `<think>d` is never
right.
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
from calibrant.datasets import bundled_pool, right_answer
from calibrant.dsl.answer_text import read_answer_text
from calibrant.dsl.lenient_json import comparable, read_leniently
from calibrant.dsl.replayscm.score import answer_kind
from tests.oracles import lenient_reader
from tests.oracles.independent import require
from tests.oracles.thought_marks import LITERALS, TOKENS, WORDS, has_marks, plain_answer_text

KINDS = ("form", "damaged", "damaged", "noise", "lines", "several", "thoughts")
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
PLAIN_PIECES = tuple(piece for piece in PIECES if "`" not in piece and not has_marks(piece))
CHANNELS = (
    *TOKENS, "<|channel|>analysis", "<|channel|>final", "<|channel|>commentary", " to=functions.submit", " to=", "json",
    "assistant", "user", "assistantfinal", "analysisWe", "analysis", "final", "loose", '{"a": 1}', " ", "\n",
)  # fmt: skip
BULLETS = ("", "", "- ", "* ", "+ ", "\u2022 ", "-", "1. ", "\t")
KEY_MARKS = ("", "", "*", "**", "***", "_", "__", "`", "'", '"', "****")
ANSWER_MARKS = ("\n\\boxed{", "<answer>", "<output>", "\nFinal answer:\n", "\n**Answer**: ", "\nanswer\r\n", "\n")
MAX_PLAIN_CHARS = 2_500  # the plain reader is quadratic


class FuzzedItem(NamedTuple):
    """An item with its rules, a plain shape of its answers, and an answer that is right."""

    benchmark: Benchmark[Any]
    item: Any
    rules: AnswerRules
    shape: lenient_reader.PlainShape
    answer: dict[str, Any]


@cache
def fuzzed_items() -> tuple[tuple[FuzzedItem, ...], ...]:
    """Return items that are answered at once, by benchmark."""
    by_benchmark = []
    for name in TITLES:
        bench = benchmark(name)
        items = [item for pool in bench.bundled for item in calibrant.load_pool(bundled_pool(pool))[:ITEMS]]
        answers = ((item, right_answer(item)) for item in items)
        by_benchmark.append(
            tuple(
                FuzzedItem(bench, item, item_rules(bench, item), _plain_shape(name, item), answer)
                for item, answer in answers
                if answer
            )
        )
    return tuple(by_benchmark)


def _plain_shape(name: str, item: Any) -> lenient_reader.PlainShape:
    match name:
        case "blickets":
            return lenient_reader.rule_shape()
        case "causalab":
            return lenient_reader.frequency_shape()
        case "causim":
            return lenient_reader.exact_keys_shape(item.task.question.required_keys(item.task.model))
        case "logic":
            return lenient_reader.list_shape()
    kind = answer_kind(item)
    if kind == "alternative":
        return lenient_reader.alternative_shape()
    return lenient_reader.mechanisms_shape(item.task.training.variables, with_roots=kind == "roots")


def case(rng: random.Random) -> str:
    """One text; the outcome is its kind and the reason that its reading has."""
    if rng.random() < 0.3:
        return _marks(rng)
    fuzzed = rng.choice(rng.choice(fuzzed_items()))
    kind = rng.choice(KINDS)
    text = _other_form(rng, fuzzed.answer)
    if kind == "form":
        _require_value(fuzzed, text)
    elif kind == "damaged":
        text = _damaged(rng, text)
    elif kind == "lines":
        text = _lines(rng, fuzzed.answer)
    elif kind == "several":
        text = _several(rng, fuzzed, text)
    elif kind == "thoughts":
        draft = rng.choice(("", "Let me see.\n", text, _damaged(rng, text), _other_form(rng, fuzzed.answer)))
        text = rng.choice((text, text, _damaged(rng, text), "", "none"))
        is_checked = "`" not in draft + text and not has_marks(draft) and not has_marks(text)
        outcome = _require_unpaid(fuzzed, draft, text) if is_checked else "with marks of its own"
        return f"{fuzzed.benchmark.name}: thoughts: {outcome}"
    else:
        text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(30))) + rng.choice(("", text))
    _require_plainly(fuzzed, text)
    reading = _require_order(fuzzed, text)
    return f"{fuzzed.benchmark.name}: {kind}: {reading.reason or 'read'}"


def _marks(rng: random.Random) -> str:
    pieces = rng.choice((PIECES, CHANNELS))
    text = "".join(rng.choice(MARKS if rng.random() < 0.4 else pieces) for _ in range(rng.randrange(14)))
    expected = plain_answer_text(text)
    for policy in ("keep", "opened", "strip"):
        read = read_answer_text(text, policy)
        expected = plain_answer_text(text, policy)
        require((read.text, read.is_unclosed, read.calls) == expected, f"{policy}: {read} for {expected} of {text!r}")
    return f"marks: {'unclosed' if expected.is_unclosed else 'outside' if expected.text.strip() else 'nothing'}"


def unpaid_case(rng: random.Random) -> str:
    """One draft and one text, both without marks and backticks; the outcome is whether the text is right."""
    fuzzed = rng.choice(rng.choice(fuzzed_items()))
    while True:
        answer, other = _other_form(rng, fuzzed.answer), _other_form(rng, fuzzed.answer)
        noise = "".join(rng.choice(PLAIN_PIECES) for _ in range(rng.randrange(20)))
        draft = rng.choice(("", noise, other, noise + other, other + noise, _damaged(rng, other)))
        text = rng.choice((answer, answer, answer + noise, noise + answer, _damaged(rng, answer), noise, ""))
        draft, text = draft.replace("`", ""), text.replace("`", "")
        if not has_marks(draft) and not has_marks(text):
            return f"{fuzzed.benchmark.name}: {_require_unpaid(fuzzed, draft, text)}"


def superset_case(rng: random.Random) -> str:
    """One mutated answer; the outcome is its benchmark and which rules get it right."""
    fuzzed = rng.choice(rng.choice(fuzzed_items()))
    spell = rng.choice((_other_form, _other_form, _lines))
    text = spell(rng, fuzzed.answer)
    noise = "".join(rng.choice(PLAIN_PIECES) for _ in range(rng.randrange(1, 6)))
    text = rng.choice((_damaged(rng, text), noise + text, text + noise, f"{text}\n{spell(rng, fuzzed.answer)}"))
    paper, lenient = (
        read_response(fuzzed.rules, Response(text), ReadingOptions(name)) for name in ("paper", "lenient")
    )
    is_alike = bool(paper.reason) or (not lenient.reason and comparable(paper.answer) == comparable(lenient.answer))
    require(is_alike, f"the lenient reader reads {lenient.answer} for {paper.answer} of {text!r:.400}")
    verdict = calibrant.score(fuzzed.item, text)
    by_paper, by_lenient = bool(verdict.correct), verdict.correct_lenient
    require(by_lenient or not by_paper, f"right by the paper's rule alone: {text!r:.400}")
    if paper.reason:
        by_itself = calibrant.score(fuzzed.item, text, extractor="lenient").correct
        require(by_lenient == by_itself and not by_paper, f"right by the lenient reader or not: {text!r:.400}")
    outcome = "both" if by_paper else "lenient alone" if by_lenient else "neither"
    return f"{fuzzed.benchmark.name}: {outcome}"


def _require_unpaid(fuzzed: FuzzedItem, draft: str, text: str) -> str:
    """Require that the verdict is that of the text behind the thoughts, whatever they hold."""
    alone = calibrant.score(fuzzed.item, text).correct
    for whole in (f"<think>{draft}</think>{text}", f"{draft}</think>{text}"):
        paid = calibrant.score(fuzzed.item, whole).correct
        require(paid == alone, f"paid {paid}, {alone} without thoughts: {whole!r:.600}")
    require(not calibrant.score(fuzzed.item, f"<think>{draft}").correct, f"a draft is paid: {draft!r:.400}")
    return "right" if alone else "not right"


def _require_plainly(fuzzed: FuzzedItem, text: str) -> None:
    """Require what the plain reader reads in a short text."""
    if len(text) > MAX_PLAIN_CHARS:
        return
    read = read_leniently(text, fuzzed.rules.shape)
    answer, problem = lenient_reader.read_plainly(text, fuzzed.shape)
    is_same = (read.answer is None) == (answer is None) and lenient_reader.same(read.answer, answer)
    require(is_same and read.problem == problem, f"{read} for {answer}, {problem!r} of {text!r}")


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


# --- Several answers, and lines ---------------------------------------------------------------------------------------
def _several(rng: random.Random, fuzzed: FuzzedItem, text: str) -> str:
    neighbours = next(items for items in fuzzed_items() if items[0].benchmark is fuzzed.benchmark)
    other = _other_form(rng, rng.choice(neighbours).answer)
    mark = rng.choice(ANSWER_MARKS)
    return rng.choice(("", other, text)) + mark + text + rng.choice(("", "}", "</answer>", other))


def _lines(rng: random.Random, answer: dict[str, Any]) -> str:
    """Spell an answer as lines, with marks, bullets and mistakes."""
    lines = []
    for key, value in answer.items():
        if isinstance(value, dict):
            lines.append(rng.choice((f"{key}:", f"**{key}**:", f"**{key.title()}:**", key)))
            lines += [_line(rng, name, part) for name, part in value.items()]
        elif isinstance(value, list) and rng.random() < 0.5:
            lines += [f"{key}:", *(f"{rng.choice(BULLETS)}{part}" for part in value)]
        else:
            is_listed = isinstance(value, list) and rng.random() < 0.5
            lines.append(_line(rng, key, ", ".join(map(str, value)) if is_listed else value))
    for _ in range(rng.randrange(3)):
        words = rng.choice(("So:", "", "note: x", "***", "- a", "a: b: c", "{", rng.choice(lines)))
        lines.insert(rng.randrange(len(lines) + 1), words)
    return "\n".join(lines)


def _line(rng: random.Random, key: str, value: Any) -> str:
    mark, (opens, closes) = rng.choice(KEY_MARKS), rng.choice(("  ", "''", '""', "``", "\u201c\u201d"))
    key = rng.choice((key, key, key, key.upper(), key.replace("_", " "), f"{key}s"))
    text = value if isinstance(value, str) else json.dumps(value)
    text = rng.choice((text, text, f"{opens}{text}{closes}", "", json.dumps(value), str(value)))
    colon = rng.choice((": ", ": ", ":", " : ", " "))
    stated = rng.choice((f"{mark}{key}{mark}{colon}{text}", f"{mark}{key}{colon.strip()}{mark} {text}"))
    return f"{rng.choice(BULLETS)}{stated}"


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
