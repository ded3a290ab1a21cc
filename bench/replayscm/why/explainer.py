"""Explanations of ReplaySCM: why an item is open (undecided), and why an answer fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.parts import (
    DecidedVariable,
    FittingScm,
    Pair,
    ReplayWhy,
    TableRow,
    range_text,
    witness_row,
)
from calibrant.audits.why import listed, number_text, percent
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.pages import why as pages_why
from calibrant.bench.pages.capabilities import AnswerExplainable, Explainable
from calibrant.bench.pages.graphs import Graph, GraphEdge, GraphNode, draw_ring, draw_together
from calibrant.bench.pages.page import Lesson, LessonModel, WhyTable, html_page, standalone_svg
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.replayscm.items import ASSUME
from calibrant.bench.replayscm.why.page import (
    MAX_EVIDENCE,
    bearing_rows,
    body,
    drawing,
    formula_text,
    graph,
    lines,
    seen_text,
    shown_but_set,
    table,
)
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent

if TYPE_CHECKING:  # imported at first use
    from calibrant.audits.replayscm.extended.why import EdgeShare, EstimatedWorld, ExtendedWhy
    from calibrant.audits.replayscm.why.failure import FailureWhy, VariableComparison

# --- The page and the text of why an answer fails ---------------------------------------------------------------------
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
        from calibrant.audits.replayscm.why.failure import explain_failure
        from calibrant.bench.replayscm.scoring import ATTRIBUTE
        from calibrant.dsl.replayscm.score import Evaluator

        evaluator = Evaluator(item, compiles=False)
        score = evaluator.score_text(answer) if isinstance(answer, str) else evaluator.score_answer(answer)
        try:
            return explain_failure(
                item, score, system, None if item.task.reference is not None else ATTRIBUTE.decide_heldout(item)
            )
        except ValueError as reason:
            raise CalibrantError(f"{system} on {item.id}: {reason}") from None

    def body(self, why: FailureWhy, prefix: str) -> Markup:
        return failure_body(why, prefix)

    def lines(self, why: FailureWhy) -> Iterator[str]:
        return failure_lines(why)


def failure_body(why: FailureWhy, prefix: str) -> Markup:
    """Return the body of the page; prefix: put before its HTML ids."""
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
    """Return a row of the table for each variable, with columns VARIABLE_HEADINGS."""
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
    """Return a sentence on the first wrong held-out cell; empty without one."""
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


def failure_lines(why: FailureWhy) -> Iterator[str]:
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


# --- Extended items, page and text: the next world, posterior of edges, rates, the evidence ---------------------------
MAX_NODES = 12  # larger graphs are not drawn
MAX_FRACTION_CHARS = 24  # longer fractions are only in the JSON


def extended_body(why: ExtendedWhy, prefix: str) -> Markup:
    """Return the body of the page; prefix: put before its HTML ids."""
    return pages_why.tables_body(why, extended_tables(why, extended_graph(why, prefix)), extended_advice(why), prefix)


def extended_advice(why: ExtendedWhy) -> tuple[str, ...]:
    """Return a heading and sentences about the next world; empty if nothing is open or no world distinguishes SCMs."""
    if why.worlds_left == 0 and why.state not in ("decided", "empty"):
        return ("No further world", "The allowance of the episode is spent; what is open stays open.")
    # only worlds with the same contexts are compared; other contexts may decide more
    compared = " of those compared"
    advice = (
        pages_why.best_advice(why.experiments, "world", "SCMs", compared)
        if why.experiments
        else _estimate_advice(why.next_world)
    )
    if not advice or why.worlds_left is None:
        return advice
    action = why.actions[0] if why.next_world is None else why.next_world.action
    worlds = f"{plural(why.worlds_left, 'worlds')} may still be asked for."
    return (*advice, f"To ask for it: {json.dumps(action)}.", worlds)


def _estimate_advice(world: EstimatedWorld | None) -> tuple[str, ...]:
    if world is None:
        return ()
    if world.bits is not None:
        halved = f"as if what is plausible were halved {world.bits:.1f} times"
        value = f"its reading tells {world.bits:.1f} bits of the SCM, expected: {halved}"
    else:
        value = f"it leaves {percent(world.share or 0.0)} of the SCMs, expected"
    return ("The world that helps most", f"{world.in_words}: {value} (estimated from drawn SCMs).")


def extended_graph(why: ExtendedWhy, prefix: str) -> str:
    """Draw the edges with their posterior probabilities; empty for more than MAX_NODES variables."""
    if not why.edges or len(why.variables) > MAX_NODES:
        return ""
    effects = {edge.effect for edge in why.edges}
    ordered = [*(v for v in why.variables if v not in effects), *(v for v in why.variables if v in effects)]
    nodes = [GraphNode(name, "hidden" if name in why.hidden else "", "") for name in ordered]
    edges = [
        GraphEdge(edge.cause, edge.effect, "good" if edge.fraction == "1" else "open", share_words(edge))
        for edge in why.edges
        if edge.share >= 0.05
    ]
    return draw_ring(nodes, edges, f"Edges with a posterior of at least 5 %: {len(edges)}", f"{prefix}-graph")


def share_words(edge: EdgeShare) -> str:
    """Return a share in percent; an exact share is shown as 100 only if it is certain."""
    return percent(Fraction(edge.fraction) if edge.fraction else edge.share)


def extended_tables(why: ExtendedWhy, chart: str = "") -> list[WhyTable]:
    """Return tables of edges by posterior, rates and the evidence; true edges are marked only if gold is revealed."""
    true_edges = set(why.true_edges or ())
    revealed = why.true_edges is not None
    ranked = sorted(why.edges, key=lambda edge: (-edge.share, edge.cause, edge.effect))
    rows = tuple(
        (
            edge.cause,
            edge.effect,
            share_words(edge),
            edge.fraction if len(edge.fraction) <= MAX_FRACTION_CHARS else "",
            *(["yes" if (edge.cause, edge.effect) in true_edges else ""] if revealed else []),
        )
        for edge in ranked
    )
    headings, rows = pages_why.drop_empty(
        ("cause", "effect", "posterior", "exactly", *(["sealed: true"] if revealed else [])), rows, 3
    )
    origin = f", estimated from {why.num_draws} draws (standard error up to 5 %)" if why.num_draws else ", exact"
    caption = f"Posterior probability that the effect depends on the cause{origin}; solid: certain, dashed: open"
    sealed = frozenset({len(headings) - 1} if revealed else ())
    edges = WhyTable("Edges", caption, headings, rows, chart=chart, numeric=frozenset({2}), sealed=sealed)
    rates = WhyTable(
        "Rate of noise",
        "Posterior probability of each rate that the class admits",
        ("rate", "posterior"),
        tuple((rate.rate, percent(rate.share)) for rate in why.rates),
        numeric=frozenset({0, 1}),
    )
    visible = [name for name in why.variables if name not in why.hidden]
    worlds = WhyTable(
        "Evidence",
        f"Worlds in order; rows over {' '.join(visible)}",
        ("world", "set", "rows"),
        tuple(
            (str(k), ", ".join(f"{v} = {bit}" for v, bit in line.set_to.items()) or "nothing", " ".join(line.rows))
            for k, line in enumerate(why.evidence)  # world 0 is the start of an episode, as in `play`
        ),
        numeric=frozenset({0}),
    )
    following = pages_why.experiment_table(
        why.experiments,
        "Next worlds",
        "Worlds that tell SCMs apart, fewest left at worst first; readings: how many different rows it may show",
        "world",
        "SCMs",
        lists_outcomes=False,  # an outcome is all rows of a world, too long to list; the JSON has them
    )
    return [worlds, following, edges, rates]


# --- Lesson: an item in steps for a class -----------------------------------------------------------------------------
MAX_RIVALS = 2  # wrong formulas among the choices of a vote
WORDS = (
    ("model", "a formula for each thing that depends on others; elsewhere: SCM"),
    ("row", "one observation; elsewhere: unit of a world"),
    ("set by hand", "intervention, do(...)"),
)


def lesson(why: ReplayWhy) -> Lesson:
    """Return the lesson: of an open item it asks for the undecided value, of a decided item for a formula."""
    evidence = class_evidence(why)
    row = witness_row(why)
    if row is not None and why.pair is not None:
        return _open_lesson(why, why.pair, row, evidence)
    mechanism = max(why.mechanisms, key=lambda decided: len(decided.parents), default=None)
    if why.model is not None and mechanism is not None and (rivals := excluded_rivals(mechanism)):
        return _decided_lesson(why, why.model, mechanism, rivals, evidence)
    return pages_why.general_lesson(why, evidence, WORDS, ())


def class_evidence(why: ReplayWhy) -> WhyTable:
    """Return the table of rows with interventions marked; of many rows only those that matter for the item."""
    worlds, names = why.evidence.worlds, why.evidence.variables
    is_long = why.evidence.num_rows > MAX_EVIDENCE
    places = (
        bearing_rows(why) if is_long else [(w, u) for w, world in enumerate(worlds) for u in range(len(world.rows))]
    )
    rows = []
    for w, u in places:
        world = worlds[w]
        values = dict(zip(names, world.rows[u], strict=True))
        label = world.units[u] if len(worlds) == 1 else class_place(f"{world.id} {world.units[u]}")
        by_hand = ", ".join(f"{name} = {values[name]}" for name in world.targets)
        rows.append((label, by_hand, *(values[name] for name in why.columns)))
    if all(label.startswith("line ") for label, *_ in rows):
        rows.sort(key=lambda row: int(row[0].removeprefix("line ")))
    caption = f"{len(places)} of {plural(why.evidence.num_rows, 'rows')}, those that matter here"
    headings, cells = pages_why.drop_empty(("row", "set by hand", *why.columns), rows, 1)
    return WhyTable("Evidence", caption if is_long else plural(len(places), "rows"), headings, cells)


def _open_lesson(why: ReplayWhy, pair: Pair, row: TableRow, evidence: WhyTable) -> Lesson:
    variable = pair.differing[0]
    by_hand = why.witness.intervention if why.witness is not None and why.witness.needs_set else {}
    values = [f"{name} = {bit}{' (set by hand)' if name in by_hand else ''}" for name, bit in row.values.items()]
    setting = (
        f"Next time {listed(values)}, and {variable} is not set by hand."
        if values
        else f"{variable} is not set by hand."
    )
    is_pair = why.count.is_exact and why.count.lower == "2"
    agree = "Both models agree with every row that was seen."
    verdict = [f"{agree} Asked about this one, A gives {row.first} and B gives {row.second}."]
    verdict += [text[0].upper() + text[1:] for text in (re.sub(r"\S+ (line \d)", r"\1", shown_but_set(why)),) if text]
    letters = (("A", pair.first, row.first), ("B", pair.second, row.second))
    drawings = draw_together([graph(why, model, letter) for letter, model, _ in letters], f"class-{why.item}")
    models = tuple(
        LessonModel(
            f"Model {letter}: {variable} = {bit}",
            tuple(f"{name} = {formula_text(model, name)}" for name in pair.differing),
            drawing,
        )
        for (letter, model, bit), drawing in zip(letters, drawings, strict=True)
    )
    rows = table(why)
    compared = tuple((*map(str, r.values.values()), seen_text(r), str(r.first), str(r.second)) for r in rows)
    look = frozenset(k for k, entry in enumerate(rows) if entry.differs)
    comparison = WhyTable(
        "Row by row", f"What {variable} shows, and what A and B give", (*row.values, "seen", "A", "B"), compared, look
    )
    return Lesson(
        *(why.item, (), evidence, WORDS, f"{setting} What will {variable} be?"),
        (f"{variable} = 0", f"{variable} = 1", pages_why.NOT_DECIDED),
        answer=2,
        heading="Two models fit" if is_pair else f"What fits: {why.count.in_words()} models; here are two",
        verdict=tuple(verdict),
        models=models,
        comparison=comparison,
        advice=class_advice(why, variable),
    )


def class_advice(why: ReplayWhy, variable: str) -> tuple[str, ...]:
    """Return a heading and sentences about the row to try next; empty without one."""
    if not why.deciders:
        return ()
    best = why.deciders[0]
    (pattern,) = best.world["rows"]
    by_hand = best.world.get("constants", {})
    steps = [f"set {name} = {bit} by hand" for name, bit in by_hand.items()]
    values = [
        f"{name} = {bit}" for name, bit in zip(why.columns, pattern, strict=True) if bit != "?" and name not in by_hand
    ]
    steps += [f"take a row with {listed(values)}"] if values else []
    sentence = f"{listed([*steps, f'look at {variable}'])}."
    effect = (
        "Whatever it shows, one model is left."
        if best.decides
        else f"That leaves {range_text(best)} of {why.count.in_words()} models."
    )
    heading = "What settles it" if best.decides else "What helps most"
    return heading, sentence[0].upper() + sentence[1:], effect, *(() if best.decides else (pages_why.THEN,))


def excluded_rivals(mechanism: DecidedVariable) -> list[tuple[str, TableRow]]:
    """Return simple wrong formulas over the parents, each with an observed row that excludes it."""
    names = mechanism.parents
    rules: list[tuple[str, Callable[[Sequence[int]], int]]] = []
    if len(names) > 1:
        rules += [(" and ".join(names), lambda bits: int(all(bits))), (" or ".join(names), lambda bits: int(any(bits)))]
    rules += [(name, itemgetter(index)) for index, name in enumerate(names)]
    rules += [(f"not {names[0]}", lambda bits: 1 - bits[0])] if names else []
    rules += [("0", lambda bits: 0), ("1", lambda bits: 1)]
    rivals = []
    for text, rule in rules:
        against = [r for r in mechanism.rows if r.where and rule(tuple(r.values.values())) != r.first]
        rivals += [(text, against[0])] if against else []
    return rivals[:MAX_RIVALS]


def covered_row(mechanism: DecidedVariable) -> str:
    """Return what fits without a row: if no other row repeats it, its other value fits as well."""
    lone = next((row for row in mechanism.rows if len(row.where) == 1), None)
    if lone is None or not lone.values:
        return "It is: every combination was seen more than once."
    values = listed([f"{name} = {bit}" for name, bit in lone.values.items()])
    return f"Not without {class_place(lone.where[0])}: no other row shows {values}, and both values fit there."


def class_place(where: str) -> str:
    """Return the location of a row for a class; for a line of a file without its world."""
    _, mark, line = where.rpartition(" line ")
    return f"line {line}" if mark else where.removeprefix("observed ")


def _decided_lesson(
    why: ReplayWhy,
    model: FittingScm,
    mechanism: DecidedVariable,
    rivals: Sequence[tuple[str, TableRow]],
    evidence: WhyTable,
) -> Lesson:
    name = mechanism.name
    right = formula_text(model, name)
    choices = sorted([right, *(text for text, _ in rivals)], key=lambda text: (len(text), text))
    verdict = [f"Only {name} = {right} agrees with every row."]
    for text, row in rivals:
        values = " and ".join([*(f"{u} = {bit}" for u, bit in row.values.items()), f"{name} = {row.first}"])
        verdict.append(f"{name} = {text} is out: {class_place(row.where[0])} has {values}.")
    (drawing,) = draw_together([graph(why, model, "")], f"class-{why.item}")
    counted = [(int(w.remaining), w.world) for w in why.without if w.remaining.isdecimal() and int(w.remaining) > 1]
    cover: tuple[str, ...] = ("Cover one row and vote again: is one model still left?", covered_row(mechanism))
    if counted:
        number, world = max(counted, key=itemgetter(0))
        cover = (f"Without the rows of {world}, {number_text(number)} models would fit.", *cover)
    return Lesson(
        *(why.item, (), evidence, WORDS, f"Which formula gives {name}?"),
        (*(f"{name} = {text}" for text in choices), "More than one formula fits"),
        answer=choices.index(right),
        heading="One model fits",
        verdict=tuple(verdict),
        models=(LessonModel("The model", tuple(f"{v} = {formula_text(model, v)}" for v in model.mechanisms), drawing),),
        advice=("What decided it", *cover),
    )


# --- Explanations of ReplaySCM items ----------------------------------------------------------------------------------


class ReplayExplanations:
    """See bench.pages.capabilities.Explainable."""

    def explain(
        self, item: Problem, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False
    ) -> ReplayWhy | ExtendedWhy:
        if item.task.assumption is not None:
            ASSUME.check(item, item.task.assumption)
        try:
            if item.task.extension is not None:
                from calibrant.audits.replayscm.extended.why import explain_extended

                return explain_extended(item, steps, reveal_sealed=reveal_sealed)
            gold = item.sealed.gold if reveal_sealed else None
            return explain(item.task, item.id, gold=gold, columns=item.columns)
        except (BudgetSpent, ValueError) as reason:
            raise CalibrantError(f"{item.id} cannot be explained: {reason}") from None

    def body(self, why: ReplayWhy | ExtendedWhy, prefix: str) -> Markup:
        return body(why, prefix) if isinstance(why, ReplayWhy) else extended_body(why, prefix)

    def lesson(self, item: Problem, why: ReplayWhy | ExtendedWhy) -> Lesson:
        if isinstance(why, ReplayWhy):
            return lesson(why)
        return pages_why.general_lesson(why, extended_tables(why)[0], WORDS, extended_advice(why))

    def drawing(self, why: ReplayWhy | ExtendedWhy) -> str:
        if isinstance(why, ReplayWhy):
            return drawing(why)
        if not (graph := extended_graph(why, "graph")):
            raise CalibrantError(f"{why.item}: there is no graph to draw ({why.reason_text})")
        return standalone_svg(graph)

    def lines(self, why: ReplayWhy | ExtendedWhy) -> Iterator[str]:
        if isinstance(why, ReplayWhy):
            return lines(why)
        return pages_why.tables_lines(why, extended_tables(why), extended_advice(why))


EXPLANATIONS: Explainable = ReplayExplanations()
