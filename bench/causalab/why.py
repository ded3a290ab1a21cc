"""Explanations of laboratories: page, drawing and text of a `LabWhy`.

Counts of a `LabWhy` are decimal texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.causalab.why import LabMember, LabWhy, explain, share_text
from calibrant.audits.why import expected_text, listed, number_text
from calibrant.bench.pages import why as pages_why
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.graphs import GraphEdge, GraphNode, Tone, draw_ring
from calibrant.bench.pages.page import Lesson, LessonModel, WhyTable, html_page, standalone_svg
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.text import plural

# --- The page of a `LabWhy`: graph and matrix of edges, mechanisms left by each intervention, and the readings --------
MAX_FREQUENCIES = 40  # frequencies listed on a page


def page_body(why: LabWhy, prefix: str) -> Markup:
    """Return the contents of the page; prefix: beginning of all element ids."""
    settings = pages_why.experiment_table(
        why.experiments,
        "What each setting would leave",
        _settings_caption(why),
        "setting",
        "mechanisms",
        lists_outcomes=False,
    )
    content = {
        "why": why,
        "prefix": prefix,
        "graph": Markup(graph(why, prefix)) if why.edges else "",
        "legend": legend(why),
        "matrix": matrix(why),
        "matrix_caption": matrix_caption(why),
        "ruled_out": ruled_out_lines(why),
        "advice": advice(why),
        "move": move_json(why),
        "settings": pages_why.shown_table(settings) if why.experiments else None,
        "readings": _readings(why),
        "frequencies": _frequencies(why),
        "equations": _equations(why),
        "model": model_lines(why),
        "witness": witness_words(why),
        "counted": counted_words(why),
        "json_text": pages_why.page_json(why),
    }
    return Markup(html_page("why/causalab.html", content))


def drawing(why: LabWhy) -> str:
    """Return the graph as an SVG file."""
    return standalone_svg(graph(why, "graph"))


def graph(why: LabWhy, prefix: str) -> str:
    """Draw the edges that some consistent mechanism has, and stated edges that none has, as contradicted."""
    total = int(why.count.lower)
    nodes = [GraphNode(name, *_node_state(why, name)) for name in why.nodes]
    edges = []
    for edge in why.edges:
        proven = int(edge.number) == total
        words = "proven" if proven else share_text(int(edge.number), total, weighted=why.weighted)
        edges.append(GraphEdge(edge.cause, edge.effect, "good" if proven else "open", words))
    edges += [GraphEdge(cause, effect, "bad", "contradicted") for cause, effect in why.contradicted]
    num_open = len(why.open)
    label = f"Graph so far: {plural(len(why.decided), 'edges')} proven, {num_open} open"
    return draw_ring(nodes, edges, label, f"{prefix}-graph")


def _node_state(why: LabWhy, name: str) -> tuple[str, Tone]:
    last = next((r for r in reversed(why.readings) if r.changed == name), None)
    if last is not None:
        return f"set to {last.values[name]:g}", "good"
    if name in why.never_set:
        return "not set yet", "open"
    return "", ""


def legend(why: LabWhy) -> str:
    if why.weighted:
        return "solid: in every mechanism that fits; dashed: in some, with posterior shares; ruled out: not drawn"
    words = f"solid: proven, in all {why.count.in_words()}; dashed: open, in some"
    if not why.open:
        words = "solid: proven"
    return f"{words}; dotted: stated, and in none" if why.contradicted else f"{words}; ruled out: not drawn"


def matrix_caption(why: LabWhy) -> str:
    if why.weighted:
        return "Posterior share of the mechanisms with each edge (cause in the row, effect in the column)"
    if why.count.lower == "1":
        return "Edges of the one mechanism that fits (cause in the row, effect in the column)"
    total = why.count.in_words()
    return f"In how many of the {total} mechanisms each edge occurs (cause in the row, effect in the column)"


def matrix(why: LabWhy) -> list[dict[str, Any]]:
    """Return the rows of the matrix; a cell has a mark, the number and share of mechanisms, and what ruled it out."""
    total = int(why.count.lower)
    counts = {(edge.cause, edge.effect): int(edge.number) for edge in why.edges}
    ruled_out = {(edge.cause, edge.effect): edge.reading for edge in why.ruled_out}
    true_edges = set(why.true_edges or ())

    def cell(cause: str, effect: str) -> dict[str, Any]:
        if cause == effect:
            return {"text": "\N{MIDDLE DOT}", "kind": "soft", "note": "", "share": None, "is_true": False}
        count = counts.get((cause, effect))
        is_true = (cause, effect) in true_edges
        if count is None:  # ruled out by reading 1, 2, ..., or by the class (0)
            note = f"reading {k}" if (k := ruled_out.get((cause, effect), 0)) else "the class"
            return {"text": "\N{BALLOT X} 0", "kind": "soft", "note": note, "share": None, "is_true": is_true}
        if count == total:
            words = "proven" if why.weighted or total == 1 else number_text(count)
            return {"text": f"\N{CHECK MARK} {words}", "kind": "proven", "note": "", "share": None, "is_true": is_true}
        words = share_text(count, total, weighted=True) if why.weighted else number_text(count)
        share = round(100 * count / total, 1)
        return {"text": f"? {words}", "kind": "open", "note": "", "share": share, "is_true": is_true}

    return [{"cause": cause, "cells": [cell(cause, effect) for effect in why.nodes]} for cause in why.nodes]


def ruled_out_lines(why: LabWhy) -> list[str]:
    """Return a line for each reading that ruled edges out."""
    by_reading: dict[int, list[str]] = {}
    for edge in why.ruled_out:
        by_reading.setdefault(edge.reading, []).append(f"{edge.cause} to {edge.effect}")
    return [f"{reading_words(why, k)} rules out {listed(names, 12)}." for k, names in sorted(by_reading.items())]


def reading_words(why: LabWhy, position: int) -> str:
    """Return a reading as the subject of a sentence; position: from 1, or 0 for the class."""
    if not position:
        return f"The class, in which {FREQUENCY} has no effects,"
    reading = why.readings[position - 1]
    if reading.changed:
        return f"Reading {position} ({reading.changed} set to {reading.values[reading.changed]:g})"
    return f"Reading {position}"


def advice(why: LabWhy) -> list[str]:
    """Return heading and sentences about the best intervention; empty if none separates mechanisms."""
    if not why.experiments:
        return _without_ranking(why)
    if len(why.experiments[0].outcomes) < 2:
        return []
    best = why.experiments[0]
    if best.decides:
        return [
            "The setting that decides",
            f"{_imperative(best.in_words)}: every reading that it may give leaves one graph and one frequency.",
        ]
    sizes = sorted(int(outcome.remaining) for outcome in best.outcomes)
    equal = [e.in_words for e in why.experiments[1:] if e.expected == best.expected]
    either = f" As good: {listed(equal)}." if equal else ""
    spread = f"{number_text(sizes[0])} to {number_text(sizes[-1])}" if sizes[0] < sizes[-1] else str(sizes[0])
    sentence = (
        f"{_imperative(best.in_words)}: it leaves {spread} mechanisms, {expected_text(best.expected)} expected.{either}"
    )
    if why.jointly:
        joint = f"No single setting is sure to decide; {why.jointly[0]}, then {why.jointly[1]} together are."
    else:
        joint = "No single setting is sure to decide."
    return ["The setting that helps most", sentence, joint]


def _without_ranking(why: LabWhy) -> list[str]:
    """Return advice if interventions are not ranked: properties that were never set."""
    if why.state not in ("open", "uncounted") or not why.never_set:
        return []
    cause = "readings are noisy" if why.weighted else "mechanisms that fit were not all listed"
    names = listed(list(why.never_set))
    return ["What to set next", f"Never set, and cause of an open edge: {names}.", f"Settings are not ranked: {cause}."]


def _imperative(words: str) -> str:
    return words[0].upper() + words[1:]


def move_json(why: LabWhy) -> str:
    """Return the action of the best intervention as JSON, parsed from its description."""
    if not why.experiments or not advice(why):
        return ""
    name, _, value = why.experiments[0].in_words.removeprefix("set ").rpartition(" to ")
    return json.dumps({"set": name, "value": float(value) if "." in value else int(value)})


def _settings_caption(why: LabWhy) -> str:
    return f"Over all readings that it may give, of the {why.count.in_words()} mechanisms"


def _readings(why: LabWhy) -> list[dict[str, Any]]:
    return [
        {
            "number": k,
            "changed": reading.changed,
            "cells": [{"text": f"{reading.values[n]:g}", "is_set": n == reading.changed} for n in why.nodes],
        }
        for k, reading in enumerate(why.readings, 1)
    ]


def _frequencies(why: LabWhy) -> list[dict[str, str]]:
    if len(why.frequencies) < 2:
        return []
    total = int(why.count.lower)
    ranked = sorted(why.frequencies, key=lambda share: -int(share.number))[:MAX_FREQUENCIES]
    return [{"frequency": f.answer, "number": share_text(int(f.number), total, weighted=why.weighted)} for f in ranked]


def _equations(why: LabWhy) -> list[dict[str, Any]]:
    if why.pair is None:
        return []
    first, second = why.pair
    rows = [{"node": node, "first": first.equations[node], "second": second.equations[node]} for node in why.nodes]
    rows.append({"node": "predicted frequency", "first": first.prediction, "second": second.prediction})
    return [row | {"differs": row["first"] != row["second"]} for row in rows]


def model_lines(why: LabWhy) -> list[str]:
    """Return the equations of the only consistent mechanism; empty if there are several."""
    return [] if why.model is None else [f"{node} = {text}" for node, text in why.model.equations.items()]


def witness_words(why: LabWhy) -> str:
    """Return a sentence on the intervention that separates the pair, and the values that differ."""
    if why.witness is None:
        return "No single setting tells these two apart." if why.pair else ""
    differing = [name for name in why.nodes if why.witness.first[name] != why.witness.second[name]]
    parts = [f"{name} {why.witness.first[name]:g} under A, {why.witness.second[name]:g} under B" for name in differing]
    return f"{_imperative(why.witness.in_words)}: {'; '.join(parts)}."


def counted_words(why: LabWhy) -> str:
    if why.state == "uncounted":
        return f"Not counted: {why.class_in_words}."
    if why.weighted:
        return f"Mechanisms are weighted by the noise that explains the readings, in the class: {why.class_in_words}."
    return f"{why.count.in_words()} mechanisms fit, counted exactly, in the class: {why.class_in_words}."


# --- A laboratory in steps for a class --------------------------------------------------------------------------------
CLASS_WORDS = (
    ("quantity", "property, node"),
    ("model", "mechanism: an equation for each quantity"),
    ("set by hand", "intervention, do(...)"),
)


def lesson(why: LabWhy) -> Lesson:
    """Return a laboratory as a lesson, with a vote on whether one quantity changes another."""
    evidence = WhyTable("Readings", plural(len(why.readings), "readings"), *_reading_rows(why))
    steps = pages_why.class_advice(why.experiments, "every reading", "models")
    if why.jointly and not why.experiments[0].decides:
        steps = (*steps, f"No single setting is sure to decide; {why.jointly[0]}, then {why.jointly[1]} together are.")
    edge = _lesson_edge(why)
    if edge is None:
        return pages_why.general_lesson(why, evidence, CLASS_WORDS, steps)
    cause, effect = edge
    changes = f"{cause} changes {effect}"
    models: tuple[LessonModel, ...] = ()
    verdict = [f"By every model that fits, {changes}."]
    if why.state == "open" and why.pair is not None:
        verdict = ["Both models give every reading that was taken, and they disagree.", witness_words(why)]
        models = tuple(
            LessonModel(
                f"Model {letter}: {changes if depends(member, edge) else f'{cause} does not change {effect}'}",
                tuple(f"{node} = {text}" for node, text in member.equations.items()),
            )
            for letter, member in zip("AB", why.pair, strict=True)
        )
    is_open = bool(models)
    models = models or ((LessonModel("The model", tuple(model_lines(why))),) if why.model is not None else ())
    return Lesson(
        *(why.item, (), evidence, CLASS_WORDS),
        question=f"If somebody sets {cause} by hand: does {effect} change?",
        choices=("Yes", "No", "The readings do not say"),
        answer=2 if is_open else 0,
        heading=f"What fits: {why.count.in_words()} models; here are two" if is_open else "The answer is decided",
        verdict=tuple(verdict),
        models=models,
        advice=steps or ("What decided it", *ruled_out_lines(why)[:MAX_REASONS]),
    )


MAX_REASONS = 4  # sentences on readings that decided


def _lesson_edge(why: LabWhy) -> tuple[str, str] | None:
    """Return an edge that only one of the pair has; if no edge is open, one that all mechanisms have; else None."""
    if why.state == "open" and why.pair is not None:
        edges = [(edge.cause, edge.effect) for edge in why.edges]
        return next((edge for edge in edges if depends(why.pair[0], edge) != depends(why.pair[1], edge)), None)
    edges = [(edge.cause, edge.effect) for edge in why.edges if edge.number == why.count.lower]
    return next(iter(edges), None) if why.state == "decided" else None


def depends(member: LabMember, edge: tuple[str, str]) -> bool:
    """Return whether the equation of the effect names the cause."""
    cause, effect = edge
    *terms, _base = member.equations[effect].split(" + ")
    return cause in (term.rpartition(" * ")[2] for term in terms)


# --- Explanations of laboratories -------------------------------------------------------------------------------------


class LabExplanations:
    """Implements Explainable (bench.pages.capabilities)."""

    def explain(self, item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool = False) -> LabWhy:
        return explain(item, steps, reveal_sealed=reveal_sealed)

    def body(self, why: LabWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def lesson(self, item: LabItem, why: LabWhy) -> Lesson:
        return lesson(why)

    def drawing(self, why: LabWhy) -> str:
        return drawing(why)

    def lines(self, why: LabWhy) -> Iterator[str]:
        yield from pages_why.tables_lines(why, _tables(why), advice(why), model_lines(why))
        yield from ["", *ruled_out_lines(why)] if why.ruled_out else []


def _reading_rows(why: LabWhy) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and rows of a table of readings: what was set, and every value."""
    rows = tuple((r.changed or "nothing", *(f"{r.values[name]:g}" for name in why.nodes)) for r in why.readings)
    return ("set by hand", *why.nodes), rows


def _tables(why: LabWhy) -> list[WhyTable]:
    cells = [[f"{cell['text']}{' true' if cell['is_true'] else ''}" for cell in row["cells"]] for row in matrix(why)]
    edges = WhyTable(
        "Edges",
        matrix_caption(why),
        ("cause \\ effect", *why.nodes),
        tuple((cause, *row) for cause, row in zip(why.nodes, cells, strict=True)) if why.edges else (),
    )
    settings = pages_why.experiment_table(
        why.experiments,
        "What each setting would leave",
        "over all readings that it may give",
        "setting",
        "mechanisms",
        lists_outcomes=False,
    )
    headings, rows = _reading_rows(why)
    readings = WhyTable(
        "Readings so far", f"records and readings, {plural(len(rows), 'rows')}", ("set", *headings[1:]), rows
    )
    frequencies = WhyTable(
        "Frequencies that fit",
        "with the mechanisms that predict each",
        ("frequency", "mechanisms"),
        tuple((share.answer, share.number) for share in why.frequencies),
    )
    return [edges, settings, readings, *([frequencies] if len(why.frequencies) > 1 else [])]


EXPLANATIONS: Explainable = LabExplanations()
