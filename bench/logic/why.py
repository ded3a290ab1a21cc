"""Explanations of logic models: the page, its network and the text of a `LogicWhy`.

A dot is a clause of several literals. The width of a line is the share of members that have its clause, or its edge if
no clause with the edge is drawn. A line is solid if all members have the edge, in whatever clause, else dashed. An edge
that closes a cycle is laid out from bottom to top, its arrow still points at its target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from markupsafe import Markup

from calibrant.audits.logic.trajectories import TrajectoryWhy, explain_trajectories
from calibrant.audits.logic.why import LogicWhy, explain, explain_family
from calibrant.audits.why import Why, number_text
from calibrant.bench.logic.family.words import (
    LABEL,
    NO_AUDIT,
    NO_PROBABILITY,
    AuditText,
    measured_chart,
    measured_table,
    number_experiments,
    percent,
)
from calibrant.bench.pages import why as pages_why
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.charts import BarRow, bar_rows, figure, text_at, text_width, widest
from calibrant.bench.pages.graphs import Layers, Spacing, curve_path
from calibrant.bench.pages.page import Lesson, LessonModel, WhyTable, html_page, standalone_svg
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.item import Clause, Experiment, LogicItem, parse_clause
from calibrant.dsl.logic.trajectories import is_trajectory_item
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import errors_by_readout
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, MeasuredCell, ValueTimes, measured_cells
from calibrant.solvers.logic.sums import Predictions

# --- Network of a family in layers: width is the share of members, colour the sign, dots are clauses ------------------
MAX_NODES = 60  # larger networks are not drawn
MAX_GATES = 12  # clauses of several literals that are drawn, those of largest share
BOX, DOT = 30.0, 5.0  # height of a node, radius of a clause
SPACING = Spacing(BOX, gap=20, fall=54, margin=16, passing=8)
GATE = "\N{BULLET}"  # first character of a gate's name; no node's name begins with it


@dataclass(frozen=True)
class _Line:
    """A line of the drawing, from a node or gate to another.

    share: of members, the width; title: tooltip; is_open: only some members have the edge that the line is part of
    """

    source: str
    target: str
    sign: int
    share: float
    title: str
    has_head: bool = True
    is_open: bool = False


def network(why: LogicWhy, prefix: str) -> str:
    """Return the network as an SVG, empty for more than MAX_NODES nodes; prefix: put before ids of arrow heads."""
    names = list(dict.fromkeys([*why.stimuli, *(n for e in why.edges for n in (e.source, e.target)), *why.readouts]))
    if len(names) > MAX_NODES:
        return ""
    lines = list(_lines(why))
    gates = [line.source for line in lines if line.source.startswith(GATE)]
    parents = _acyclic([*names, *gates], lines)
    widths = {name: 2 * DOT if name.startswith(GATE) else max(44.0, text_width(name) + 18) for name in parents}
    layout = Layers(parents, widths, SPACING)
    marks = [_draw_line(line, layout, prefix) for line in sorted(lines, key=lambda line: line.share)]
    marks += [_draw_gate(gate, layout) for gate in gates]
    marks += [_box(name, layout, why) for name in names]
    heads = "".join(
        f'<marker id="{prefix}-{kind}" viewBox="0 0 10 10" refX="{refer}" refY="5" markerWidth="9" markerHeight="9"'
        f' markerUnits="userSpaceOnUse" orient="auto"><path d="{path}" style="{style}"/></marker>'
        for kind, refer, path, style in (
            ("plus", 9, "M0 0L10 5L0 10z", "fill:var(--scale-3)"),
            ("minus", 8, "M8 0V10", "stroke:var(--bad);stroke-width:2.5;fill:none"),
            ("none", 9, "M0 0L10 5L0 10z", "fill:var(--edge)"),
            ("none-minus", 8, "M8 0V10", "stroke:var(--edge);stroke-width:2.5;fill:none"),
        )
    )
    label = f"The network: {sum(e.share == 1 for e in why.edges)} edges in all members, "
    label += f"{sum(0 < e.share < 1 for e in why.edges)} in some, {sum(e.share == 0 for e in why.edges)} in none"
    return figure(layout.width, layout.height, label, [f"<defs>{heads}</defs>", *marks])


def network_file(why: LogicWhy) -> str:
    """Return the network as an SVG file; `CalibrantError` for more than MAX_NODES nodes."""
    picture = network(why, "tip")
    if not picture:
        raise CalibrantError(f"more than {MAX_NODES} nodes are not drawn; --html has them in a table")
    return standalone_svg(picture)


def _lines(why: LogicWhy) -> Iterator[_Line]:
    """Yield lines of clauses of one literal, of the MAX_GATES commonest longer ones, and of edges in none of these."""
    clauses = [(parse_clause(edge_share.text), edge_share.share) for edge_share in why.clauses]
    gates = [entry for entry in clauses if len(entry[0].literals) > 1][:MAX_GATES]
    certain = {(edge.source, edge.sign, edge.target) for edge in why.edges if edge.share == 1}
    covered = set()
    for clause, share in [entry for entry in clauses if len(entry[0].literals) == 1]:
        (source, sign), title = clause.literals[0], f"{clause}: {percent(share)} of the members"
        edge = (source, sign, clause.target)
        covered.add(edge)
        if edge in certain and share < 1:
            title += f"; {edge_arrow(*edge)}: all members"
        yield _Line(source, clause.target, sign, share, title, is_open=edge not in certain)
    for clause, share in gates:
        title = f"{clause_words(clause)}: {percent(share)} of the members"
        is_open = False
        for source, sign in clause.literals:
            edge = (source, sign, clause.target)
            covered.add(edge)
            edge_title = title if edge not in certain or share == 1 else f"{title}; {edge_arrow(*edge)}: all members"
            is_open |= edge not in certain
            yield _Line(source, _gate_name(clause), sign, share, edge_title, sign == -1, edge not in certain)
        yield _Line(_gate_name(clause), clause.target, 1, share, title, is_open=is_open)
    for edge_share in why.edges:
        if (edge_share.source, edge_share.sign, edge_share.target) not in covered:
            title = (
                f"{edge_share.text}: {percent(edge_share.share)} of the members"
                if edge_share.share
                else f"{edge_share.text}: no member"
            )
            is_open = 0 < edge_share.share < 1
            yield _Line(edge_share.source, edge_share.target, edge_share.sign, edge_share.share, title, is_open=is_open)


def edge_arrow(source: str, sign: int, target: str) -> str:
    """Return an edge as text: → activates, ⊣ inhibits."""
    return f"{source} {'→' if sign == 1 else '⊣'} {target}"


def clause_words(clause: Clause) -> str:
    """Return a clause in words: n4 if n2 and not n3."""
    literals = [f"{'not ' * (sign == -1)}{source}" for source, sign in clause.literals]
    return f"{clause.target} if {' and '.join(literals)}"


def _gate_name(clause: Clause) -> str:
    return f"{GATE}{clause}"


def _acyclic(names: list[str], lines: list[_Line]) -> Mapping[str, list[str]]:
    """Return parents by node in topological order; a line that closes a cycle is reversed, by depth-first search."""
    children: dict[str, list[str]] = {name: [] for name in names}
    for line in lines:
        children[line.source].append(line.target)
    finished: list[str] = []
    state = dict.fromkeys(names, 0)
    for root in names:
        if state[root]:
            continue
        stack = [(root, iter(children[root]))]
        state[root] = 1
        while stack:
            name, unvisited = stack[-1]
            child = next((c for c in unvisited if not state[c]), None)
            if child is None:
                state[name] = 2
                finished.append(name)
                stack.pop()
            else:
                state[child] = 1
                stack.append((child, iter(children[child])))
    position = {name: k for k, name in enumerate(reversed(finished))}
    parents: dict[str, list[str]] = {name: [] for name in sorted(names, key=position.__getitem__)}
    for line in lines:
        upper, lower = sorted((line.source, line.target), key=position.__getitem__)
        if upper not in parents[lower] and upper != lower:
            parents[lower].append(upper)
    return parents


def _draw_line(line: _Line, layout: Layers, prefix: str) -> str:
    """Return the curve of a line."""
    is_down = layout.is_above(line.source, line.target)
    upper, lower = (line.source, line.target) if is_down else (line.target, line.source)
    points = [_end(upper, layout, is_lower=True), *layout.points(upper, lower), _end(lower, layout, is_lower=False)]
    path = curve_path(points if is_down else points[::-1])
    colour = "edge" if not line.share else "scale-3" if line.sign == 1 else "bad"
    dash = ";stroke-dasharray:6 4" if line.is_open else ""
    width = 1.0 if not line.share else 1.2 + 3.2 * line.share
    head = ("plus" if line.share else "none") if line.sign == 1 else "minus" if line.share else "none-minus"
    end_mark = f' marker-end="url(#{prefix}-{head})"' if line.has_head else ""
    return (
        f'<path d="{path}" style="fill:none;stroke:var(--{colour});stroke-width:{width:.1f}{dash}"{end_mark}>'
        f"<title>{escape(line.title)}</title></path>"
    )


def _end(name: str, layout: Layers, *, is_lower: bool) -> tuple[float, float]:
    """Return the point where lines leave (is_lower) or enter a node or the dot of a clause."""
    x, y = layout.place(name)
    if name.startswith(GATE):
        return x, y + BOX / 2 + (DOT if is_lower else -DOT)
    return x, y + BOX if is_lower else y - 1


def _draw_gate(name: str, layout: Layers) -> str:
    """Return the dot of a clause of several literals."""
    x, y = layout.place(name)
    circle = f'cx="{x:.1f}" cy="{y + BOX / 2:.1f}" r="{DOT:g}" style="fill:var(--ink)"'
    return f"<circle {circle}><title>{escape(name.removeprefix(GATE))}</title></circle>"


def _box(name: str, layout: Layers, why: LogicWhy) -> str:
    x, y = layout.place(name)
    width = layout.widths[name]
    kinds = [kind for kind, names in (("stimulus", why.stimuli), ("readout", why.readouts)) if name in names]
    style = "fill:var(--panel);stroke:var(--edge)"
    if "stimulus" in kinds:
        style = "fill:var(--good-ground);stroke:var(--good)"
    if "readout" in kinds:
        style += ";stroke:var(--gold);stroke-width:2.4"
    title = escape(f"{name}: {', '.join(kinds) or 'node'}")
    size = f'x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX:g}" rx="6"'
    return f'<g><title>{title}</title><rect {size} style="{style}"/>{text_at(name, x, y + 19, anchor="middle")}</g>'


# --- Page of a `LogicWhy`: network with shares, spectrum, predictions, candidates of the next experiment
MAX_CLAUSES = 60  # rows of the table of clauses
MAX_BARS = 12  # candidates of the next experiment in the chart
MAX_HEAT_CELLS = 600  # a spectrum of more cells (misfits x sizes) has no heat map, only its table
ROW = 26  # px, height of a row of the heat map


def page_body(
    why: LogicWhy,
    prefix: str,
    data_lines: Sequence[str] = (),
    measured: Sequence[MeasuredCell] = (),
    chart: str = "",
    audit: AuditText = NO_AUDIT,
) -> Markup:
    """Return the body of the page.

    prefix: put before HTML ids; data_lines: label and text of how a data file was read, none for an item
    measured: measured values with their predictions; chart: SVG of these; audit: of another tool's models
    """
    models = "1 model" if why.count.lower == "1" else f"{why.count.in_words()} models"
    content: dict[str, Any] = {
        "why": why,
        "prefix": prefix,
        "audit": audit,
        "data_lines": [(line[:LABEL].strip(), line[LABEL:]) for line in data_lines],
        "model": model_lines(why),
        "network": Markup(network(why, f"{prefix}-tip")),
        "max_nodes": MAX_NODES,
        "advice": advice(why),
        "bars": Markup(candidate_bars(why)),
        "candidates": pages_why.shown_table(candidate_table(why)),
        "edges": pages_why.shown_table(edge_table(why)),
        "clauses": pages_why.shown_table(clause_table(why)),
        "heat": Markup(spectrum_heat(why)),
        "spectrum": pages_why.shown_table(spectrum_table(why)),
        "grid": prediction_grid(why),
        "pair": pair_rows(why),
        "measured": pages_why.shown_table(measured_table(measured, why.readouts, audit.answers)),
        "measured_chart": Markup(chart),
        "experiments": [f"{number} {text}" for number, text in number_experiments(measured).items()],
        "no_probability": NO_PROBABILITY,
        "counted": f"{models}, counted exactly, of the class: {why.class_in_words}.",
        "json_text": pages_why.page_json(why),
    }
    return Markup(html_page("why/logic.html", content))


def advice(why: LogicWhy) -> list[str]:
    """Return a heading and a sentence about the best next experiment; empty if none distinguishes members."""
    if not why.candidates or len(why.candidates[0].readings) < 2:
        return []
    best = why.candidates[0]
    num = len(best.readings)
    return [
        "The experiment that helps most",
        f"{best.in_words}: models give {num} different answers. {percent(best.share)} of them are expected to be"
        " left, over models as truth, all alike.",
    ]


def edge_table(why: LogicWhy) -> WhyTable:
    """Return the edges of the class by descending share of members that use them."""
    ordered = sorted(why.edges, key=lambda edge: (-edge.share, edge.text))
    rows = tuple(
        (
            edge_arrow(edge.source, edge.sign, edge.target),
            percent(edge.share),
            number_text(int(edge.members)),
            "always" if edge.share == 1 else "open" if edge.share else "never",
        )
        for edge in ordered
    )
    open_rows = frozenset(k for k, edge in enumerate(ordered) if 0 < edge.share < 1)
    caption = "Share of the models that use each edge; → activates, ⊣ inhibits"
    caption += "; yellow: open, some models have it and some do not" if open_rows else ""
    return WhyTable("Edges", caption, ("edge", "share", "models", "status"), rows, open_rows, numeric=frozenset({1, 2}))


def clause_table(why: LogicWhy) -> WhyTable:
    """Return the first MAX_CLAUSES clauses that occur in members, with the share of members that have each."""
    rows = tuple(
        (clause_words(parse_clause(c.text)), percent(c.share), number_text(int(c.members)))
        for c in why.clauses[:MAX_CLAUSES]
    )
    caption = "Share of the models that have each clause; a node is 1 where one of its clauses holds"
    return WhyTable("Clauses", caption, ("clause", "share", "models"), rows, numeric=frozenset({1, 2}))


def candidate_table(why: LogicWhy) -> WhyTable:
    """Return the candidates of the next experiment by ascending share of members expected to be left."""
    rows = tuple(
        (
            c.in_words,
            percent(c.share),
            str(len(c.readings)),
            "; ".join(f"{answers}: {number_text(int(members))}" for answers, members in c.readings[:3])
            + ("; ..." if len(c.readings) > 3 else ""),
        )
        for c in why.candidates
        if len(c.readings) > 1
    )
    readouts = ", ".join(why.readouts)
    caption = (
        f"Models expected to be left; each: answers of {readouts}, and the models that give them; yellow: the best"
    )
    headings = ("experiment", "left", "answers", "each")
    return WhyTable("Next experiments", caption, headings, rows, frozenset({0}), numeric=frozenset({1, 2}))


def spectrum_table(why: LogicWhy) -> WhyTable:
    """Return the numbers of members by misfit and size."""
    rows = tuple((f"{p.misfit:,}", str(p.size), number_text(int(p.members))) for p in why.spectrum)
    caption = "Models by misfit and size; yellow: the optimum"
    return WhyTable(
        "Misfit and size", caption, ("misfit", "size", "models"), rows, frozenset({0}), numeric=frozenset({0, 1, 2})
    )


def candidate_bars(why: LogicWhy) -> str:
    """Return bars of the expected share of members left by each candidate; empty if none distinguishes members."""
    distinguishing = [c for c in why.candidates if len(c.readings) > 1][:MAX_BARS]
    if not distinguishing:
        return ""
    best = distinguishing[0]
    label = f"Models expected to be left by experiment; least: {best.in_words}, {percent(best.share)}"
    rows = [
        BarRow(c.in_words, c.share, percent(c.share), "bar-3" if k == 0 else "bar-2")
        for k, c in enumerate(distinguishing)
    ]
    return bar_rows(rows, label, length=130, high=1)


def spectrum_heat(why: LogicWhy) -> str:
    """Return the spectrum as a heat map, size across, misfit down; empty for one cell or more than MAX_HEAT_CELLS."""
    sizes = list(range(min(p.size for p in why.spectrum), max(p.size for p in why.spectrum) + 1))
    misfits = sorted({p.misfit for p in why.spectrum})
    if len(why.spectrum) < 2 or len(sizes) * len(misfits) > MAX_HEAT_CELLS:
        return ""
    members = {(p.misfit, p.size): int(p.members) for p in why.spectrum}
    most_bits = max(members.values()).bit_length()
    step = max(36.0, widest(map(number_text, members.values())) + 10)
    margin = 24 + widest(f"{misfit:,}" for misfit in misfits)
    marks = [
        f'<text class="soft" x="{margin + step * (k + 0.5):.1f}" y="16" text-anchor="middle">{size}</text>'
        for k, size in enumerate(sizes)
    ]
    for row, misfit in enumerate(misfits):
        y = 24 + ROW * row
        marks.append(f'<text class="soft" x="{margin - 8:.1f}" y="{y + 17}" text-anchor="end">{misfit:,}</text>')
        for column, size in enumerate(sizes):
            x, num_members = margin + step * column, members.get((misfit, size))
            cell = f'x="{x + 1:.1f}" y="{y + 1}" width="{step - 2:.1f}" height="{ROW - 2}"'
            if num_members is None:
                marks.append(f'<rect class="unlit" {cell}/>')
                continue
            depth = num_members.bit_length() / most_bits
            marks.append(
                f'<rect class="unlit" {cell}/>'
                f'<rect {cell} style="fill:var(--scale-2);fill-opacity:{0.1 + 0.3 * depth:.2f}"/>'
                f'<text x="{x + step / 2:.1f}" y="{y + 17}" text-anchor="middle">{number_text(num_members)}</text>'
            )
    label = f"Models by size, across, and misfit, down: {len(why.spectrum)} points"
    return figure(margin + step * len(sizes) + 8, 32 + ROW * len(misfits), label, marks)


def prediction_grid(why: LogicWhy) -> list[dict[str, Any]]:
    """Return rows of the grid of predictions: the share of members that answer 1; a cell of 0 or 1 is not open."""
    return [
        {
            "name": row.in_words,
            "cells": [
                {
                    # else a narrow cell breaks the line between number and %
                    "text": (f"{share:.0%}".replace("%", " %") if share in (0, 1) else percent(share)).replace(
                        " ", "\N{NO-BREAK SPACE}"
                    ),
                    "open": share not in (0, 1),
                    "share": round(100 * share),
                }
                for share in row.shares
            ],
        }
        for row in why.predictions
    ]


def pair_rows(why: LogicWhy) -> list[dict[str, Any]]:
    """Return the clauses of two members side by side, by target; rows that differ are marked."""
    if why.pair is None:
        return []
    sides = [_by_target(model) for model in (why.pair.first, why.pair.second)]
    return [
        {
            "target": target,
            "first": sides[0].get(target, "0"),
            "second": sides[1].get(target, "0"),
            "differs": sides[0].get(target) != sides[1].get(target),
        }
        for target in sorted({*sides[0], *sides[1]})
    ]


def model_lines(why: LogicWhy) -> tuple[str, ...]:
    """Return the formulas of the only model that fits; empty if several fit."""
    if why.count.lower != "1" or not why.count.is_exact:
        return ()
    return _model_lines(tuple(clause.text for clause in why.clauses))


def _model_lines(model: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{target} = {formula}" for target, formula in sorted(_by_target(model).items()))


def _by_target(model: tuple[str, ...]) -> dict[str, str]:
    formulas: dict[str, list[str]] = {}
    for clause in model:
        target, _, literals = clause.partition("<-")
        formulas.setdefault(target, []).append(literals.replace("+", " and ").replace("!", "not "))
    return {target: " or ".join(clauses) for target, clauses in formulas.items()}


def trajectory_tables(why: TrajectoryWhy) -> list[WhyTable]:
    """Return two tables: the most probable answers, and the genes with their numbers of functions that fit."""
    genes = tuple(
        (g.gene, g.candidates, str(g.readings), number_text(int(g.functions)), str(g.undecided)) for g in why.genes
    )
    undecided_rows = frozenset(index for index, gene in enumerate(why.genes) if gene.undecided)
    headings = ("gene", "candidates", "readings", "functions that fit", "undecided")
    caption = "Undecided: patterns on the way to the likeliest answer about which functions that fit disagree"
    answers = tuple((states, percent(float(share))) for states, share in why.answers)
    return [
        WhyTable("Likeliest answer", "Share of the networks that fit which give it", ("states", "share"), answers),
        WhyTable("Genes", caption, headings, genes, undecided_rows, numeric=frozenset({2, 3, 4})),
    ]


# --- Lesson: a network in steps for a class ---------------------------------------------------------------------------
CLASS_WORDS = (
    ("experiment", "stimuli that are on, and nodes that are held off"),
    ("model", "a formula for each node: clauses of signed edges"),
    ("held off", "inhibited"),
)


def lesson(item: LogicItem, why: LogicWhy) -> Lesson:
    """Return the lesson of an item; the class votes on a readout of an experiment that was not measured."""
    task = item.task
    measured = tuple(
        (experiment.text(task.setup), *("-" if value is None else f"{value:g}" for value in row))
        for experiment, row in zip(task.experiments, task.values, strict=True)
    )
    evidence = WhyTable("Measured", plural(len(measured), "experiments"), ("experiment", *why.readouts), measured)
    arrows = ", ".join(edge_arrow(edge.source, edge.sign, edge.target) for edge in why.edges)
    intro = (f"These arrows may exist (→ switches on, ⊣ switches off): {arrows}.",)
    if why.pair is not None and why.state == "open":
        answers = (why.pair.first_answers, why.pair.second_answers)
        column = next(column for column, (a, b) in enumerate(zip(*answers, strict=True)) if a != b)
        clamps = Experiment(frozenset(why.pair.stimuli), frozenset(why.pair.inhibited)).text(task.setup)
        models = tuple(
            LessonModel(f"Model {letter}: {why.readouts[column]} = {side[column]}", _model_lines(model))
            for letter, side, model in zip("AB", answers, (why.pair.first, why.pair.second), strict=True)
        )
        verdict = "Both models agree with what was measured as well as any can. Here they disagree."
        heading, answer = f"What fits: {why.count.in_words()} models; here are two", 2
    elif why.predictions and why.predictions[0].shares[0] in (0, 1) and why.predictions[0].is_question:
        column, clamps, answer = 0, why.predictions[0].in_words, int(why.predictions[0].shares[0])
        models = (LessonModel("The model", model_lines(why)),) if model_lines(why) else ()
        verdict = f"By every model that fits, {why.readouts[0]} = {answer}."
        heading = f"What fits: {plural(int(why.count.lower), 'models')}"
    else:
        return replace(pages_why.general_lesson(why, evidence, CLASS_WORDS, advice(why)), intro=intro)
    return Lesson(
        *(why.item, intro, evidence, CLASS_WORDS),
        question=f"This was not measured: {clamps}. What will {why.readouts[column]} be?",
        choices=(f"{why.readouts[column]} = 0", f"{why.readouts[column]} = 1", pages_why.NOT_DECIDED),
        answer=answer,
        heading=heading,
        verdict=(verdict,),
        models=models,
        advice=_class_advice(why) or ("What decided it", "Cover one experiment and vote again: is one answer left?"),
    )


def _class_advice(why: LogicWhy) -> tuple[str, ...]:
    if not why.candidates or len(why.candidates[0].readings) < 2:
        return ()
    best = why.candidates[0]
    effect = "Whatever that shows, one model is left."
    if {members for _, members in best.readings} != {"1"}:
        effect = f"Of {plural(int(why.count.lower), 'models')}, {percent(best.share)} are expected to be left."
    return (
        "What settles it" if effect.startswith("W") else "What helps most",
        f"Measure this: {best.in_words}.",
        effect,
    )


# --- Explanations of logic models -------------------------------------------------------------------------------------


class LogicExplanations:
    """Implements Explainable (bench.pages.capabilities)."""

    def explain(self, item: LogicItem, steps: Sequence[Step[str]], *, reveal_sealed: bool = False) -> Why:
        if is_trajectory_item(item):
            return explain_trajectories(item, reveal_sealed=reveal_sealed)
        return explain(item, reveal_sealed=reveal_sealed)

    def body(self, why: LogicWhy | TrajectoryWhy, prefix: str) -> Markup:
        if isinstance(why, TrajectoryWhy):
            return pages_why.tables_body(why, trajectory_tables(why), (), prefix)
        return page_body(why, prefix)

    def lesson(self, item: LogicItem, why: LogicWhy | TrajectoryWhy) -> Lesson:
        if isinstance(why, TrajectoryWhy):
            return pages_why.general_lesson(why, trajectory_tables(why)[1], CLASS_WORDS, ())
        return lesson(item, why)

    def drawing(self, why: LogicWhy | TrajectoryWhy) -> str:
        if isinstance(why, TrajectoryWhy):
            raise CalibrantError(f"{why.item} asks about trajectories, which are not drawn; --html has tables")
        return network_file(why)

    def lines(self, why: LogicWhy | TrajectoryWhy) -> Iterator[str]:
        if isinstance(why, TrajectoryWhy):
            return pages_why.tables_lines(why, trajectory_tables(why), ())
        return pages_why.tables_lines(
            why, [edge_table(why), candidate_table(why), spectrum_table(why)], advice(why), model_lines(why)
        )


def family_page(
    family: LogicFamily,
    name: str,
    predictions: Predictions | None,
    cause: str = "",
    data_lines: Sequence[str] = (),
    times: ValueTimes = (),
    audit: AuditText = NO_AUDIT,
) -> str:
    """Return the page of a family with members.

    name: of the data; predictions: of the candidate experiments; cause: why there are none
    data_lines: used rows and readings, and notes; times: of the measured values; audit: of another tool's models
    """
    why = explain_family(family, name, predictions, cause)
    try:
        measured = tuple(measured_cells(family, times))
    except LatticeLimitError:  # too many members to compute shares of
        measured = ()
    chart = measured_chart(measured, errors_by_readout(family.witness, family.task))
    return pages_why.why_page(why, page_body(why, "why", data_lines, measured, chart, audit), "family", name)


EXPLANATIONS: Explainable = LogicExplanations()
