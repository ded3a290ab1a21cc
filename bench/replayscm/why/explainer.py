"""Explanations of ReplaySCM items, plain and extended, as page and text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.extended.why import EdgeShare, EstimatedWorld, ExtendedWhy, explain_extended, percent
from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.graphs import GraphEdge, GraphNode, draw_ring
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.pages.why import (
    WhyTable,
    best_advice,
    drop_empty,
    experiment_table,
    tables_body,
    tables_lines,
)
from calibrant.bench.replayscm.items import ASSUME
from calibrant.bench.replayscm.why.page import body, drawing, lines
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent

# --- Reasons for extended items as page and text: the next world, posterior shares of edges, rates, the evidence ------
MAX_NODES = 12  # more are not drawn
MAX_FRACTION_CHARS = 24  # longer ones are left to the JSON


def extended_body(why: ExtendedWhy, prefix: str) -> Markup:
    """Return the contents of the page; prefix: of ids."""
    return tables_body(why, extended_tables(why, extended_graph(why, prefix)), extended_advice(why), prefix)


def extended_advice(why: ExtendedWhy) -> tuple[str, ...]:
    """Return the heading and sentences about the next world; empty where nothing is open or nothing splits."""
    if why.worlds_left == 0 and why.state not in ("decided", "empty"):
        return ("No further world", "The allowance of the episode is spent; what is open stays open.")
    # worlds in one choice of contexts are compared; another choice may decide
    compared = " of those compared"
    advice = (
        best_advice(why.experiments, "world", "SCMs", compared) if why.experiments else _estimate_advice(why.next_world)
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
    """Draw the edges with their posterior; empty for many variables."""
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
    """Return a share in percent: exact ones are 100 only where they are certain."""
    return percent(Fraction(edge.fraction) if edge.fraction else edge.share)


def extended_tables(why: ExtendedWhy, chart: str = "") -> list[WhyTable]:
    """Return edges by posterior, rates and the evidence; only gold marks true edges."""
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
    headings, rows = drop_empty(
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
            for k, line in enumerate(why.evidence)  # the start of an episode is world 0, as in `play`
        ),
        numeric=frozenset({0}),
    )
    following = experiment_table(
        why.experiments,
        "Next worlds",
        "Worlds that tell SCMs apart, fewest left at worst first; readings: how many different rows it may show",
        "world",
        "SCMs",
        lists_outcomes=False,  # a reading is all rows of a world; the JSON has each
    )
    return [worlds, following, edges, rates]


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
                return explain_extended(item, steps, reveal_sealed=reveal_sealed)
            gold = item.sealed.gold if reveal_sealed else None
            return explain(item.task, item.id, gold=gold, columns=item.columns)
        except (BudgetSpent, ValueError) as reason:
            raise CalibrantError(f"{item.id} cannot be explained: {reason}") from None

    def body(self, why: ReplayWhy | ExtendedWhy, prefix: str) -> Markup:
        return extended_body(why, prefix) if isinstance(why, ExtendedWhy) else body(why, prefix)

    def drawing(self, why: ReplayWhy | ExtendedWhy) -> str:
        if isinstance(why, ReplayWhy):
            return drawing(why)
        if not (graph := extended_graph(why, "graph")):
            raise CalibrantError(f"{why.item}: there is no graph to draw ({why.reason_text})")
        return standalone_svg(graph)

    def lines(self, why: ReplayWhy | ExtendedWhy) -> Iterator[str]:
        return (
            tables_lines(why, extended_tables(why), extended_advice(why))
            if isinstance(why, ExtendedWhy)
            else lines(why)
        )


EXPLANATIONS: Explainable = ReplayExplanations()
