"""Reading of responses by all three rules, beside the benchmark's plain reader alone, of each benchmark.

The plain reader is what scoring had before thoughts and other forms were read: one rule on the whole text, then the
score.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import EVALUATOR, ITEMS, TRAINING
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.core.responses import DEFAULT_READING, Answer, Response
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.bench.replayscm.scoring import read_by_paper
from calibrant.bench.scoring.reading import AnswerRules, item_rules, read_response, verdict_fields
from calibrant.dsl.replayscm.score import SCORED, Evaluator

EACH = 200  # texts of an item
DRAFT = "Suppose that it is {one of them}; then the second row cannot be, so I go on. " * 20
PLAIN_RATIO, THOUGHTS_RATIO = 1 / 1.15, 1 / 2  # least speed of ours over the plain reader's

Judge = Callable[[Answer], bool | None]


def rows(options: Options) -> Iterator[Row]:
    number = max(1, round(EACH * options.scale))
    for name in TITLES:
        bench = benchmark(name)
        item = bench.require(ITEMS).read_pool(bundled_sample(bench.bundled[0])).items[0]
        answer = json.dumps(bench.require(TRAINING).gold(item))
        drafts = [f"<think>{DRAFT}{i} {answer}</think>\n{answer}" for i in range(number)]
        texts = {
            "plain JSON": ([answer + " " * i for i in range(number)], PLAIN_RATIO),
            "thoughts before it": (drafts, THOUGHTS_RATIO),
        }
        rules, judge = _rules(bench, item)
        for case, (stated, least) in texts.items():
            rivals = [
                Rival("all rules", partial(_read_all, rules, judge, stated), number),
                Rival("one plain rule", partial(_read_plainly, rules, judge, stated), number, least_ratio=least),
            ]
            yield from measure(Comparison("readings", f"{bench.title}, {case}", "text", rivals), options.discipline)


def _rules(bench: Benchmark[Any], item: Any) -> tuple[AnswerRules, Judge]:
    """Return the rules of an item and its verdict on an answer; ReplaySCM's plain rule is the paper's, as it was."""
    if bench.has(EVALUATOR):
        evaluator = Evaluator(item)
        rules = item_rules(bench, item)._replace(read=partial(read_by_paper, evaluator.score))
        return rules, lambda answer: evaluator.score(answer).correct
    score = bench.scoring.score
    return item_rules(bench, item), lambda answer: score(item, answer, ())["correct"]


def _read_all(rules: AnswerRules, judge: Judge, texts: Sequence[str]) -> None:
    SCORED.clear()  # a text of an earlier round is no new one
    for text in texts:
        reading = read_response(rules, Response(text), DEFAULT_READING)
        assert reading.answer is not None
        verdict_fields(reading, judge(reading.answer), judge)


def _read_plainly(rules: AnswerRules, judge: Judge, texts: Sequence[str]) -> None:
    SCORED.clear()
    read = rules.read_published if rules.is_one_rule else rules.read
    for text in texts:
        answer = read(text).answer
        assert answer is not None
        judge(answer)
