"""Why the measurements leave more than one logic model: where the models differ, and the experiments that decide.

The family is the set of models within the allowed misfit and size; its models are the members.
"""

from __future__ import annotations

import msgspec

from calibrant.audits.why import Count, Fact, Span, State, Why, number_text, spans
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import Experiment, LogicItem, Sealed, Task, model_texts
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import mean_squared_error
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, first_member, solve_class, solve_family
from calibrant.solvers.logic.sums import Predictions, choose_next, rank_new
from calibrant.solvers.outcome import Found

# --- The parts of the reason for logic models -------------------------------------------------------------------------


class PartShare(msgspec.Struct, frozen=True):
    """An edge or a clause; `members`: number of members with it, in decimal; `share`: of all members."""

    text: str
    members: str
    share: float


class EdgeShare(PartShare, frozen=True):
    """An edge of the class, as a part; its number of members may be 0."""

    source: str
    sign: int
    target: str


class SpectrumPoint(msgspec.Struct, frozen=True):
    """Number of members of one misfit and size, in decimal."""

    misfit: int
    size: int
    members: str


class PredictedRow(msgspec.Struct, frozen=True):
    """An experiment that was not measured, with the share of members that answer 1 for each readout.

    is_question: a held-out experiment of the item
    """

    in_words: str
    shares: tuple[float, ...]
    is_question: bool


class Candidate(msgspec.Struct, frozen=True):
    """An experiment that was not measured.

    share: expected share of the members left after it
    readings: (answers of all readouts, number of members that give them)
    """

    in_words: str
    share: float
    readings: tuple[tuple[str, str], ...]


class Disagreement(msgspec.Struct, frozen=True):
    """Two members, an experiment that was not measured, and their different answers, one digit per readout."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    stimuli: tuple[str, ...]
    inhibited: tuple[str, ...]
    first_answers: str
    second_answers: str


class LogicWhy(Why, frozen=True, kw_only=True):
    """The reason for logic models.

    stimuli, readouts: in header order; optimum: least misfit, and least size at that misfit
    edges: all of the class; clauses: those of at least one member; spectrum: ascending
    predictions: the held-out experiments of the item; without any, the best candidates
    candidates: next experiments, by ascending expected share of members left
    pair: None if no two members were found to differ; the reason states what was compared
    """

    stimuli: tuple[str, ...]
    readouts: tuple[str, ...]
    optimum: tuple[int, int]
    edges: tuple[EdgeShare, ...]
    clauses: tuple[PartShare, ...]
    spectrum: tuple[SpectrumPoint, ...]
    predictions: tuple[PredictedRow, ...]
    candidates: tuple[Candidate, ...]
    pair: Disagreement | None = None


TITLES = {
    "open": "Which models of \u201c{}\u201d fit?",
    "uncounted": "Which models of \u201c{}\u201d fit?",
    "decided": "Which model of \u201c{}\u201d fits?",
    "empty": "Why does no model of \u201c{}\u201d fit?",
}
MAX_CANDIDATES = 400  # predicted in well below a second on published networks
MAX_PREDICTED_ROWS = 40
MAX_LISTED_CANDIDATES = 60


def explain(item: LogicItem, *, reveal_sealed: bool = False) -> LogicWhy:
    """Return the reason for an item; the sealed truth is read only with `reveal_sealed`.

    `CalibrantError` if the models are too many to count.
    """
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found):
        raise CalibrantError(f"the models that fit {item.id} are not counted: {outcome.reached}")
    family, cause = outcome.value, ""
    try:
        predictions = family.predict(_experiments(item.task))
    except LatticeLimitError as error:
        predictions, cause = None, str(error)
    return explain_family(family, item.id, predictions, cause, item.sealed if reveal_sealed else None)


def explain_family(
    family: LogicFamily, name: str, predictions: Predictions | None, cause: str = "", sealed: Sealed | None = None
) -> LogicWhy:
    """Return the reason for a family with at least one member.

    name: id of the item; sealed: the truth, None unless it is revealed
    predictions: answers of members to the task's questions, then to candidate experiments; None if not computed
    cause: why `predictions` is None
    """
    task = family.task
    num_questions = len(task.questions)
    order = [] if predictions is None else rank_new(task, predictions)
    state = _state(family, num_questions, predictions)
    witness = _witness(task, predictions, order)
    pair = _pair(family, predictions, witness)
    total = solve_class(task)
    count = str(family.count)
    return LogicWhy(
        benchmark="logic",
        item=name,
        title=TITLES[state].format(name),
        state=state,
        reason=_reason(family, predictions, cause, witness, pair),
        facts=_facts(family, predictions, order),
        open=tuple(str(edge) for edge, members in family.edges().items() if members < family.count),
        decided=tuple(str(edge) for edge, members in family.edges().items() if members == family.count),
        count=Count(lower=count, upper=count, total=str(total.value.count) if isinstance(total, Found) else None),
        class_in_words=family.in_words,
        stimuli=task.setup.stimuli,
        readouts=task.setup.readouts,
        optimum=family.optimum,
        edges=tuple(_edges(family)),
        clauses=tuple(
            PartShare(str(clause), str(members), members / family.count)
            for clause, members in sorted(family.clauses().items(), key=lambda entry: (-entry[1], entry[0]))
        ),
        spectrum=tuple(SpectrumPoint(*point, str(members)) for point, members in family.spectrum.items()),
        predictions=_rows(task, num_questions, predictions, order),
        candidates=()
        if predictions is None
        else tuple(_candidate(task, predictions, k) for k in order[:MAX_LISTED_CANDIDATES]),
        sealed=()
        if sealed is None
        else tuple(Fact(f"true clause: {clause}", "gold") for clause in model_texts(sealed.gold)),
        pair=pair,
    )


def _experiments(task: Task) -> list[Experiment]:
    """Return the questions, then the candidates for the next experiment."""
    candidates = candidate_experiments(task.setup)[:MAX_CANDIDATES]
    return [*task.questions, *(c for c in candidates if c not in set(task.questions))]


def _state(family: LogicFamily, num_questions: int, predictions: Predictions | None) -> State:
    if family.count == 1:
        return "decided"
    if not num_questions or predictions is None:
        return "open"
    return "decided" if all(len(outcomes) == 1 for outcomes in predictions.outcomes[:num_questions]) else "open"


def _edges(family: LogicFamily) -> list[EdgeShare]:
    members = family.edges()
    return [
        EdgeShare(str(edge), str(members.get(edge, 0)), members.get(edge, 0) / family.count, *edge)
        for edge in family.task.edges
    ]


def _witness(task: Task, predictions: Predictions | None, order: list[int]) -> int | None:
    """Return the index of an experiment on which members differ: the best candidate, else an unmeasured question."""
    if predictions is None:
        return None
    unmeasured = _unmeasured_questions(task)
    return next((k for k in (*order[:1], *unmeasured) if len(predictions.outcomes[k]) > 1), None)


def _unmeasured_questions(task: Task) -> list[int]:
    return [k for k, question in enumerate(task.questions) if question not in task.experiments]


def _pair(family: LogicFamily, predictions: Predictions | None, witness: int | None) -> Disagreement | None:
    """Return one member for each of the two most frequent answers to the witness; None if none can be found."""
    if predictions is None or witness is None:
        return None
    clamps = predictions.experiments[witness]
    answers = sorted(predictions.outcomes[witness].items(), key=lambda entry: (-entry[1], entry[0]))
    first, second = answers[0][0], answers[1][0]
    try:
        members = [first_member(family.after(clamps, reading)) for reading in (first, second)]
    except LatticeLimitError:
        return None
    if members[0] is None or members[1] is None:
        return None
    setup = family.task.setup
    return Disagreement(
        tuple(model_texts(members[0])),
        tuple(model_texts(members[1])),
        tuple(stimulus for stimulus in setup.stimuli if stimulus in clamps.on),
        tuple(node for node in setup.inhibitors if node in clamps.inhibited),
        first,
        second,
    )


def _reason(
    family: LogicFamily, predictions: Predictions | None, cause: str, witness: int | None, pair: Disagreement | None
) -> tuple[Span, ...]:
    """Return a sentence on the number of models and on where they differ, as far as answers were compared."""
    if family.count == 1:
        return spans("One model fits within the allowed misfit and size, ", (f"of size {family.optimum[1]}",), ".")
    count_sentence, task = f"{number_text(family.count)} models fit within the allowed misfit and size.", family.task
    if predictions is None:
        return spans(f"{count_sentence} Their answers were not compared: {cause or 'no experiment was given'}.")
    if witness is None:
        num_compared = len(rank_new(task, predictions)) + len(_unmeasured_questions(task))
        if not num_compared:
            return spans(f"{count_sentence} Every experiment at hand was measured.", *_repeat(task, predictions))
        alike = f"They answer alike in the {plural(num_compared, 'experiments')} that were compared."
        return spans(f"{count_sentence} {alike}", *_repeat(task, predictions))
    if pair is None:
        num_answers = len(predictions.outcomes[witness])
        unmeasured = predictions.experiments[witness].text(task.setup)
        different = f" was never measured: there they give {num_answers} different answers."
        return spans(f"{count_sentence} ", (unmeasured,), different)
    clamps = Experiment(frozenset(pair.stimuli), frozenset(pair.inhibited)).text(task.setup)
    k = next(k for k, (a, b) in enumerate(zip(pair.first_answers, pair.second_answers, strict=True)) if a != b)
    first, second = pair.first_answers[k], pair.second_answers[k]
    return spans(
        f"{count_sentence} ",
        (clamps,),
        f" was never measured: there some of them predict {task.setup.readouts[k]} = {first}, others {second}.",
    )


def _repeat(task: Task, predictions: Predictions) -> tuple[str | tuple[str], ...]:
    """Return a sentence on the measured experiment that separates most members; () if none separates any."""
    repeat = choose_next(task, predictions, range(len(predictions.experiments)))
    if repeat is None or repeat.share == 1:
        return ()
    return (" They differ where it was measured, most in ", (repeat.experiment.text(task.setup),), ": repeat that one.")


def _facts(family: LogicFamily, predictions: Predictions | None, order: list[int]) -> tuple[Fact, ...]:
    edges = family.edges()
    always = sum(members == family.count for members in edges.values())
    facts = [
        Fact("1 model fits", "good") if family.count == 1 else Fact(f"{number_text(family.count)} models fit", "warn"),
        Fact(f"least misfit {family.optimum[0]:,}; least size at that misfit {family.optimum[1]}"),
        Fact(f"MSE {mean_squared_error(family.witness, family.task):.4f} of the first optimal model"),
        Fact(f"{plural(always, 'edges')} in all models", "good" if always else ""),
    ]
    if len(edges) > always:
        facts.append(Fact(f"{plural(len(edges) - always, 'edges')} open", "warn"))
    never = len(family.task.edges) - len(edges)
    if never:
        facts.append(Fact(f"{plural(never, 'edges')} in none"))
    if predictions is not None and order and len(predictions.outcomes[order[0]]) > 1:
        share = predictions.sum_of_squared_counts(order[0]) / predictions.count**2
        facts.append(Fact(f"the best experiment is expected to leave {100 * share:.0f} % of the models"))
    return tuple(facts)


def _rows(
    task: Task, num_questions: int, predictions: Predictions | None, order: list[int]
) -> tuple[PredictedRow, ...]:
    if predictions is None:
        return ()
    indices = list(range(num_questions)) or [k for k in order if len(predictions.outcomes[k]) > 1]
    return tuple(
        PredictedRow(
            predictions.experiments[k].text(task.setup),
            tuple(map(float, predictions.shares(k))),
            is_question=bool(num_questions),
        )
        for k in indices[:MAX_PREDICTED_ROWS]
    )


def _candidate(task: Task, predictions: Predictions, index: int) -> Candidate:
    readings = sorted(predictions.outcomes[index].items(), key=lambda entry: (-entry[1], entry[0]))
    return Candidate(
        predictions.experiments[index].text(task.setup),
        predictions.sum_of_squared_counts(index) / predictions.count**2,
        tuple((answers, str(members)) for answers, members in readings),
    )
