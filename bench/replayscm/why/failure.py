"""The page and the text of why an answer fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.why.failure import FailureWhy, VariableComparison, explain_failure
from calibrant.audits.why import listed
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.capabilities import AnswerExplainable
from calibrant.bench.pages.graphs import Graph, GraphNode, draw_together
from calibrant.bench.pages.page import html_page
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Evaluator

MAX_ROWS = 32  # differing assignments that page and terminal list for a variable; JSON has all
VARIABLE_HEADINGS = ("variable", "relation", "parents", "answer's parents", "differ at", "never shown", "training")
TOTAL_HEADINGS = ("", "AST nodes", "parent references")
REPLAY_HEADINGS = ("", "exact worlds", "right cells")


class FailureExplanations:
    """Implements bench.pages.capabilities.AnswerExplainable."""

    def explain(self, item: Problem, answer: str | Mapping[str, Any], system: str) -> FailureWhy:
        if item.task.extension is not None:
            raise CalibrantError(
                f"{item.id}: answers to items with noise, hidden variables or episodes are not compared"
            )
        from calibrant.bench.replayscm.scoring import ATTRIBUTE

        evaluator = Evaluator(item, compiles=False)
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        try:
            return explain_failure(
                item, score, system, None if item.task.reference is not None else ATTRIBUTE.decide_heldout(item)
            )
        except ValueError as reason:
            raise CalibrantError(f"{system} on {item.id}: {reason}") from None

    def body(self, why: FailureWhy, prefix: str) -> Markup:
        return body(why, prefix)

    def lines(self, why: FailureWhy) -> Iterator[str]:
        return lines(why)


def body(why: FailureWhy, prefix: str) -> Markup:
    """Return the contents of the page, without its frame; prefix: of ids, unique in the page."""
    content = {
        "why": why,
        "prefix": prefix,
        "target": why.target,
        "drawings": [Markup(drawing) for drawing in _drawings(why, prefix)],
        "variables": {"headings": VARIABLE_HEADINGS, "lines": variable_lines(why)},
        "details": [_details(c) for c in why.variables if c.relation != "same"],
        "totals": {"headings": TOTAL_HEADINGS, "lines": total_lines(why)},
        "replay": {"headings": REPLAY_HEADINGS, "lines": replay_lines(why)},
        "mismatch": mismatch_words(why),
        "experiment": experiment_words(why),
        "json_text": json.dumps(why.to_dict(), indent=1, ensure_ascii=False),
    }
    return Markup(html_page("why/failure.html", content))


def _drawings(why: FailureWhy, prefix: str) -> list[str]:
    graphs = []
    for title, side in ((why.target, 0), ("the answer", 1)):
        parents = {c.name: (c.gold_parents, c.answer_parents)[side] for c in why.variables}
        names = [*dict.fromkeys([*parents, *(p for listed_parents in parents.values() for p in listed_parents)])]
        nodes = {v: GraphNode(v, "", "open" if v in why.open else "") for v in names}
        graphs.append((title, parents, nodes))
    everywhere = list(dict.fromkeys(name for _, _, nodes in graphs for name in nodes))
    drawings = [
        Graph(
            {v: parents.get(v, ()) for v in everywhere},
            {v: nodes.get(v, GraphNode(v)) for v in everywhere},
            f"Graph of {title}",
            f"only in {title}",
        )
        for title, parents, nodes in graphs
    ]
    return draw_together(drawings, f"{prefix}-graph")


def variable_lines(why: FailureWhy) -> list[tuple[str, ...]]:
    """Return a line for each variable."""
    lines: list[tuple[str, ...]] = []
    for c in why.variables:
        number = "" if c.assignments is None else f"{len(c.assignments)} of {c.num_assignments}"
        never = "" if c.assignments is None else str(c.num_never_shown)
        verdict = "contradicted" if c.contradicted else "never shown" if c.is_wrong else ""
        counts = (number, never) if c.is_wrong else ("", "")
        parents = (" ".join(c.gold_parents) or UNDEFINED, " ".join(c.answer_parents) or UNDEFINED)
        lines.append((c.name, c.relation, *parents, *counts, verdict))
    return lines


def _details(c: VariableComparison) -> dict[str, Any]:
    rows = c.assignments or ()
    names = list(rows[0].values) if rows else []
    return {
        "name": c.name,
        "relation": c.relation,
        "gold": infix(parse(c.gold, ALL_OPERATORS)) if c.gold else "a root",
        "answer": infix(parse(c.answer, ALL_OPERATORS)) if c.answer else "a root",
        "headings": [*names, "gold", "answer", "training rows", "held-out rows"],
        "lines": [assignment_line(row, names) for row in rows[:MAX_ROWS]],
        "more": max(0, len(rows) - MAX_ROWS),
        "caption": f"{len(rows)} of {c.num_assignments} assignments differ; {c.num_never_shown} never shown",
    }


def assignment_line(row: Any, names: Sequence[str]) -> tuple[str, ...]:
    train = "never shown" if row.train == 0 else str(row.train)
    return (*(str(row.values[name]) for name in names), str(row.gold), str(row.answer), train, str(row.heldout))


def total_lines(why: FailureWhy) -> list[tuple[str, ...]]:
    t = why.totals
    return [
        (why.target, str(t.gold_size), str(t.gold_references)),
        ("answer", str(t.answer_size), str(t.answer_references)),
    ]


def replay_lines(why: FailureWhy) -> list[tuple[str, ...]]:
    t = why.totals
    return [
        ("training", _share(t.train_world), _share(t.train_cells)),
        ("held-out", _share(t.heldout_world), _share(t.heldout_cells)),
    ]


def _share(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def mismatch_words(why: FailureWhy) -> str:
    """Return a sentence on the first wrong held-out cell; empty where there is none."""
    m = why.mismatch
    if m is None:
        return ""
    values = ", ".join(f"{name}={value}" for name, value in m.values.items())
    fault = (
        f"the mechanism of {m.variable} itself is wrong there"
        if m.is_own_fault
        else f"the mechanism of {m.variable} is right there, but the answer computes {listed(m.inherited)} wrongly"
    )
    return (
        f"World {m.world}, row {m.row}, {m.intervention}: with {values or 'no parents'}, {m.variable} is {m.expected},"
        f" the answer gives {m.predicted}; {fault}."
    )


def experiment_words(why: FailureWhy) -> str:
    """Return a sentence on experiment and witness of an Alternative-SCM answer; empty for others."""
    e = why.experiment
    if e is None:
        return ""
    rates = ""
    if e.disagreement_rate is not None and e.cell_difference_rate is not None:
        shares = f"{e.disagreement_rate:.3f} of root assignments, in {e.cell_difference_rate:.3f} of cells"
        rates = f"; the two differ under {shares}"
    witness = {
        True: "a witness that holds",
        False: "a witness that does not hold",
        None: "a witness that was not tried",
    }
    failure = f". {e.failure}" if e.failure else ""
    return f"Experiment {e.experiment} with {witness[e.witness_valid]}{rates}{failure}."


def lines(why: FailureWhy) -> Iterator[str]:
    """Yield the lines of the terminal."""
    yield f"{why.title} ({why.system})"
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in why.facts)
    yield ""
    yield aligned(list(VARIABLE_HEADINGS), [list(line) for line in variable_lines(why)])
    for c in why.variables:
        if c.relation != "same":
            details = _details(c)
            yield ""
            yield f"{c.name} = {details['gold']} in {why.target}"
            yield f"{' ' * len(c.name)} = {details['answer']} in the answer"
            if details["lines"]:
                yield details["caption"]
                yield aligned(details["headings"], [list(line) for line in details["lines"]])
            if details["more"]:
                yield f"and {details['more']} more"
    if why.mismatch is not None:
        yield ""
        yield f"First wrong held-out cell. {mismatch_words(why)}"
    if why.experiment is not None:
        yield ""
        yield experiment_words(why)
    yield ""
    yield aligned(list(TOTAL_HEADINGS), [list(line) for line in total_lines(why)])
    yield aligned(list(REPLAY_HEADINGS), [list(line) for line in replay_lines(why)])


ANSWERS: AnswerExplainable = FailureExplanations()
