"""Section of a report about ReplaySCM: the paper's tables in its order, then further ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from calibrant.audits.replayscm.attribution import heldout_ceiling
from calibrant.audits.replayscm.why.failure import is_contradicted
from calibrant.bench.answers.rates import natural
from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.metrics import UNDEFINED, Item
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm import paper
from calibrant.bench.replayscm.appendix.cohorts import COHORT_TABLES, parse_cohorts, per_problem
from calibrant.bench.replayscm.appendix.contrasts import APPENDIX_IDS, SUPPLIED_REFERENCE, appendix_makers
from calibrant.bench.replayscm.appendix.facts import PoolFacts, read_pool_facts
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.chance_and_best import Ambiguities, ambiguities, ceilings
from calibrant.bench.replayscm.scoring import ATTRIBUTE, SCORING
from calibrant.bench.replayscm.verdict import METRICS, has_heldout, is_right
from calibrant.bench.report.comparisons import PAIRED, comparisons
from calibrant.bench.report.layout import Cell, Heading, Table, TableRow, shown_columns
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text, missing_text
from calibrant.bench.report.rows import Answer, Row
from calibrant.bench.report.sections import NoAnswersError, ReportContents, Section, interval_note
from calibrant.bench.report.sources import read_answers
from calibrant.bench.report.table import sample_rows, sample_table
from calibrant.bench.runs.executors import Progress
from calibrant.bench.scoring.answers import FieldNames
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.score import Score as ScmScore

# --- Guide of a report through answers: classes of held-out replay, levels of chance, an answer in words --------------
MAX_CEILING_COUNTS = 64  # counts of an item take 20 ms; the bounds are 0.03 apart on average, after 16 counts 0.11


class ReplayGuide:
    """Texts and levels of a report's overview: answers are SCMs, and chance is a uniform draw of a consistent one."""

    words = Words(
        task="read rows of 0 and 1, and state the formula of each column",
        items="items",
        hypotheses="SCMs",
        decided="decided by the evidence shown",
        levels=LevelWords("", "a draw from the SCMs that fit", "the largest share that replay alike"),
        cost=Cost("formula nodes", "candidate_size"),
    )

    def is_answered(self, score: Score) -> bool:
        return score.get("valid") is True

    def levels(self, item: Problem, steps: Sequence[Any], score: Score) -> Levels:
        """Return draw, the exact share of consistent SCMs that replay the held-out worlds, and ceiling.

        The ceiling is the largest share that replays them alike. Both are in the class of attributions. The ceiling is
        exact if MAX_CEILING_COUNTS counts prove it, else a certified lower and upper bound.
        """
        if item.task.extension is not None:
            return Levels()  # members differ in probability, by the item's prior and noise, so shares are no chances
        decision = ATTRIBUTE.decide_heldout(item)
        if decision is None or decision.agreement is None:
            return Levels()
        low, high = map(float, heldout_ceiling(item, decision.agreement, MAX_CEILING_COUNTS))
        return Levels(None, float(decision.agreement), low, None if low == high else high)

    def explain(
        self,
        item: Problem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        attribution = score.get(KEY) or {}
        members = attribution.get("members")
        read_answer, differs = _read_answer(item, answer)
        remaining = (
            f" {fit_text(members, 'SCM', 'SCMs')} the training worlds ({attribution['class']})." if members else ""
        )
        return Explanation(
            sentences=(
                _class_sentence(score, context.setting) + remaining,
                _failure(score),
            ),
            response=_answer_text(read_answer),
            differs=differs,
            response_note="read from the text of the response" if read_answer is not answer else "",
            gold="" if item is None or item.sealed.gold is None else _formulas(item.sealed.gold.mechanisms),
            gold_note="the latent SCM",
            chips=tuple(_chips(score)),
            verdict_note=_world_counts(score),
        )


def _formulas(mechanisms: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {render(formula)}" for name, formula in sorted(mechanisms.items()))


def _read_answer(
    item: Problem | None, answer: Mapping[str, Any] | str
) -> tuple[Mapping[str, Any] | str, tuple[str, ...]]:
    """Return (extracted answer, the raw one if it is unreadable; variables whose functions differ from gold's)."""
    if item is None or item.sealed.gold is None or item.task.extension is not None:
        return answer, ()
    try:
        stated = SCORING.extract(item, answer)
    except ActionError:
        return answer, ()
    model, gold = Evaluator(item).score_answer(stated).model, item.sealed.gold
    if model is None:
        return answer, ()
    functions = model.local_functions
    differs = tuple(
        name
        for name in {**gold.mechanisms, **model.mechanisms}
        if functions.get(name) != gold.local_functions.get(name)
    )
    return (stated if isinstance(answer, str) else answer), differs


def _answer_text(answer: Mapping[str, Any] | str) -> str:
    if isinstance(answer, str):
        return answer
    mechanisms = answer.get("mechanisms")
    if isinstance(mechanisms, Mapping) and all(isinstance(text, str) for text in mechanisms.values()):
        others = {key: value for key, value in answer.items() if key != "mechanisms"}
        lines = [f"{name} = {text}" for name, text in sorted(mechanisms.items())]
        return "\n".join([*lines, *([json.dumps(others, ensure_ascii=False)] if others else [])])
    return json.dumps(dict(answer), ensure_ascii=False)


def _failure(score: Score) -> str:
    if missing_text(score):
        return ""  # the class sentence already states it
    reason = score.get("failureExplanation") or score.get("parseError")
    return in_one_line(str(reason))[:300] if reason and score.get("valid") is not True else ""


def _class_sentence(score: Score, setting: str) -> str:
    if not has_heldout(score, setting):
        return "The answer is neither right nor wrong: nothing is held out."
    return class_sentence(score, is_right=is_right(score, setting))


def _chips(score: Score) -> Iterator[tuple[str, str]]:
    if score.get("valid") is not True:
        yield "bad", "not valid"
        return
    yield ("good", "train-exact") if score.get("trainExact") is True else ("bad", "not train-exact")
    if has_heldout(score, ""):
        yield ("good", "held-out exact") if score.get("heldoutExact") is True else ("bad", "not held-out exact")


def _world_counts(score: Score) -> str:
    parts = []
    for split, name in (("train", "training"), ("heldout", "held-out")):
        exact, num_worlds = score.get(f"{split}WorldExactCount"), score.get(f"{split}Worlds")
        if isinstance(exact, int) and isinstance(num_worlds, int):
            parts.append(f"{exact} of {num_worlds} {name} worlds replayed exactly")
    return "; ".join(parts)


GUIDE = ReplayGuide()


# --- Every pair of systems on the same pools --------------------------------------------------------------------------


def compare_systems(rows: Sequence[Row], against: Sequence[str]) -> Table | None:
    """Return paired differences of systems on items that ask for an SCM; None without any."""
    named = [replace(row, pool_labels={digest: paper.pool_name(row) for digest in row.pools}) for row in rows]
    compared = [row for row in named if not paper.is_alternative(row.setting)]
    return comparisons(compared, paper.DIFFERENCES, against, units="latent SCMs", on="held-out replay")


# --- Times of the searches --------------------------------------------------------------------------------------------
_TIME_HEADINGS = (
    Heading("seconds_median", "median s"),
    Heading("seconds_max", "longest s"),
    Heading("seconds_total", "total s"),
)


def times(rows: Sequence[Row]) -> Table | None:
    """Return the table of wall seconds per instance; None if no record states them."""
    timed = [(row, row.seconds) for row in rows if row.seconds]
    if not timed:
        return None
    lines = tuple(
        TableRow(
            (row.setting, row.system, paper.pool_name(row), str(len(seconds))),
            (Cell(f"{median(seconds):.4f}"), Cell(f"{max(seconds):.4f}"), Cell(f"{sum(sorted(seconds)):.2f}")),
        )
        for row, seconds in timed
    )
    caption = (
        "Wall seconds of the search on one instance, without process start and compilation; crashed ones left out."
    )
    return Table("time", "Time", caption, paper.ROW_LABELS, _TIME_HEADINGS, lines)


# --- Wrong mechanisms of valid answers: contradicted by a training row, or wrong only where no row shows it -----------
WRONG = "wrong"
_WRONG_HEADINGS = (
    Heading("num_wrong", "Wrong mechanisms"),
    Heading("num_never_shown", "Never shown"),
    Heading("num_contradicted", "Contradicted"),
    Heading("share_never_shown", "Share never shown"),
)


def wrong_mechanisms(
    sources: Sequence[Path], pools: Sequence[Path], facts: PoolFacts, fields: FieldNames | None
) -> Table | None:
    """Return the table of wrong mechanisms by system and pool; None without pool files, or without answers to them."""
    if not pools or not facts.pools:
        return None
    problems = {(digest, problem.id): problem for digest, pool in facts.pools.items() for problem in pool.problems}
    evaluators: dict[Item, Evaluator] = {}
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for context, answer in read_answers(sources, pools, fields):
        item = context.pool_digest, context.instance
        problem = problems.get(item)
        if problem is None or problem.task.extension is not None:
            continue
        evaluator = evaluators.setdefault(item, Evaluator(problem, compiles=False))
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        setting = facts.setting(context.pool_digest, context.setting)
        counter = counts.setdefault((setting, context.system, context.pool), Counter())
        counter["answers"] += 1
        counter.update(count_wrong(problem, score))
    lines = [TableRow((*key, str(counter["answers"])), _wrong_cells(counter)) for key, counter in counts.items()]
    caption = (
        "Mechanisms of valid answers with another local function than gold's. Contradicted: some scored training row"
        " has an assignment of parents at which the two differ. Never shown: none has."
    )
    return (
        Table(
            WRONG, "Wrong mechanisms, by what training shows", caption, paper.ROW_LABELS, _WRONG_HEADINGS, tuple(lines)
        )
        if lines
        else None
    )


def count_wrong(problem: Problem, score: ScmScore) -> Mapping[str, int]:
    """Count the wrong mechanisms of an answer: `contradicted` and `never_shown`; empty for an invalid answer."""
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


def _wrong_cells(counter: Counter[str]) -> tuple[Cell, ...]:
    num_never_shown, num_contradicted = counter["never_shown"], counter["contradicted"]
    num_wrong = num_never_shown + num_contradicted
    share = f"{num_never_shown / num_wrong:.3f}" if num_wrong else UNDEFINED
    return tuple(map(Cell, (str(num_wrong), str(num_never_shown), str(num_contradicted), share)))


# --- All tables -------------------------------------------------------------------------------------------------------
_PRINTED = (*(spec.id for spec in paper.SPECS), "3A", "D.1", "F.11")
_ALWAYS = (*sorted(_PRINTED, key=natural), PAIRED, "samples", "ceiling", "attribution", "time")
TABLE_IDS = (*_ALWAYS, *sorted(APPENDIX_IDS, key=natural), WRONG)


_STRUCTURED = frozenset([paper.STRUCTURE.id, paper.DISTANCE.id, paper.PER_SYSTEM.id, "F.11"])
NO_STRUCTURE = "No answer was scored with its structure, as by score --structure."


def _is_attributed(row: Row) -> bool:
    return any(observation.values[row.column_indices["decided"]] is not None for observation in row.observations)


def _declare_items(table: Table, rows: Sequence[Row]) -> Table:
    """Mark a table that the paper prints too with whether all rows of the report are about the paper's items."""
    if paper.printed_table(table.id) is None:
        return table
    fits = all(map(paper.fits_printed, rows))
    lines = tuple(replace(row, fits=fits) for row in table.rows)
    return replace(table, rows=lines, printed=paper.WORDS, fits=fits, is_result=True)


def report_tables(
    rows: Sequence[Row],
    contents: ReportContents,
    audited: Ambiguities | None = None,
    facts: PoolFacts | None = None,
    progress: Progress = lambda name, done, total: None,
    *,
    has_structure: bool = True,
) -> list[Table]:
    """Return the tables of these rows, without empty columns; `NoAnswersError` if there are none.

    has_structure: whether some answer was scored with structure metrics; else tables of these have a note
    """
    facts = facts or PoolFacts()
    rows_with_choices, rows = rows, [row for row in rows if not row.key.system.is_chosen]
    makers: dict[str, Callable[[], Table | None]] = {
        spec.id: partial(spec.make, rows_with_choices, with_paper=contents.with_paper) for spec in paper.SPECS
    }
    makers |= {
        "D.1": partial(paper.disclosure_deltas, rows, with_paper=contents.with_paper),
        "F.11": partial(per_problem, rows, with_paper=contents.with_paper),
        "3A": partial(SUPPLIED_REFERENCE.make, rows, facts, with_paper=contents.with_paper),
        PAIRED: partial(compare_systems, rows, contents.against),
        "samples": lambda: sample_table(sample_rows(rows, METRICS.rights), METRICS.rights),
        "ceiling": partial(ceilings, rows, audited or {}),
        "attribution": partial(
            paper.ATTRIBUTION.make, [row for row in rows_with_choices if _is_attributed(row)], with_paper=False
        ),
    }
    if contents.with_times:
        makers["time"] = partial(times, rows)
    makers[WRONG] = lambda: wrong_mechanisms(
        contents.predictions.get(BENCHMARK.name, ()), facts.paths, facts, contents.fields
    )
    makers |= appendix_makers(rows, facts, parse_cohorts(contents.cohorts), with_paper=contents.with_paper)
    requested = contents.tables or {*_ALWAYS, *(COHORT_TABLES if contents.cohorts else ())}
    names = [name for name in TABLE_IDS if name in makers and name in requested]
    tables = []
    for done, name in enumerate(names):
        progress("tables", done, len(names))
        table = makers[name]()
        table = table if table is None or table.printed else _declare_items(table, rows)
        if table is not None and name in _STRUCTURED and not has_structure:
            table = replace(table, notes=(*table.notes, NO_STRUCTURE))
        tables.append(table)
    progress("tables", len(names), len(names))
    selection = [shown_columns(table) for table in tables if table is not None]
    if not selection:
        request = f"table {', '.join(sorted(contents.tables))}" if contents.tables else "any table"
        raise NoAnswersError(f"no answers that belong into {request}")
    return selection


class ReplayScmReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = TABLE_IDS

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        facts = read_pool_facts(contents.pools)
        rows = paper.report_rows(facts.relabel(answers), contents.by, contents.means, facts.latents)
        audited = ambiguities(contents.audits)
        plots = []
        has_structure = any("structure" in score for _, score in answers)  # None if it is undefined for an answer
        tables = report_tables(rows, contents, audited, facts, progress, has_structure=has_structure)
        if contents.with_plots:
            from calibrant.bench.replayscm.figures import kinds_plot, report_plots

            options = {"with_paper": contents.with_paper, "with_times": contents.with_times}
            plots = report_plots(rows, audited, **options, progress=progress)
            kinds = kinds_plot(answers)
            plots += [] if kinds is None else [kinds]
        if contents.with_pictures and any("worlds" in score or "trainMatch" in score for _, score in answers):
            from calibrant.bench.replayscm.figures import episode_plots

            plots += episode_plots(BENCHMARK, answers, contents)
        return Section(
            BENCHMARK.title,
            interval_note(rows, unit="latent SCM"),
            frozenset(row.system for row in rows),
            tuple(sorted({(name, digest) for row in rows for digest, name in row.pool_labels.items()})),
            len(answers),
            tuple(tables),
            tuple(plots),
        )


REPORT = ReplayScmReport()
