"""Section of a report about logic models, and its overview of single answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.logic.benchmark import BENCHMARK
from calibrant.bench.logic.scoring import METRICS
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Move, Score, Words
from calibrant.bench.report.overview.sentences import answer_text, class_sentence, fit_text
from calibrant.bench.report.rows import Answer, Grouping, coverage_notes, named_answers, section_rows
from calibrant.bench.report.sections import (
    OTHERS,
    KindPlot,
    NoAnswersError,
    ReportContents,
    Section,
    attribution_plot,
    interval_note,
    view_table,
)
from calibrant.bench.runs.executors import Progress
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.json_objects import last_object
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import LogicItem, Model, model_texts
from calibrant.dsl.logic.score import AnswerError, Table, parse_answer
from calibrant.dsl.logic.trajectories import TrajectoryItem, is_trajectory_item, parse_states

# --- Section of a report about logic models ---------------------------------------------------------------------------
KINDS = KindPlot(
    "logic-kinds",
    "Earned, missed, lucky, short",
    "Shares of answers by what the data had decided: earned and missed where all models that fit give the same held-out"
    f" answers, right and wrong; lucky and short where they differ, right and wrong. {OTHERS}",
    lambda row: row.setting,
)


class LogicReport:
    """Implements Reportable (bench.report.capabilities)."""

    table_ids = tuple(view.id for view in METRICS.views.values())

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        rows = section_rows(answers, METRICS, contents.by)
        notes = coverage_notes(named_answers(answers))
        tables = [view_table(view, rows, notes) for view in METRICS.views.values()]
        requested = [t for t in tables if t.headings and (not contents.tables or t.id in contents.tables)]
        if not requested:
            raise NoAnswersError(f"no answers that belong into table {', '.join(sorted(contents.tables))}")
        plot = (
            attribution_plot(section_rows(answers, METRICS, Grouping.SETTING), KINDS) if contents.with_plots else None
        )
        return Section.of(
            BENCHMARK.title,
            interval_note(rows, unit="network"),
            answers,
            tuple(requested),
            () if plot is None else (plot,),
        )


REPORT = LogicReport()


# --- Overview of single answers: words, levels of chance, held-out answers --------------------------------------------
MAX_ROWS = 20  # held-out experiments listed for an answer
NONE = "no clause: every node is 0"


class ModelGuide:
    """Implements Guide; answers are models or tables of probabilities, and a draw is uniform over models that fit."""

    words = Words(
        task="from a network and measurements predict new ones",
        items="data sets",
        hypotheses="models",
        decided="decided by the data",
        levels=LevelWords(
            "a guess of every held-out answer, 0 or 1 alike",
            "a draw from the models that fit",
            "the held-out answers that most of them give",
        ),
        cost=Cost("seconds", ""),
    )

    def is_answered(self, score: Score) -> bool:
        return score["valid"] is True

    def levels(self, item: LogicItem, steps: Sequence[Any], score: Score) -> Levels:
        """Return the chances that a guess, a draw and the majority of models give all held-out answers right.

        Those of models are None if they are not counted, all are None if the truth is unknown.
        """
        from calibrant.bench.logic.scoring import ATTRIBUTE

        if is_trajectory_item(item):
            num_free = len(item.task.genes) - len(item.task.question.clamps)
            num_cells = (item.task.question.steps or 0) * num_free
        else:
            num_cells = len(item.task.questions) * len(item.task.setup.readouts)
        guess = 0.5**num_cells if num_cells and item.sealed is not None else None
        decision = ATTRIBUTE.decide_heldout(item)
        if decision is None or decision.agreement is None:
            return Levels(guess)
        return Levels(guess, float(decision.agreement), float(decision.ceiling))

    def explain(
        self,
        item: LogicItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        if is_trajectory_item(item):
            return _explain_states(item, answer, score, recorded)
        members = recorded.get("members")
        remaining = f" {fit_text(members, 'model', 'models')} within the tolerances." if members else ""
        parsed = None if item is None else _parse_or_none(item, answer)
        sealed = None if item is None else item.sealed
        moves = () if item is None or sealed is None or parsed is None else tuple(_heldout_moves(item, parsed))
        is_right = METRICS.success.is_right(score, "")
        return Explanation(
            sentences=(class_sentence(score, is_right=is_right) + remaining, _problem(score)),
            response=_model_text(parsed) if isinstance(parsed, frozenset) else answer_text(answer),
            gold="" if sealed is None else _model_text(sealed.gold),
            response_note="" if item is None else _kind_text(item, parsed),
            gold_note="the model that the values come from",
            chips=tuple(_chips(score)),
            verdict_note=_cells_text(score),
            headings=("Held-out experiment", "True", "Answer") if moves else (),
            moves=moves,
            moves_title="Held-out answers" if moves else "",
        )


def _explain_states(
    item: TrajectoryItem, answer: Mapping[str, Any] | str, score: Score, recorded: Mapping[str, Any]
) -> Explanation:
    """Return the explanation of an answer to a question about trajectories."""
    content = last_object(answer) if isinstance(answer, str) else answer
    try:
        parsed = parse_states(content, item.task)
    except AnswerError:
        parsed = None
    members = recorded.get("members")
    remaining = f" {fit_text(members, 'network', 'networks')} the trajectories." if members else ""
    chips = [("bad", "not valid")] if score["valid"] is not True else []
    if score["fits"] is not None:
        chips.append(("good", "fits the trajectories") if score["fits"] else ("bad", "does not fit the trajectories"))
    truth = item.sealed.answer
    states = () if parsed is None else parsed.states
    moves = tuple(
        Move((str(number), right, content), right != content)
        for number, (right, content) in enumerate(islice(zip_longest(truth, states, fillvalue="none"), MAX_ROWS), 1)
    )
    return Explanation(
        sentences=(class_sentence(score, is_right=METRICS.success.is_right(score, "")) + remaining, _problem(score)),
        response=answer_text(answer),
        gold="\n".join(truth),
        response_note=f"genes, in order: {', '.join(map(in_one_line, item.task.genes))}",
        gold_note="what the network does",
        chips=tuple(chips),
        verdict_note=f"{100 * score['heldout_accuracy']:.0f} % of the digits are right",
        headings=("State", "True", "Answer"),
        moves=moves,
        moves_title="States",
    )


def _parse_or_none(item: LogicItem, answer: Mapping[str, Any] | str) -> Model | Table | None:
    content = last_object(answer) if isinstance(answer, str) else answer
    try:
        return parse_answer(content, item.task)
    except AnswerError:
        return None


def _model_text(model: Model) -> str:
    return "\n".join(model_texts(model)) or NONE


def _kind_text(item: LogicItem, parsed: Model | Table | None) -> str:
    readouts = ", ".join(map(in_one_line, item.task.setup.readouts))
    if parsed is None or isinstance(parsed, frozenset):
        return f"readouts, in order: {readouts}"
    return f"a row for each held-out experiment; readouts, in order: {readouts}"


def _heldout_moves(item: LogicItem, answer: Model | Table) -> Iterator[Move]:
    """Yield a row for each held-out experiment, marked if the answer to it is wrong."""
    task = item.task
    assert item.sealed is not None
    rows = zip(task.questions, item.sealed.answers, strict=True)
    for index, (experiment, truth) in enumerate(islice(rows, MAX_ROWS)):
        if isinstance(answer, frozenset):
            answer_text = reference.predict(answer, task.setup, experiment)
            is_wrong = answer_text != truth
        else:
            shares = answer[index]
            answer_text = " ".join(f"{share:.2f}" for share in shares)
            # a share of 0.5 is wrong whatever the truth, as in the verdict
            pairs = zip(shares, truth, strict=True)
            is_wrong = any(share == 0.5 or (share > 0.5) != (digit == "1") for share, digit in pairs)
        yield Move((in_one_line(experiment.text(task.setup)), truth, answer_text), is_wrong)


def _problem(score: Score) -> str:
    return in_one_line(str(score["error"]))[:300] if score["error"] else ""


def _chips(score: Score) -> Iterator[tuple[str, str]]:
    if score["valid"] is not True:
        yield "bad", "not valid"
        return
    if score["fits"] is None:
        yield "", "probabilities"
        return
    yield ("good", "fits the data") if score["fits"] else ("bad", "does not fit the data")
    yield ("good", "least misfit") if score["optimal"] else ("", "more than the least misfit")
    yield "", f"edge F1 {score['edge_f1']:.3f}"


def _cells_text(score: Score) -> str:
    if score["heldout_accuracy"] is None:
        return ""
    return (
        f"{100 * score['heldout_accuracy']:.0f} % of the held-out answers are right; Brier score {score['brier']:.3f}"
    )


GUIDE = ModelGuide()
