"""The scorer on replies of a model: the published verdict, clustered errors, the same again without the pool."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import needs

needs("inspect_ai")

from inspect_ai import score
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

import calibrant
from calibrant import inspect as adapter
from calibrant.bench.core.capabilities import Solution
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.dsl.replayscm.generation.problems import sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.pools.official import PAIR_SUFFIXES
from calibrant.inspect import verdict
from calibrant.inspect.samples import item_of
from calibrant.solvers.outcome import Found
from tests.bench.answers.test_agreement import POOLS, Answered, expected, listed_predictions, printed
from tests.integrations.inspect.conftest import pool_of
from tests.integrations.inspect.logs import all_figures, evaluated, figures, metrics, said, samples
from tests.support.commands import CHECKOUT


def _solved(item: Any) -> dict[str, Any]:
    found = calibrant.solve(item)
    assert isinstance(found, Found)
    assert isinstance(found.value, Solution)
    return found.value.answer


def test_a_completion_gets_the_verdict_of_the_public_name(tmp_path: Path) -> None:
    """Every second reply is right, one of them in a sentence; the others are none."""
    for name in ("replayscm", "causim"):
        pool = pool_of(name, tmp_path)
        items = calibrant.load_pool(pool)
        texts = [json.dumps(_solved(items[0])), f"It is {json.dumps(_solved(items[1]))}", "no answer", "{}"]
        bench = benchmark(name)
        replies = {bench.items.messages(item)[-1]["content"]: text for item, text in zip(items, texts, strict=True)}

        def reply(messages: list[Any], replies: dict[str, str] = replies) -> ModelOutput:
            return said(replies[messages[-1].text])

        log = evaluated(getattr(adapter, name)(str(pool)), tmp_path, reply=reply)
        by_prompt = {
            bench.items.messages(item)[-1]["content"]: item for item in items
        }  # samples are sorted by public ids
        for sample in samples(log):
            (prompt,) = (message.text for message in sample.messages if message.role == "user")
            item, text = by_prompt[prompt], replies[prompt]
            expected = calibrant.score(item, text)
            assert sample.scores is not None
            found = sample.scores["verdict"]
            assert figures(sample)["correct"] == expected.correct
            assert found.explanation == expected.failure
            assert found.answer == text
            reason = "unreadable" if text in ("no answer", "{}") else ""
            assert found.metadata == {"verdict": json.loads(json.dumps(expected.to_dict())), "reason": reason}
        right = [calibrant.score(item, text).correct is True for item, text in zip(items, texts, strict=True)]
        assert 0 < sum(right) < 4
        assert metrics(log)["correct"]["mean"] == sum(right) / 4


def test_the_extractor_is_an_option_of_task_and_scorer(tmp_path: Path) -> None:
    """A reply that breaks off after its mechanisms is an answer by the protocol's rule only."""
    pool = pool_of("replayscm", tmp_path)
    texts = {
        benchmark("replayscm").items.messages(item)[-1]["content"]: json.dumps(_solved(item))[:-1] + ', "because": "it'
        for item in calibrant.load_pool(pool)
    }

    def reply(messages: list[Any]) -> ModelOutput:
        return said(texts[messages[-1].text])

    means: dict[Any, float] = {"paper": 1.0, "published": 0.0}
    for extractor, mean in means.items():
        log = evaluated(adapter.replayscm(str(pool), extractor), tmp_path, reply=reply)
        assert metrics(log)["correct"]["mean"] == mean
    causim = pool_of("causim", tmp_path)
    items = {benchmark("causim").items.messages(item)[-1]["content"]: item for item in calibrant.load_pool(causim)}

    def with_draft(messages: list[Any]) -> ModelOutput:
        """Reply with an answer behind a mark that nothing opened: the published rule reads the whole text."""
        right = json.dumps(_solved(items[messages[-1].text]))
        return said(f"{right}</think>")

    log = evaluated(adapter.causim(str(causim)), tmp_path, reply=with_draft)
    assert metrics(log)["correct"]["mean"] == 0
    again = score(log, verdict("published"), action="overwrite", display="none")
    assert metrics(again)["correct"]["mean"] == 1


def test_standard_errors_are_clustered_by_latent_scm(tmp_path: Path) -> None:
    """Each SCM under two disclosures, half of the SCMs answered: by hand, sqrt(C/(C-1) * sum of squares) / n."""
    pool = tmp_path / "pool.jsonl"
    made = [
        replace(problem, id=problem.id + suffix)
        for setting, suffix in (("ordered", ""), ("hidden-order", PAIR_SUFFIXES[2]))
        for problem in sample_pool(NAMED_STRATA[:6], 1, 3, setting).problems
    ]
    write_pool(Pool("pool", tuple(made)), pool)
    task = adapter.replayscm(str(pool))
    clusters = [(sample.metadata or {})["cluster"] for sample in task.dataset]
    assert len(set(clusters)) == 6
    assert len(clusters) == 12
    answered = set(sorted(set(clusters))[:3])
    items = read_pool(pool).problems
    replies = {
        benchmark("replayscm").items.messages(item)[-1]["content"]: json.dumps(_solved(item))
        if one in answered
        else "?"
        for item, one in zip(items, clusters, strict=True)
    }
    log = evaluated(task, tmp_path, reply=lambda messages: said(replies[messages[-1].text]))
    found = metrics(log)["correct"]
    assert found["mean"] == 0.5
    squares = sum((2 * (float(one in answered) - 0.5)) ** 2 for one in set(clusters))
    assert found["stderr"] == pytest.approx(math.sqrt(squares * 6 / 5) / 12)
    assert found["stderr"] > 1.3 * math.sqrt(0.25 / 11)  # what it would be without clusters


def test_one_cluster_has_a_mean_and_no_standard_error(tmp_path: Path) -> None:
    """Four completions to a question about one program, half of them right: one unit tells nothing of others."""
    lone = tmp_path / "lone.jsonl"
    lone.write_text("".join(pool_of("causim", tmp_path).read_text(encoding="utf-8").splitlines(True)[:2]), "utf-8")
    (item,) = benchmark("causim").items.read_pool(lone).items
    solved = iter([json.dumps(_solved(item)), "?"] * 2)
    log = evaluated(adapter.causim(str(lone)), tmp_path, reply=lambda messages: said(next(solved)), epochs=4)
    found = metrics(log)["correct"]
    assert found["mean"] == 0.5
    assert math.isnan(found["stderr"]), found


@pytest.mark.parametrize("name", ["replayscm", "blickets", "causalab", "causim"])
def test_a_log_is_scored_again_without_the_pool(name: str, tmp_path: Path) -> None:
    pool = pool_of(name, tmp_path)
    log = evaluated(getattr(adapter, name)(str(pool)), tmp_path, solver=adapter.protocol("exact"))
    before = all_figures(log)
    pool.unlink()
    log = read_eval_log(log.location)
    for sample in samples(log):
        sample.scores = None
    assert all_figures(score(log, verdict(), action="overwrite", display="none")) == before


def test_samples_of_another_task_are_refused() -> None:
    for metadata in ({}, {"benchmark": "replayscm"}, {"benchmark": 3, "record": {}}, {"benchmark": "no", "record": {}}):
        with pytest.raises(calibrant.CalibrantError):
            item_of(metadata)


def _given_replies(responses: Mapping[str, Sequence[str]]) -> Solver:
    """Return a solver that ends a sample with the reply of its epoch; responses: by the id in the pool.

    A model would know an item by its messages, which detectors share.
    """

    @solver
    def given_replies() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.output = said(responses[state.metadata["record"]["id"]][state.epoch - 1])
            state.completed = True
            return state

        return solve

    return given_replies()


@pytest.mark.parametrize("name", NAMES)
def test_metrics_state_the_rates_and_standard_errors_of_the_same_answers(name: str, tmp_path: Path) -> None:
    """Two replies an item, as `calibrant score` reads them; what tables should state is worked out in fractions."""
    pool = tmp_path / "pool.jsonl"
    lines = (CHECKOUT / "bench" / POOLS[name]).read_text(encoding="utf-8").splitlines()
    pool.write_text("\n".join(lines[:13]) + "\n", encoding="utf-8")
    bench, items = benchmark(name), calibrant.load_pool(pool)
    gold = {item.id: _solved(item) for item in items}
    written = [line for line in listed_predictions(name, [*gold], gold) if line["model"] == "a "]
    assert len(written) == 24
    predictions, scores = tmp_path / "predictions.jsonl", tmp_path / "scores.jsonl"
    predictions.write_text("".join(json.dumps(line) + "\n" for line in written), encoding="utf-8")
    printed("score", pool, predictions, "--out", scores, "--workers", "1")
    verdicts = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    answered = Answered(name, pool, predictions, scores, verdicts)
    responses = {item.id: [line["response"] for line in written if line["id"] == item.id] for item in items}
    assert len(responses) == 12
    log = evaluated(getattr(adapter, name)(str(pool)), tmp_path, solver=_given_replies(responses), epochs=2)
    shown, num_compared = metrics(log), 0
    assert answered.right.key in shown
    for metric in answered.metrics:
        rate, key = expected(answered, verdicts, metric), metric.key
        fields = [bench.metrics.verdict(line, line["setting"], InvalidHandling.PUBLISHED) for line in verdicts]
        if key not in shown or rate is None or metric.skill_of or None in map(metric.value, fields):
            continue  # undefined for some answers: Inspect's mean over items, ours is a ratio of sums (docs/inspect.md)
        assert f"{shown[key]['mean']:.{metric.decimals}f}" == rate.text(metric), key
        num_compared += 1
    assert num_compared > 1
    unit, means = bench.metrics.unit, defaultdict[str, list[float]](list)
    for item in items:
        values = [float(line["correct"]) for line in verdicts if line["instanceId"] == item.id]
        means[unit(item.id)].append(sum(values) / len(values))
    mean = sum(map(sum, means.values())) / 12
    assert shown["correct"]["mean"] == pytest.approx(mean)
    squares = sum((sum(values) - mean * len(values)) ** 2 for values in means.values())
    if len(means) > 1:
        assert shown["correct"]["stderr"] == pytest.approx(math.sqrt(squares * len(means) / (len(means) - 1)) / 12)
    else:
        assert math.isnan(shown["correct"]["stderr"])
