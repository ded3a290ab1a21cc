"""Scoring of response texts, per setting and stratum, on the first problem of each.

Every call gets another response: gold written with its commutative arguments in other orders. What is kept is cleared
before each turn as the row says: responses only, as where answers differ and mechanisms recur; nothing, as where the
same responses come again; or everything ("nothing kept"), so that each mechanism is read anew once in 40 responses, by
compiled code or by the parser; and so in "all new", where no mechanism occurs twice and most are wrong. `to_dict` gives
what the published scorer returns.
The median over strata is what the published rates are summed up by, and what the target is for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from statistics import median
from typing import Any

from calibrant.bench.lab.speed.comparison import Comparison, Rival, Row, measure
from calibrant.bench.lab.speed.options import Options, by_setting, by_stratum
from calibrant.bench.lab.speed.replayscm import published
from calibrant.bench.lab.speed.replayscm.candidates import LISTS, gold_of
from calibrant.bench.lab.speed.replayscm.responses import new_responses
from calibrant.bench.replayscm.protocols.answers import scm_answer
from calibrant.dsl.formulas.formula import Apply, Formula, apply, fold
from calibrant.dsl.memory import CacheBudget
from calibrant.dsl.replayscm.mechanisms import MANY, NOVELTY, READ
from calibrant.dsl.replayscm.problem import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import SCORED, Evaluator, Score

TOPIC = "score"
TIMES_PUBLISHED = 150  # for the published keys of responses whose mechanisms have been met
SEED = 3
SPELLINGS = 40
ROUNDS = 5  # at most: 32 cases of eight rows are a few minutes


def rows(options: Options) -> Iterator[Row]:
    for setting, problems in by_setting(options.problems).items():
        collected = []
        for stratum, members in by_stratum(problems).items():
            discipline = options.discipline._replace(rounds=min(ROUNDS, options.discipline.rounds))
            for row in measure(_comparison(setting, stratum, members[0]), discipline):
                collected.append(row)
                yield row
        yield from _medians(setting, collected)


def _comparison(setting: str, stratum: str, problem: Problem) -> Comparison:
    answers = spellings(problem, SPELLINGS)
    bare = [json.dumps(answer) for answer in answers]
    fenced = [f"The model:\n```json\n{json.dumps(answer, indent=1)}\n```\n" for answer in answers]
    new = new_responses(problem, SPELLINGS)
    compiled, parsed = (Evaluator(problem, compiles=compiles).score_text for compiles in (True, False))

    def keys(texts: Sequence[str], *cleared: CacheBudget, score: Callable[[str], Score] = parsed) -> None:
        for store in cleared:
            store.clear()
        NOVELTY.asked = NOVELTY.new = MANY  # as where many were new before
        for text in texts:
            score(text).to_dict()
        NOVELTY.asked = NOVELTY.new = 0

    def scores(texts: Sequence[str]) -> None:
        SCORED.clear()
        for text in texts:
            parsed(text)

    calls: dict[str, Callable[[], object]] = {
        "bare JSON, to_dict": partial(keys, bare, SCORED),
        "bare JSON": partial(scores, bare),
        "fenced JSON, to_dict": partial(keys, fenced, SCORED),
        "fenced JSON": partial(scores, fenced),
        "met again, to_dict": partial(keys, bare),
        "nothing kept, to_dict": partial(keys, bare, SCORED, READ, score=compiled),
        "nothing kept, parser, to_dict": partial(keys, bare, SCORED, READ),
        "all new, to_dict": partial(keys, new, SCORED, READ, score=compiled),
        "all new, parser, to_dict": partial(keys, new, SCORED, READ),
    }
    rivals = [Rival(name, call, len(answers), least_times_published=_target(name)) for name, call in calls.items()]
    counts = {"gold size": gold_of(problem).size, "characters": len(bare[0])}
    rate = published.submissions(setting, stratum)
    return Comparison(TOPIC, f"{setting}, {stratum}", "response", rivals, rate, counts)


def _medians(setting: str, collected: list[Row]) -> Iterator[Row]:
    """Per way of scoring the median over strata of how many times the published rate was reached."""
    for name in dict.fromkeys(row.rival for row in collected):
        reached = [row.times_published for row in collected if row.rival == name and row.times_published is not None]
        if reached:
            middle = median(reached)
            case = f"{setting}, median of {len(reached)} strata"
            target = _target(name)
            is_met = None if target is None else middle >= target
            yield Row(TOPIC, case, name, times_published=middle, at_least=target, met=is_met)


def _target(name: str) -> float | None:
    return None if name.startswith(("nothing", "all new")) else TIMES_PUBLISHED


def spellings(problem: Problem, count: int) -> list[dict[str, Any]]:
    """Answers that all mean the gold SCM, with the arguments of its operators in random orders."""
    rng = Random(SEED)
    gold = gold_of(problem)
    return [
        scm_answer(problem.task.kind, Scm(gold.roots, {v: _reorder(f, rng) for v, f in gold.mechanisms.items()}))
        for _ in range(count)
    ]


def _reorder(formula: Formula, rng: Random) -> Formula:
    def node(item: Apply, arguments: Sequence[Formula]) -> Formula:
        order = list(arguments)
        if item.operator in LISTS:
            rng.shuffle(order)
        return apply(item.operator, order)

    return fold(formula, lambda atom: Formula((atom,)), node)
