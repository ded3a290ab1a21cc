"""Wrong mechanisms of valid answers: those that training rows contradict, and those whose faults they never show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibrant.audits.replayscm.why.failure import is_contradicted
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.replayscm.tables.appendix.facts import PoolFacts
from calibrant.bench.replayscm.tables.spec import ROW_LABELS
from calibrant.bench.report.answers.submitted import read_answers
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow
from calibrant.bench.scoring.input.answers import FieldNames
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator, Score

ID = "wrong"
_HEADINGS = (
    Heading("num_wrong", "Wrong mechanisms"),
    Heading("num_never_shown", "Never shown"),
    Heading("num_contradicted", "Contradicted"),
    Heading("share_never_shown", "Share never shown"),
)


def wrong_mechanisms(
    sources: Sequence[Path], pools: Sequence[Path], facts: PoolFacts, fields: FieldNames | None
) -> Table | None:
    """Return the counts of each system and pool; None without the pools' files, or without answers to them."""
    if not pools or not facts.pools:
        return None
    problems = {(digest, problem.id): problem for digest, pool in facts.pools.items() for problem in pool.problems}
    evaluators: dict[tuple[str, str], Evaluator] = {}
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for context, answer in read_answers(sources, pools, fields):
        item = context.pool_digest, context.instance
        problem = problems.get(item)
        if problem is None or problem.task.extension is not None:
            continue
        evaluator = evaluators.setdefault(item, Evaluator(problem, compiles=False))
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        setting = facts.setting(context.pool_digest, context.setting)
        count = counts.setdefault((setting, context.system, context.pool), Counter())
        count["answers"] += 1
        count.update(count_wrong(problem, score))
    lines = [TableRow((*key, str(count["answers"])), _cells(count)) for key, count in counts.items()]
    caption = (
        "Mechanisms of valid answers with another local function than gold's. Contradicted: some scored training row"
        " has an assignment of parents at which the two differ. Never shown: none has."
    )
    return (
        Table(ID, "Wrong mechanisms, by what training shows", caption, ROW_LABELS, _HEADINGS, tuple(lines))
        if lines
        else None
    )


def count_wrong(problem: Problem, score: Score) -> Mapping[str, int]:
    """Return how many mechanisms of an answer are wrong, contradicted or never shown; nothing of an invalid one."""
    gold, model = problem.sealed.gold, score.model
    if gold is None or model is None or score.problem.task.reference is not None:
        return {}
    wrong = [
        v
        for v in model.mechanisms
        if v in gold.mechanisms
        and max(len(model.mechanisms[v].mentioned), len(gold.mechanisms[v].mentioned)) <= MAX_TABLE_VARS
        and model.local_functions[v] != gold.local_functions[v]
    ]
    contradicted = sum(is_contradicted(problem.task.training, model, v) for v in wrong)
    return {"never_shown": len(wrong) - contradicted, "contradicted": contradicted}


def _cells(count: Counter[str]) -> tuple[Cell, ...]:
    never, contradicted = count["never_shown"], count["contradicted"]
    share = f"{never / (never + contradicted):.3f}" if never + contradicted else UNDEFINED
    return tuple(map(Cell, (str(never + contradicted), str(never), str(contradicted), share)))
