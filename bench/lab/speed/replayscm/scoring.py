"""Scoring of response texts, by setting and stratum, and a million responses through `calibrant score`.

Every call gets another response: gold written with its commutative arguments in other orders. What is kept is cleared
before each turn as the row says: responses only, as where answers differ and mechanisms recur; nothing, as where the
same responses come again; or everything ("nothing kept"), so that each mechanism is read anew once in 40 responses, by
compiled code or by the parser; and so in "all new", where no mechanism occurs twice and most are wrong. `to_dict` gives
what the published scorer returns.
The median over strata is what the published rates are summed up by, and what the target is for.

Every response is made for its own instance. In a mixed file 30 % repeat an earlier response of the same instance, as
samples at a low temperature do; the others choose each mechanism from some spellings that a model comes back to, or
make a new one; 5 % of the responses are no valid answer. In a file of new formulas no instance sees a mechanism twice.

One file repeats itself as samples of models do, the other has no mechanism of an instance twice, so that nothing that
was kept helps. Targets are those of a machine with two cores, and of the file that repeats itself. The other file, and
both with verdicts written, are a tenth as long; a rival scores a twentieth of the million.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from calibrant.bench.commands.options import usable_cores
from calibrant.bench.lab.speed.memory import OURS, Cost, command_cost
from calibrant.bench.lab.speed.replayscm import replay
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, by_setting, by_stratum, measure
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.replayscm.rows.rates import NARY_OPERATORS, gold_of
from calibrant.dsl.formulas.formula import Apply, Formula, apply, fold
from calibrant.dsl.formulas.text import render
from calibrant.dsl.memory import CacheBudget
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import SCORE_BUDGET, Evaluator, Score
from calibrant.dsl.replayscm.submission import MECHANISM_BUDGET, MIN_NEW, NOVELTY

# --- A pool of many instances and a file of responses of several models to them, as large as asked for ----------------
RESPONSE_SEED = 14
MODELS = tuple(f"model-{number}" for number in range(1, 6))
SPELLINGS = 40  # spellings of one mechanism that answers come back to
REPEATED, KNOWN, BROKEN = 0.3, 0.7, 0.05
_LISTS = ("and", "or", "xor", "iff")


def write_large_pool(problems: Sequence[Problem], path: Path, count: int) -> tuple[Problem, ...]:
    """Write that many instances: the problems, repeated under other ids."""
    indexed = enumerate(islice(cycle(problems), count))
    problems_copied = tuple(replace(p, id=f"{p.id}~{index}", results=tuple) for index, p in indexed)
    write_pool(Pool("bulk", problems_copied), path)
    return problems_copied


def write_responses(problems: Sequence[Problem], path: Path, count: int, *, mixed: bool) -> int:
    """Write that many predictions, by model and sample; return the number of different responses."""
    speakers = [_Speaker(problem, Random(f"{RESPONSE_SEED} {problem.id}"), mixed=mixed) for problem in problems]
    per_model = -(-count // len(MODELS))
    with path.open("w", encoding="utf-8") as file:
        for index, speaker in enumerate(islice(cycle(speakers), count)):
            line = {"instanceId": speaker.problem.id, "model": MODELS[index // per_model], "response": speaker.say()}
            file.write(json.dumps(line) + "\n")
    return sum(len(speaker.different) for speaker in speakers)


def new_responses(problem: Problem, count: int) -> list[str]:
    """Return that many responses to one problem, bare and fenced, with no mechanism twice."""
    speaker = _Speaker(problem, Random(f"{RESPONSE_SEED} {problem.id}"), mixed=False)
    return [speaker.say() for _ in range(count)]


class _Speaker:
    """Responses of models to one problem.

    different: digests of its responses so far
    """

    def __init__(self, problem: Problem, rng: Random, *, mixed: bool) -> None:
        self.problem = problem
        self.different: set[int] = set()
        self._rng = rng
        self._mixed = mixed
        gold = gold_of(problem)
        self._roots = list(gold.roots)
        earlier = list(gold.roots)
        self._parents: dict[str, list[str]] = {}
        for variable in gold.order:
            admissible = problem.task.disclosure.admissible_parents(variable)
            self._parents[variable] = [v for v in earlier if v in admissible]
            earlier.append(variable)
        self._new = {variable: self._formulas(variable) for variable in self._parents}
        self._known = {v: [render(gold.mechanisms[v]), *islice(new, SPELLINGS)] for v, new in self._new.items()}
        self._said: list[str] = []

    def say(self) -> str:
        rng = self._rng
        if self._mixed and self._said and rng.random() < REPEATED:
            return rng.choice(self._said)
        text = self._spell({variable: self._mechanism(variable) for variable in self._parents})
        self.different.add(hash(text))
        if self._mixed:
            if rng.random() < BROKEN:
                text = text[: rng.randrange(len(text))] if rng.random() < 0.5 else text.replace("X", "Y", 3)
            if len(self._said) < SPELLINGS:
                self._said.append(text)
            else:
                self._said[rng.randrange(SPELLINGS)] = text
        return text

    def _mechanism(self, variable: str) -> str:
        if self._mixed and self._rng.random() < KNOWN:
            texts = self._known[variable]
            return texts[min(int(self._rng.expovariate(0.2)), len(texts) - 1)]
        return next(self._new[variable])

    def _spell(self, mechanisms: dict[str, str]) -> str:
        answer: dict[str, Any] = {"mechanisms": mechanisms}
        if self.problem.task.kind is TaskKind.ROOTS:
            answer = {"roots": self._roots, **answer}
        if self._rng.random() < 0.5:
            return json.dumps(answer)
        return f"The worlds leave this model:\n```json\n{json.dumps(answer, indent=1)}\n```\n"

    def _formulas(self, variable: str) -> Iterator[str]:
        """Yield formulas over the variables before this one, without repetitions."""
        sizes_used: set[int] = set()
        names, rng, size = self._parents[variable], self._rng, 3
        while True:
            text = _formula(rng, names, size)
            if hash(text) in sizes_used:
                size += 1  # over few variables there are few small ones
                continue
            sizes_used.add(hash(text))
            size = max(3, size - 1)
            yield text


def _formula(rng: Random, names: Sequence[str], leaves: int) -> str:
    if leaves == 1:
        name = names[int(rng.random() * len(names))]
        return f"(not {name})" if rng.random() < 0.25 else name
    cut = 1 + int(rng.random() * (leaves - 1))
    operator = _LISTS[int(rng.random() * 4)]
    return f"({operator} {_formula(rng, names, cut)} {_formula(rng, names, leaves - cut)})"


TOPIC = "score"
TIMES_PUBLISHED = 150  # for the published keys of responses whose mechanisms have been met
SEED = 3
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
        NOVELTY.num_checked = NOVELTY.num_new = MIN_NEW  # as where many were new before
        for text in texts:
            score(text).to_dict()
        NOVELTY.num_checked = NOVELTY.num_new = 0

    def scores(texts: Sequence[str]) -> None:
        SCORE_BUDGET.clear()
        for text in texts:
            parsed(text)

    calls: dict[str, Callable[[], object]] = {
        "bare JSON, to_dict": partial(keys, bare, SCORE_BUDGET),
        "bare JSON": partial(scores, bare),
        "fenced JSON, to_dict": partial(keys, fenced, SCORE_BUDGET),
        "fenced JSON": partial(scores, fenced),
        "met again, to_dict": partial(keys, bare),
        "nothing kept, to_dict": partial(keys, bare, SCORE_BUDGET, MECHANISM_BUDGET, score=compiled),
        "nothing kept, parser, to_dict": partial(keys, bare, SCORE_BUDGET, MECHANISM_BUDGET),
        "all new, to_dict": partial(keys, new, SCORE_BUDGET, MECHANISM_BUDGET, score=compiled),
        "all new, parser, to_dict": partial(keys, new, SCORE_BUDGET, MECHANISM_BUDGET),
    }
    rivals = [Rival(name, call, len(answers), least_times_published=_target(name)) for name, call in calls.items()]
    counts = {"gold size": gold_of(problem).size, "characters": len(bare[0])}
    rate = replay.submissions(setting, stratum)
    return Comparison(TOPIC, f"{setting}, {stratum}", "response", rivals, rate, counts)


def _medians(setting: str, collected: list[Row]) -> Iterator[Row]:
    """Yield a row for each way of scoring: its rate in multiples of the published one, median over strata."""
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
    """Return answers that all mean the gold SCM, with the arguments of its operators in random orders."""
    rng = Random(SEED)
    gold = gold_of(problem)
    return [
        scm_answer(problem.task.kind, Scm(gold.roots, {v: _reorder(f, rng) for v, f in gold.mechanisms.items()}))
        for _ in range(count)
    ]


def _reorder(formula: Formula, rng: Random) -> Formula:
    def node(item: Apply, arguments: Sequence[Formula]) -> Formula:
        order = list(arguments)
        if item.operator in NARY_OPERATORS:
            rng.shuffle(order)
        return apply(item.operator, order)

    return fold(formula, lambda atom: Formula((atom,)), node)


# --- A million responses to a pool of 320 instances through `calibrant score`, as a process of its own ----------------
BULK_TOPIC = "bulk"
INSTANCES = 320
RESPONSES = 1_000_000
SHARE, RIVAL_SHARE = 10, 20
MAX_SECONDS, MAX_BYTES = 90, 500_000_000
MEGABYTE = 1_000_000


def bulk_rows(options: Options) -> Iterator[Row]:
    count = RESPONSES if options.scale == 1 else INSTANCES  # a glance shows that it works
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        pool = folder / "pool.jsonl"
        problems = write_large_pool(options.problems, pool, INSTANCES)
        responses, fewer, verdicts = (folder / f"{name}.jsonl" for name in ("responses", "fewer", "verdicts"))
        for mixed, case in ((True, "as models repeat themselves"), (False, "all mechanisms new")):
            number = count if mixed else max(INSTANCES, count // SHARE)
            different = write_responses(problems, responses, number, mixed=mixed)
            cost = command_cost(OURS, "score", str(pool), str(responses), folder=folder)
            counts: dict[str, float] = {"different responses": different}
            yield _bulk_row(case, "calibrant score", number, cost, counts, goal=number >= RESPONSES)
            if options.scale == 1:  # a glance needs no second process
                number = _beginning(responses, fewer, max(INSTANCES, count // SHARE))
                cost = command_cost(OURS, "score", str(pool), str(fewer), "--out", str(verdicts), folder=folder)
                yield _bulk_row(case, "calibrant score --out", number, cost, {})
                verdicts.unlink()
            if options.rival is not None:
                number = _beginning(responses, fewer, max(INSTANCES, count // RIVAL_SHARE))
                cost = command_cost(options.rival, "score", str(pool), str(fewer), folder=folder)
                yield _bulk_row(case, "the rival, a part", number, cost, {})


def _beginning(source: Path, part: Path, max_bytes: int) -> int:
    """Copy the first lines of a file to another; return their number."""
    with source.open("rb") as lines, part.open("wb") as beginning:
        number = 0
        for line in islice(lines, max_bytes):
            beginning.write(line)
            number += 1
    return number


def _peak(cost: Cost) -> int:
    """Return the peak memory of all processes; where unknown, an upper bound from the largest one."""
    return cost.sum_of_peaks or cost.peak * (1 + usable_cores())


def _bulk_row(case: str, name: str, count: int, cost: Cost, counts: dict[str, float], *, goal: bool = False) -> Row:
    rate = count / cost.processor
    figures = f"{cost.wall:.1f} s, processor {cost.processor:.1f} s, "
    figures += f"peaks of its processes together {_peak(cost) / MEGABYTE:.0f} MB"
    goal_text = f"; at most {MAX_SECONDS} s and {MAX_BYTES // MEGABYTE} MB" if goal else ""
    counts_text = "".join(f"; {value:,} {name}" for name, value in counts.items())
    usual = replay.submissions("Ordered")
    return Row(
        BULK_TOPIC,
        f"{count:,} responses, {case}",
        name,
        "response",
        rate,
        times_published=rate / usual if usual else None,
        met=(cost.wall <= MAX_SECONDS and _peak(cost) <= MAX_BYTES) if goal else None,
        note=figures + goal_text + counts_text,
    )
