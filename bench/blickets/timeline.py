"""Episodes at a detector as timelines: objects on it, its readings, and the consistent rules after every move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from calibrant.audits.attribution import Attribution, Kind
from calibrant.audits.blickets.attribution import Narrowing, attribute_episode, trace_narrowing
from calibrant.baselines.blickets.context import BEHAVIOURS, START, Graph, first_firings
from calibrant.bench.core.attribution import NOT_ANSWERED
from calibrant.bench.pages.graphs import GraphEdge, GraphNode
from calibrant.bench.pages.timeline import (
    AnswerGroup,
    Decision,
    Light,
    Moment,
    News,
    StateGraph,
    Timeline,
    TimelineViews,
)
from calibrant.dsl.blickets.item import BlicketItem, Form, Mechanism, Rule, all_rules, names_of
from calibrant.dsl.blickets.reference import Ending, is_active, run
from calibrant.dsl.blickets.score import Grade, grade
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.text import plural
from calibrant.solvers.blickets.exact import DetectorSpace, class_of

TITLES = ("one blicket", "all of these are needed", "any of these is enough")
DETECTOR = "detector"


def blicket_timeline(item: BlicketItem, steps: Sequence[Step[str]], system: str) -> Timeline:
    """Return the timeline of an episode; `TranscriptError` if the steps do not replay on the item.

    Hypotheses are those of the class that knows the item's condition.
    """
    result = grade(item, steps)
    attribution = attribute_episode(item, steps).attribution
    space = class_of(item)
    listed = _list_rules(item.task.n)
    numbers = {rule: k for k, rule in enumerate(rule for rules in listed for rule in rules)}
    moves = list(trace_narrowing(item.task, steps, space))
    phases = _phases(item, steps)
    moments = [_before(item, space, numbers)]
    moments += [_moment(item, move, numbers, phase) for move, phase in zip(moves, phases[1:], strict=True)]
    decision = _decision(item, result, attribution, numbers, moments[-1].answers)
    if moments[-1].light is Light.SUBMITTED:
        verdict = "Right" if decision.correct else f"Not right: the answer was {decision.truth}"
        moments[-1] = replace(moments[-1], remark=f"{verdict}. {decision.why}")
    decided = next((k for k, moment in enumerate(moments) if len(moment.answers) == 1), None)
    objects = item.task.objects
    labels = _labels(objects)
    return Timeline(
        item.id,
        system,
        DETECTOR,
        tuple(map(in_one_line, objects)),
        labels,
        tuple(
            AnswerGroup(title, tuple("".join(names_of(rule.blickets, labels)) for rule in rules))
            for title, rules in zip(TITLES, listed, strict=True)
        ),
        tuple(moments),
        space.in_words,
        decision,
        decided,
        tuple(k for k, (before, after) in enumerate(pairwise(phases), 1) if before != after),
        tuple(_context_graphs(item, steps)) if WITH_BEHAVIOURS in system else (),
    )


WITH_BEHAVIOURS = "cg+db"
"""Part of the name of systems with a context graph and dynamic behaviours that extend it."""


def _context_graphs(item: BlicketItem, steps: Sequence[Step[str]]) -> Iterator[StateGraph]:
    """Yield the context graph at the start, then as each behaviour extended it: for DB4, Figure 1 of the paper."""
    context = START
    yield _context_graph("Context graph at the start", context.graph, "")
    by_key = {behaviour.key: behaviour for behaviour in BEHAVIOURS}
    for key, num_moves in sorted(first_firings(item.task, steps).items(), key=lambda firing: (firing[1], firing[0])):
        behaviour = by_key[key]
        context = behaviour.extend_context(context)
        title = f"Context graph after {key} ({behaviour.name.replace('_', ' ')}), from move {num_moves} on"
        yield _context_graph(title, context.graph, behaviour.state.name)


def _context_graph(title: str, graph: Graph, added: str) -> StateGraph:
    """Return a context graph to draw; added: state that a behaviour just added, which is marked with its edges."""
    names = {state.name for state in graph.states}
    edges = [edge for edge in graph.edges if {edge.source, edge.target} <= names]
    return StateGraph(
        title,
        tuple(GraphNode(s.name, s.type.value, "good" if s.name == added else "") for s in graph.states),
        tuple(
            GraphEdge(e.source, e.target, "good" if added in (e.source, e.target) else "", title="may be taken")
            for e in edges
        ),
    )


def _list_rules(n: int) -> tuple[list[Rule], list[Rule], list[Rule]]:
    """Return the distinct rules: of one blicket, conjunctive and disjunctive ones; small sets first."""
    rules = sorted(all_rules(n), key=lambda rule: (rule.blickets.bit_count(), _object_indices(rule)))
    single = [rule for rule in rules if rule.blickets.bit_count() == 1]
    by_form = [[rule for rule in rules if rule.form is form and rule.blickets.bit_count() > 1] for form in Form]
    return single, by_form[0], by_form[1]


def _object_indices(rule: Rule) -> tuple[int, ...]:
    return tuple(k for k in range(rule.blickets.bit_length()) if rule.blickets >> k & 1)


def _labels(objects: Sequence[str]) -> tuple[str, ...]:
    """Return short labels: a letter of each name, or the part in which names differ; else numbers from 1."""
    columns = [set(letters) for letters in zip(*objects, strict=False)]
    start = next((k for k, letters in enumerate(columns) if len(letters) > 1), len(columns))
    labels = tuple(in_one_line(name[start:]) for name in objects)
    return labels if all(len(label) == 1 for label in labels) else tuple(str(k + 1) for k in range(len(objects)))


def _phases(item: BlicketItem, steps: Sequence[Step[str]]) -> list[int]:
    """Return the index of the mechanism of the next reading, before the first step and after each."""
    actions = [step.action for step in steps]
    history = run(item, actions if item.sealed.start_on is None else actions[1:])
    return [0, *(item.sealed.phase(moment.activations, moment.t) for moment in history.moments)]


def _before(item: BlicketItem, space: DetectorSpace, numbers: Mapping[Rule, int]) -> Moment:
    answers = _answers(space, numbers)
    mechanism = item.sealed.mechanisms[0]
    remark = f"{_hypotheses(space.count)}, {plural(len(answers), 'answers')}."
    caption = f"Before the first of {item.task.budget} moves"
    return Moment(
        caption,
        "",
        Light.NONE,
        (),
        (),
        space.count,
        answers,
        News.NONE,
        remark,
        *_rule_in_force(mechanism, item.task.objects),
    )


def _moment(item: BlicketItem, narrowing: Narrowing, numbers: Mapping[Rule, int], phase: int) -> Moment:
    answers = _answers(narrowing.after, numbers)
    news, remark = _news(narrowing, len(answers))
    return Moment(
        _caption(narrowing, item),
        narrowing.step.reading or ("Refused" if narrowing.step.refused else "Submitted"),
        _light(narrowing.step),
        narrowing.placed,
        tuple(k for k, name in enumerate(item.task.objects) if name in narrowing.step.action.values()),
        narrowing.after.count,
        answers,
        news,
        remark,
        *_rule_in_force(item.sealed.mechanisms[phase], item.task.objects),
    )


def _rule_in_force(mechanism: Mechanism, objects: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the rule of the next reading in words, and the indices of its objects."""
    words = _describe_rule(mechanism.rule, objects)
    if mechanism.order is not None:
        words += f", placed in the order {', '.join(in_one_line(objects[k]) for k in mechanism.order)}"
    return words, _object_indices(mechanism.rule)


def _describe_rule(rule: Rule, objects: Sequence[str]) -> str:
    names = [in_one_line(name) for name in names_of(rule.blickets, objects)]
    if len(names) == 1:
        return names[0]
    return f"{'all' if rule.form is Form.CONJUNCTIVE else 'any'} of {', '.join(names)}"


def _caption(narrowing: Narrowing, item: BlicketItem) -> str:
    ((verb, about),) = list(narrowing.step.action.items())[:1] or [("nothing", "")]
    if verb == "start":
        return f"At the start: {', '.join(map(in_one_line, about)) or 'nothing'} on the detector"
    if verb == "check":
        return f"After move {narrowing.moves}: submit {_describe_submission(about)}"
    done = f"{verb} {in_one_line(about) if isinstance(about, str) and len(about) < 40 else short_repr(about)}"
    return f"Move {narrowing.moves} of {item.task.budget}: {in_one_line(done)}"


def _describe_submission(stated: Any) -> str:
    names = stated.get("blickets") if isinstance(stated, Mapping) else None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return short_repr(stated)
    return in_one_line(f"{str(stated.get('rule'))[:20]}: {', '.join(name[:20] for name in names[:8])}")


def _light(step: Step[str]) -> Light:
    if step.reading is not None:
        return Light.ON if is_active(step.reading) else Light.OFF
    return Light.REFUSED if step.refused else Light.SUBMITTED


def _answers(space: DetectorSpace, numbers: Mapping[Rule, int]) -> dict[int, float]:
    """Return answer number -> posterior probability; its share of members if the class has no weights."""
    try:
        shares: Mapping[Rule, float] = space.posterior() if space.count else {}
    except ValueError:  # the mixture has no weights for many objects
        shares = {rule: members / space.count for rule, members in space.verdicts().items()}
    return dict(sorted((numbers[rule], share) for rule, share in shares.items()))


def _hypotheses(count: int) -> str:
    return "1 hypothesis" if count == 1 else f"{count:,} hypotheses"


def _news(narrowing: Narrowing, answers: int) -> tuple[News, str]:
    """Return whether the reading was informative, and a sentence on what it ruled out."""
    before, after = narrowing.before.count, narrowing.after.count
    if narrowing.step.reading is None:
        return News.NONE, f"{in_one_line(narrowing.step.refused)[:200]}." if narrowing.step.refused else ""
    if not before:
        return News.NOTHING, "No hypothesis of the class was left to learn about."
    if not after:
        return News.TOLD, f"Contradicts all {_hypotheses(before)} that were left: the class is refuted."
    remainder = f"{_hypotheses(after)}, {answers} answer{'' if answers == 1 else 's'} left."
    if len(narrowing.before.outcomes(narrowing.placed)) == 1:
        return News.NOTHING, f"Every hypothesis that was left says so; nothing is ruled out. {remainder}"
    if before == after:
        return News.SHIFTED, f"Rules out nothing, but makes some rules more probable than others. {remainder}"
    return News.TOLD, f"Rules out {before - after:,} of {_hypotheses(before)}. {remainder}"


def _decision(
    item: BlicketItem,
    result: Grade,
    attribution: Attribution,
    numbers: Mapping[Rule, int],
    posterior: Mapping[int, float],
) -> Decision:
    objects = item.task.objects
    answer_number = None if result.answer is None else numbers[result.answer.canonical]
    truth, _ = _rule_in_force(Mechanism(result.rule_in_force), objects)
    nothing = "nothing; the moves were spent" if result.ending is Ending.TIMEOUT else "nothing; the episode is open"
    return Decision(
        nothing if result.answer is None else _describe_rule(result.answer, objects),
        truth,
        bool(result.correct),
        str(attribution.kind) if result.answer else NOT_ANSWERED,
        " ".join(_why(attribution, posterior, answer_number)),
        answer_number,
        numbers[result.rule_in_force.canonical],
    )


def _why(attribution: Attribution, posterior: Mapping[int, float], answer_number: int | None) -> Iterator[str]:
    if not posterior:
        yield "The readings left no hypothesis of the class,"
    elif attribution.decided and len(posterior) > 1:
        yield f"The readings gave one answer a posterior of {attribution.posterior:.3g},"
    elif attribution.decided:
        yield "The readings left one answer,"
    else:
        yield f"The readings left {plural(len(posterior), 'answers')},"
    match attribution.kind:
        case Kind.EARNED:
            yield "and it was given."
        case Kind.MISSED:
            yield "but none was given." if answer_number is None else "but another was given."
        case Kind.LUCKY:
            yield "and a right one was given."
        case Kind.SHORT:
            yield "and none was given." if answer_number is None else "and a wrong one was given."
    if attribution.fits is False:
        yield "The answer contradicts the readings."
    elif answer_number is not None and len(posterior) > 1:
        yield f"As the class weighs them, it had a probability of {posterior[answer_number]:.3g}."


EPISODE_VIEWS = TimelineViews(blicket_timeline)
