"""Hostile responses: every reader is linear; all rules together take at most a second and 200 MB for 1 MB."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import cache

import pytest

import calibrant
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.responses import DEFAULT_READING, Response
from calibrant.bench.scoring.reading import AnswerRules, item_rules, read_response
from calibrant.datasets import bundled_pool
from calibrant.dsl.lenient_json import read_leniently
from tests.support.effort import effort

SIZE = effort(100_000, 1_000_000)  # characters
STRIDE = effort(len(TITLES), 1)  # of the texts that a benchmark reads
LENIENT_SECONDS, ALL_SECONDS, BYTES = 1.0, 1.0, 200_000_000  # for 1,000,000 characters
SLACK = 0.05  # seconds: compiling patterns, collecting garbage
BUSY, LINEAR = effort(5, 0), 6  # times the bound, times a quarter of the text; a soak has the machine to itself

REPEATED = (
    "{", "[", "{\"", "{'", "\"{", "['", "[\"\\\\", "{ ", "{}", "[]", "{\"a\":", "{\"a\":[", "[{", "{\"a\":1}",
    "{\"a\":1,", "[1,", "{a", "{a:", "{a b} ", "\"\":{", "{\"\":{},", "\\{", "\\{\"a\":", "{/*", "{#", "{//\n",
    "[#\n", "/**/", "\"", "'", "\\", "}", "\u201c{", "<think>", "</think>", "<think></think>", "< ", "<think ",
    "<think a", "\"{\\\"", "[THINK]", "◁think▷", "<|channel|>", "<|start|>assistant<|channel|>final<|message|>",
    "assistantfinal", "```json\n", "```json {", "```json\n{}\n```\n", "\\boxed{", "<answer>", "<answer>{}",
    "answer:\n", "\n*", "# ", "-", " ", "\n", ":", "a:", "a ", "a\n", "\u2028", "rule: conjunctive\n", "rule:\n",
    "rule:\n- A\n", "blickets:\n\n", "RULE_TYPE:\n", "RULE_TYPE: conjunctive\nBLICKETS: A\n",
    "check conjunctive A\n", "conjunctive A, B ", "frequency:\n", "frequency: 1\n", "model:\n", "model:\n- a\n",
    "- a<-b\n", "mechanisms:\n", "mechanisms:\nX2: X1\n", "X2: (not X1)\n", "**X2:** `X1`\n", "9",
    "{\"frequency\":1}", "{'frequency':1}\n", "{'rule':'conjunctive','blickets':['A']}\n", "{'model':['a<-b']}\n",
    "{'mechanisms':{'X2':'X1'}}\n",
)  # fmt: skip
SHAPED: dict[str, Callable[[int], str]] = {
    "deep objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "deep arrays": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "deep objects again and again": lambda size: ('{"a":' * 600 + "1" + "}" * 600) * (size // 3_600),
    "braces and their ends": lambda size: "{" * (size // 2) + "}" * (size // 2),
    "a long line": lambda size: "rule: " + "a" * size,
    "a long key": lambda size: "a" * size + ": 1",
    "a long tag": lambda size: "<think" + " " * size,
    "a long number": lambda size: '{"frequency": ' + "9" * size + "}",
    "a long text": lambda size: "{'model': '" + "a" * size,
    "a long comment": lambda size: "{/*" + "*" * size,
    "a long list": lambda size: '{"model": [' + '"a<-b",' * (size // 7) + "]}",
    "equal keys": lambda size: "{" + '"a":1,"a":2,' * (size // 12) + '"a":3}',
    "different answers": lambda size: "".join(f"{{'frequency':{i},'model':['a{i}']}}\n" for i in range(size // 34)),
    "a header": lambda size: "<|start|>" + " to=a" * (size // 5),
    "bullets": lambda size: "model:\n" + "- a<-b\n" * (size // 7),
}
TEXTS = {f"{piece!r}": (lambda size, piece=piece: piece * (size // len(piece))) for piece in REPEATED} | SHAPED


@cache
def _rules(name: str) -> AnswerRules:
    bench = benchmark(name)
    item = calibrant.load_pool(bundled_pool(bench.bundled[-1]))[0]
    return item_rules(bench, item)


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _seconds_beyond(read: Callable[[str], object], make: Callable[[int], str], bound: float) -> float:
    """Return 0 if one of three readings is within the bound or, outside a soak, linear; else the least of their times.

    On a busy machine the processor takes up to three times as long: beyond the bound a reading passes if it takes at
    most 6 times a reading of a quarter, right after it, and BUSY bounds. A quadratic reader takes 16 times that.
    """
    text, quarter, least = make(SIZE), make(SIZE // 4), float("inf")
    for _ in range(3):
        seconds = _seconds(lambda: read(text))
        if seconds <= bound or (seconds <= BUSY * bound and seconds <= LINEAR * _seconds(lambda: read(quarter))):
            return 0
        least = min(least, seconds)
    return least


@pytest.mark.soak
@pytest.mark.parametrize("name", TITLES)
def test_reading_is_linear(name: str) -> None:
    """Texts of 1 MB in a soak, else of .1 MB, each for one of the benchmarks."""
    rules = _rules(name)
    readers: dict[str, tuple[float, Callable[[str], object]]] = {
        "lenient": (LENIENT_SECONDS, lambda text: read_leniently(text, rules.shape)),
        "all": (ALL_SECONDS, lambda text: read_response(rules, Response(text), DEFAULT_READING)),
    }
    slow = []
    for kind, make in list(TEXTS.items())[list(TITLES).index(name) % STRIDE :: STRIDE]:
        for reader, (bound_of_a_million, read) in readers.items():
            if seconds := _seconds_beyond(read, make, bound_of_a_million * SIZE / 1_000_000 + SLACK):
                slow.append(f"{reader} {kind}: {seconds:.3f} s")
    assert not slow


def test_what_is_quadratic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of all that follows at every letter, as a slice at every key once was."""
    monkeypatch.setattr(f"{__name__}.TEXTS", {"letters": lambda size: "\u00e9" * size})
    monkeypatch.setattr(f"{__name__}.read_leniently", lambda text, _: [hash(text[k:]) for k in range(0, len(text), 3)])
    with pytest.raises(AssertionError, match="lenient letters"):
        test_reading_is_linear(next(iter(TITLES)))


@pytest.mark.soak
@pytest.mark.parametrize(
    "kind", ["'{'", "'['", "'{}'", "'{\"a\":1}'", "deep objects", "different answers", "equal keys"]
)
def test_memory_is_bounded(kind: str) -> None:
    text = TEXTS[kind](SIZE)
    tracemalloc.start()
    try:
        read_response(_rules("causim"), Response(text), DEFAULT_READING)
        assert tracemalloc.get_traced_memory()[1] <= BYTES * SIZE / 1_000_000
    finally:
        tracemalloc.stop()
