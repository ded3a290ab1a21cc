"""Scoring of response texts, per setting and stratum, on the first problem of each.

Every call gets another response: gold written with its commutative arguments in other orders. What is kept is cleared
before each turn as the row says: responses only, as where answers differ and mechanisms recur; nothing, as where the
same responses come again; or everything, so that each mechanism is read anew once in 40 responses. `to_dict` gives
what the published scorer returns.
The median over strata is what the published rates are summed up by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from statistics import median
from typing import Any

from bench.protocols.replayscm.answers import scm_answer
from bench.speed.comparison import Comparison, Rival, Row, measured
from bench.speed.options import Options, by_setting, by_stratum
from bench.speed.replayscm import published
from bench.speed.replayscm.candidates import LISTS, gold_of
from dsl.formulas.formula import Apply, Formula, apply, fold
from dsl.replayscm.mechanisms import READ
from dsl.replayscm.problem import Problem
from dsl.replayscm.scm import Scm
from dsl.replayscm.score import SCORED, Evaluator
from dsl.shelves import Store

TOPIC = "score"
TIMES_PUBLISHED = 150  # for the published keys of responses whose mechanisms have been met
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

    def keys(texts: Sequence[str], *cleared: Store) -> None:
        for store in cleared:
            store.clear()
        for text in texts:
            score(text).to_dict()

    def scores(texts: Sequence[str]) -> None:
        SCORED.clear()
        for text in texts:
            score(text)

    calls: dict[str, Callable[[], object]] = {
        "bare JSON, to_dict": partial(keys, bare, SCORED),
        "bare JSON": partial(scores, bare),
        "fenced JSON, to_dict": partial(keys, fenced, SCORED),
        "fenced JSON": partial(scores, fenced),
        "bare JSON met again, to_dict": partial(keys, bare),
        "bare JSON, nothing kept, to_dict": partial(keys, bare, SCORED, READ),
    }
    rivals = [
        Rival(name, call, len(answers), least_times_published=None if "nothing" in name else TIMES_PUBLISHED)
        for name, call in calls.items()
    ]
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
                TOPIC,
                case,
                name,
                times_published=middle,
                at_least=None if "nothing" in name else TIMES_PUBLISHED,
                met=None if "nothing" in name else middle >= TIMES_PUBLISHED,
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
