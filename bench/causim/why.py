"""Explanations of questions about programs: page, drawing and text of a `QuestionWhy`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any
from zlib import crc32

from markupsafe import Markup

from calibrant.audits.causim.why import AnswerGroup, QuestionNode, QuestionWhy, explain
from calibrant.audits.why import listed, number_text
from calibrant.bench.causim.pictures import LayeredNode, LayeredPicture, Mark, layered_svg
from calibrant.bench.pages import why as pages_why
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.page import Lesson, WhyTable, html_page, standalone_svg
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import shown_value
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent

# --- Page of a `QuestionWhy`: graph with noise, answers with the noise that gives each, the deciding line -------------
_HARDEN = Markup("calibrant harden {} --only {} --out hardened.jsonl")
MAX_VALUES = 8  # values of a noise variable that a row lists
MAX_CHARS = 16  # letters of a value in a box
MAX_NODES = 24  # larger graphs are not drawn


def page_body(why: QuestionWhy, prefix: str) -> Markup:
    """Return the body of the page; prefix: put before its HTML ids."""
    reveals = pages_why.experiment_table(
        why.experiments, "What revealing one value would leave", "Over the values that it may have", "reveal", "worlds"
    )
    content = {
        "why": why,
        "prefix": prefix,
        "graph_title": graph_title(why),
        "graph": Markup(graph(why)) if len(why.nodes) <= MAX_NODES else "",
        "answer": answer_lines(why),
        "groups": pages_why.shown_table(group_table(why)) if why.groups else None,
        "advice": advice(why),
        "command": _HARDEN.format(pages_why.POOL, quote(why.item)) if why.reveal else "",
        "values": pages_why.shown_table(reveals) if why.state == "open" and why.experiments else None,
        "pair": _pair_rows(why),
        "world": _world_rows(why),
        "counted": counted_words(why),
        "json_text": pages_why.page_json(why),
    }
    return Markup(html_page("why/causim.html", content))


def drawing(why: QuestionWhy) -> str:
    """Return the graph as an SVG file."""
    return standalone_svg(graph(why))


def graph_title(why: QuestionWhy) -> str:
    done = ", ".join(f"{node.name} = {_shortened(node.do)}" for node in why.nodes if node.do is not None)
    return f"Under do({done})" if done else "The program"


def graph(why: QuestionWhy) -> str:
    """Draw the program with noise; variables that differ between the worlds that fit are marked open."""
    is_open = _is_open(why)
    nodes = []
    for node in why.nodes:
        marks = {Mark.SET} if node.do is not None else {Mark.CHANGED} if is_open[node.name] else set()
        nodes.append(LayeredNode(node.name, node.parents, noise_words(node), value_words(node), frozenset(marks)))
    prefix = f"q{crc32(why.item.encode('utf-8', 'surrogatepass')):08x}-"  # ids hold no spaces, as names of items may
    return layered_svg(LayeredPicture("", "", tuple(nodes)), MEANINGS, prefix)


MEANINGS = {
    Mark.SET: "set by do: nothing else has an effect",
    Mark.REACHED: "below what is set",
    Mark.CHANGED: "open: differs between worlds that fit",
}


def _is_open(why: QuestionWhy) -> dict[str, bool]:
    return {node.name: len(node.values) > 1 for node in why.nodes}


def noise_words(node: QuestionNode) -> str:
    if node.noise_value is not None:
        return f"{node.noise} = {_shortened(node.noise_value)}"
    return f"{node.noise} = ? ({node.num_values})" if node.num_values > 1 else node.noise


def value_words(node: QuestionNode) -> str:
    """Return what is known of a variable's value: set by `do`, one or two possible values, or their number."""
    if node.do is not None:
        return f"do = {_shortened(node.do)}"
    if not node.values:
        return ""
    if len(node.values) <= 2:
        return " or ".join(map(_shortened, node.values))
    return plural(len(node.values), "values")


def _shortened(value: str | None) -> str:
    text = value or ""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def group_table(why: QuestionWhy) -> WhyTable:
    """Return a table with a row for each answer: unknown noise that gives it, probability, values that follow."""
    keys = [key for group in why.groups[:1] for key in group.answer]
    followers = [key for key in keys if key not in why.unknown]
    rows = tuple(
        (
            *(values_words(group.noise.get(u, ())) for u in why.unknown),
            group.probability,
            *(shown_value(group.answer[key]) for key in followers),
        )
        for group in why.groups
    )
    unknown = listed(list(why.unknown)) if why.unknown else "the noise"
    true_rows = frozenset(k for k, group in enumerate(why.groups) if is_true(why, group))
    return WhyTable(
        f"What {unknown} may be, and what follows",
        "Worlds that fit, grouped by their answer" + ("; marked: the sealed world's" if true_rows else ""),
        (*why.unknown, "probability", *followers),
        rows,
        true_rows,
        numeric=frozenset({len(why.unknown)}),
    )


def counted_words(why: QuestionWhy) -> str:
    worlds = "1 world fits" if why.num_worlds == "1" else f"{number_text(int(why.num_worlds))} worlds fit"
    follow = "1 answer follows" if why.count.in_words() == "1" else f"{why.count.in_words()} answers follow"
    return f"{worlds}; {follow} from {'it' if why.num_worlds == '1' else 'them'}. Counted: {why.class_in_words}."


def answer_lines(why: QuestionWhy) -> list[str]:
    """Return the only right answer, one line for each variable; empty if several are right."""
    if len(why.groups) != 1 or why.state != "decided":
        return []
    return [f"{key} = {shown_value(value)}" for key, value in why.groups[0].answer.items()]


def is_true(why: QuestionWhy, group: AnswerGroup) -> bool:
    """Return whether the sealed world gives this answer."""
    world = why.true_world
    if world is None:
        return False
    truth = world.noise | world.after
    return all(truth.get(key) == shown_value(value) for key, value in group.answer.items())


def values_words(values: Sequence[str]) -> str:
    more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
    return ", ".join(map(shown_value, values[:MAX_VALUES])) + more


def advice(why: QuestionWhy) -> list[str]:
    """Return a heading and a sentence about the fewest values that leave one answer; empty unless undecided."""
    if why.state != "open":
        return []
    if not why.reveal:
        return ["What would settle it", "More than three further values, or worlds that were not all listed."]
    names = listed(list(why.reveal))
    if len(why.reveal) == 1:
        num_values = next((len(e.outcomes) for e in why.experiments if e.in_words == f"reveal {names}"), 0)
        return [
            "The one value that decides",
            f"Reveal {names}: each of its {num_values} values leaves one answer. Nothing less does.",
        ]
    return [
        f"The {len(why.reveal)} values that decide",
        f"Reveal {names} together: whatever the values, one answer is left. No fewer values do.",
    ]


def _pair_rows(why: QuestionWhy) -> list[dict[str, Any]]:
    if why.pair is None:
        return []
    first, second = why.pair
    return [{"noise": u, "first": first[u], "second": second[u], "differs": first[u] != second[u]} for u in first]


def _world_rows(why: QuestionWhy) -> list[dict[str, Any]]:
    world = why.true_world
    if world is None:
        return []
    return [
        {
            "name": node.name,
            "noise": world.noise[node.noise],
            "before": world.before[node.name],
            "after": world.after[node.name],
            "differs": world.before[node.name] != world.after[node.name],
        }
        for node in why.nodes
    ]


# --- Lesson: a question in steps for a class --------------------------------------------------------------------------
CLASS_WORDS = (
    ("hidden chance", "noise: the variables whose names begin with U_"),
    ("set by hand", "intervention, do(...)"),
    ("world", "one value for each hidden chance"),
)
MAX_CHOICES = 3  # answers on which a class votes


def lesson(item: CausimItem, why: QuestionWhy) -> Lesson:
    """Return the lesson of a question; its evidence is the program and the given values of the world."""
    rows = tuple(
        (
            node.name,
            listed(list(node.parents)) if node.parents else "nothing else",
            f"{node.noise} = {node.noise_value}" if node.noise_value is not None else f"{node.noise} unknown",
            node.do or "",
            node.observed or "",
        )
        for node in why.nodes
    )
    headings, cells = pages_why.drop_empty(("variable", "depends on", "hidden chance", "set by hand", "seen"), rows, 4)
    headings, cells = pages_why.drop_empty(headings, cells, 3)
    evidence = WhyTable("Variables", f"{plural(len(rows), 'variables')} of the program below", headings, cells)
    task, code = item.task.question.form.task, item.task.source.replace("\n\n\n", "\n\n")
    if not 1 < len(why.groups) <= MAX_CHOICES:
        general = pages_why.general_lesson(why, evidence, CLASS_WORDS, advice(why))
        question = f"{task} Is there exactly one right answer?"
        answers = [_answer_words(why, group) for group in why.groups] if len(why.groups) == 1 else []
        verdict = (*general.verdict, *(f"The answer: {answer}." for answer in answers))
        return replace(general, code=code, question=question, verdict=verdict)
    comparison = group_table(why)
    return Lesson(
        *(why.item, (), evidence, CLASS_WORDS),
        question=f"What will {listed(list(why.open))} be?",
        choices=(*(_answer_words(why, group) for group in why.groups), pages_why.NOT_DECIDED),
        answer=len(why.groups),
        heading=f"What is right: {why.count.in_words()} answers",
        verdict=(why.reason_text,),
        comparison=comparison,
        advice=tuple(advice(why)),
        code=code,
    )


def _answer_words(why: QuestionWhy, group: AnswerGroup) -> str:
    """Return the undecided values of an answer as text; all its values if none is undecided."""
    keys = [key for key in group.answer if key in why.open] or list(group.answer)
    return ", ".join(f"{key} = {shown_value(group.answer[key])}" for key in keys)


# --- Explanations of questions about programs -------------------------------------------------------------------------


class QuestionExplanations:
    """Implements Explainable (bench.pages.capabilities)."""

    def explain(self, item: CausimItem, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False) -> QuestionWhy:
        try:
            return explain(item, reveal_sealed=reveal_sealed)
        except BudgetSpent as spent:
            raise CalibrantError(f"{in_one_line(item.id)} cannot be explained: {spent}") from None

    def body(self, why: QuestionWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def lesson(self, item: CausimItem, why: QuestionWhy) -> Lesson:
        return lesson(item, why)

    def drawing(self, why: QuestionWhy) -> str:
        return drawing(why)

    def lines(self, why: QuestionWhy) -> Iterator[str]:
        values = pages_why.experiment_table(
            why.experiments,
            "What revealing one value would leave",
            "over the values that it may have",
            "reveal",
            "worlds",
        )
        tables = [group_table(why), *([values] if why.state == "open" else [])]
        yield from pages_why.tables_lines(why, tables, advice(why), answer_lines(why))
        if why.branch is not None:
            yield ""
            yield f"Where {why.branch.node} is decided"
            for line in why.branch.code:
                mark = "> " if line.branches else "  "
                yield f"{mark}{line.text}" + (f"  # {', '.join(line.ends[:8])}" if line.ends else "")


EXPLANATIONS: Explainable = QuestionExplanations()
