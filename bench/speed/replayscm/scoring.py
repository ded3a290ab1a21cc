"""Scoring of response texts, per setting and stratum, on the first problem of each.

Every call gets another response: gold written with its commutative arguments in other orders, so that neither a cache
nor a well-trained branch helps more than it would in earnest. `to_dict` gives what the published scorer returns.
The median over strata is what the published rates are summed up by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import median
from typing import Any

from bench.protocols.replayscm.answers import scm_answer
from bench.speed.comparison import Comparison, Rival, Row, measured
from bench.speed.options import Options, by_setting, by_stratum
from bench.speed.replayscm import published
from bench.speed.replayscm.candidates import LISTS, gold_of
from dsl.formulas.formula import Apply, Formula, apply, fold
from dsl.replayscm.problem import Problem
from dsl.replayscm.scm import Scm
from dsl.replayscm.score import Evaluator

TOPIC = "score"
TIMES_PUBLISHED = 30
SEED = 3
SPELLINGS = 40


def rows(options: Options) -> Iterator[Row]:
    for setting, problems in by_setting(options.problems).items():
        seen = []
        for stratum, members in by_stratum(problems).items():
            for row in measured(_comparison(setting, stratum, members[0]), options.discipline):
                seen.append(row)
                yield row
        yield from _medians(setting, seen)


def _comparison(setting: str, stratum: str, problem: Problem) -> Comparison:
    answers = spellings(problem, SPELLINGS)
    bare = [json.dumps(answer) for answer in answers]
    fenced = [f"The model:\n```json\n{json.dumps(answer, indent=1)}\n```\n" for answer in answers]
    score = Evaluator(problem).score_text
    calls: dict[str, Callable[[], object]] = {
        "bare JSON, to_dict": lambda: [score(text).to_dict() for text in bare],
        "bare JSON": lambda: [score(text) for text in bare],
        "fenced JSON, to_dict": lambda: [score(text).to_dict() for text in fenced],
        "fenced JSON": lambda: [score(text) for text in fenced],
    }
    rivals = [Rival(name, call, len(answers), least_times_published=TIMES_PUBLISHED) for name, call in calls.items()]
    counts = {"gold size": gold_of(problem).size, "characters": len(bare[0])}
    rate = published.submissions(setting, stratum)
    return Comparison(TOPIC, f"{setting}, {stratum}", "response", rivals, rate, counts)


def _medians(setting: str, seen: list[Row]) -> Iterator[Row]:
    """Per way of scoring the median over strata of how many times the published rate was reached."""
    for name in dict.fromkeys(row.rival for row in seen):
        reached = [row.times_published for row in seen if row.rival == name and row.times_published is not None]
        if reached:
            middle = median(reached)
            case = f"{setting}, median of {len(reached)} strata"
            yield Row(
                TOPIC, case, name, times_published=middle, at_least=TIMES_PUBLISHED, met=middle >= TIMES_PUBLISHED
            )


def spellings(problem: Problem, count: int) -> list[dict[str, Any]]:
    """Answers that all mean the gold SCM, with the arguments of its operators in random orders."""
    rng = Random(SEED)
    gold = gold_of(problem)
    return [
        scm_answer(problem.task.kind, Scm(gold.roots, {v: _reordered(f, rng) for v, f in gold.mechanisms.items()}))
        for _ in range(count)
    ]


def _reordered(formula: Formula, rng: Random) -> Formula:
    def node(item: Apply, arguments: Sequence[Formula]) -> Formula:
        order = list(arguments)
        if item.operator in LISTS:
            rng.shuffle(order)
        return apply(item.operator, order)

    return fold(formula, lambda atom: Formula((atom,)), node)
