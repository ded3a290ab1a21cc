"""Responses a second: read by all rules, rewarded for a trainer, and in an evaluation by Inspect.

The adapter of Inspect is asked for by the names that it registers. Its share is what passes inside of it: the samples
are made of the pool, each is given its tools, and its answer is scored, after one pool and one answer that load what is
needed. The answers are the latent SCMs; no model is asked.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_fields

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import EVALUATOR, ITEMS, TRAINING
from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample
from calibrant.bench.core.responses import DEFAULT_READING, Answer, Response
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.replayscm.rows.rates import gold_of
from calibrant.bench.replayscm.scoring import read_by_paper
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.reading import AnswerRules, item_rules, read_response, verdict_fields
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.bench.training import Worth, attributed, in_turns, lesson, shaped, verdict
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.score import SCORE_BUDGET, Evaluator

# --- An evaluation by Inspect, in processor seconds a sample: the adapter's own share, the whole, its log read back
TOPIC = "inspect"
INSTANCES, EPOCHS = 320, 4
MAX_SECONDS = 0.002  # seconds of the adapter for a sample


@dataclass
class Spent:
    """Processor seconds inside of the adapter."""

    seconds: float = 0.0


def rows(options: Options) -> Iterator[Row]:
    problems = list(islice(_copies(options.problems), max(2, round(INSTANCES * options.scale))))
    case, samples = f"{len(problems)} instances x {EPOCHS} epochs", len(problems) * EPOCHS
    if find_spec("inspect_ai") is None:
        yield Row(TOPIC, case, "adapter", note="needs inspect-ai: pip install 'calibrant[inspect]'")
        return
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder, "pool.jsonl")
        write_pool(Pool("speed", tuple(problems)), pool)
        scoring_seconds, total_seconds, log = _evaluate(pool, problems)
        start = time.process_time()
        scorer = PoolScorer([pool])
        right = sum(scorer.score(prediction).line["correct"] for prediction in Predictions(log, scorer))
        read_seconds = time.process_time() - start
    assert right == samples
    limit = f"at most {1_000 * MAX_SECONDS:g} ms a sample"
    yield Row(
        TOPIC,
        case,
        "adapter's share",
        "sample",
        samples / scoring_seconds,
        met=scoring_seconds <= MAX_SECONDS * samples,
        note=limit,
    )
    yield Row(TOPIC, case, "whole evaluation", "sample", samples / total_seconds)
    yield Row(TOPIC, case, "calibrant score on its log", "sample", samples / read_seconds)


def _copies(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield the problems again and again, under ids of their own."""
    for index, problem in enumerate(cycle(problems)):
        yield replace(problem, id=f"{problem.id}-{index}")


def _evaluate(pool: Path, problems: Sequence[Problem]) -> tuple[float, float, Path]:
    """Evaluate the problems in Inspect; return processor seconds in the adapter, those in all, and the log."""
    from inspect_ai import Task, eval
    from inspect_ai.util import registry_create

    texts = {problem.id: json.dumps(scm_answer(problem.task.kind, gold_of(problem))) for problem in problems}
    Evaluator(problems[0]).score_text(texts[problems[0].id])  # loads the kernels
    registry_create("task", "calibrant/replayscm", pool=str(pool))  # loads the adapter
    spent, start = Spent(), time.process_time()
    task: Task = registry_create("task", "calibrant/replayscm", pool=str(pool))
    spent.seconds += time.process_time() - start
    setup, solved, scored = _time_parts(spent, texts)
    task.setup, task.solver, task.scorer = setup, solved, [scored]
    (log,) = eval(task, model="none/none", epochs=EPOCHS, log_dir=str(pool.parent), display="none")
    assert log.status == "success"
    return spent.seconds, time.process_time() - start, Path(log.location)


def _time_parts(spent: Spent, texts: dict[str, str]) -> tuple[Any, Any, Any]:
    """Return the adapter's setup, a solver that gives these answers, and the adapter's scorer."""
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import mean, scorer, stderr
    from inspect_ai.solver import solver
    from inspect_ai.util import registry_create

    tools, verdict = registry_create("solver", "calibrant/experiments"), registry_create("scorer", "calibrant/verdict")

    async def clock(work: Any) -> Any:
        start = time.thread_time()
        try:
            return await work
        finally:
            spent.seconds += time.thread_time() - start

    @solver
    def prepare() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            return await clock(tools(state, generate))

        return solve

    @solver
    def answer() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("latent", texts[state.sample_id])
            return state

        return solve

    @scorer(metrics={"*": [mean(), stderr(cluster="cluster")]})
    def judge() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return await clock(verdict(state, target))

        return score

    return prepare(), answer(), judge()


# --- Rewards a second on one core, of items that a trainer asks for again: right, wrong and unreadable answers --------
REWARD_TOPIC = "rewards"
SEED, REWARDED_ITEMS, REPEATS = 1, 32, 160
WANTED_A_SECOND = 5_000


def reward_rows(options: Options) -> Iterator[Row]:
    repeats = max(1, round(REPEATS * options.scale))
    for name in NAMES:
        answers = list(_answers(name))
        for worth in (verdict, shaped, attributed):
            work = partial(_reward, worth, name, answers, repeats)
            rival = Rival("calibrant", work, len(answers) * repeats)
            case = f"{worth.__name__}, {benchmark(name).title}"
            for row in measure(Comparison(REWARD_TOPIC, case, "answer", [rival]), options.discipline):
                reached = row.per_second is not None and row.per_second >= WANTED_A_SECOND
                yield replace_fields(row, met=reached, note=f"at least {WANTED_A_SECOND:,} a second")


def _answers(name: str) -> Iterator[tuple[str, str]]:
    """Return records, each with a text that answers it rightly, as another item asks, or not at all."""
    bench = benchmark(name)
    items = [entry.item for entry in islice(in_turns(bench, bench.training.stages[:4], SEED), REWARDED_ITEMS)]
    golds = [json.dumps(bench.training.gold(item)) for item in items]
    for index, item in enumerate(items):
        reply = (golds[index], golds[index - 1], "I cannot tell.")[index % 3]
        yield json.dumps(bench.items.record(item)), reply


def _reward(worth: Worth, name: str, answers: Sequence[tuple[str, str]], repeats: int) -> None:
    for _ in range(repeats):
        for record, text in answers:
            task = lesson(name, record)
            result = task.score_completion(text)
            assert result is not None
            worth(task, result)


# --- Reading of responses by all three rules, beside the benchmark's plain reader alone, of each benchmark ------------
# The plain reader is what scoring had before thoughts and other forms were read: one rule on the whole text, then the
# score.
EACH = 200  # texts of an item
DRAFT = "Suppose that it is {one of them}; then the second row cannot be, so I go on. " * 20
PLAIN_RATIO, THOUGHTS_RATIO = 1 / 1.15, 1 / 2  # least speed of ours over the plain reader's

Judge = Callable[[Answer], bool | None]


def reading_rows(options: Options) -> Iterator[Row]:
    number = max(1, round(EACH * options.scale))
    for name in NAMES:
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
    SCORE_BUDGET.clear()  # a text of an earlier round is no new one
    for text in texts:
        reading = read_response(rules, Response(text), DEFAULT_READING)
        assert reading.answer is not None
        verdict_fields(reading, judge(reading.answer), judge)


def _read_plainly(rules: AnswerRules, judge: Judge, texts: Sequence[str]) -> None:
    SCORE_BUDGET.clear()
    read = rules.read_published if rules.is_one_rule else rules.read
    for text in texts:
        answer = read(text).answer
        assert answer is not None
        judge(answer)
