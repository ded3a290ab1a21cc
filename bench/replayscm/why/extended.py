"""Reasons for extended items as page and text: posterior shares of edges, rates of noise, the evidence."""

from __future__ import annotations

from fractions import Fraction

from markupsafe import Markup

from calibrant.audits.replayscm.extended.why import EdgeShare, ExtendedWhy, percent
from calibrant.bench.pages.why.ring import RingEdge, RingNode, draw_ring
from calibrant.bench.pages.why.sections import WhyTable, drop_empty, tables_body

MAX_NODES = 12  # more are not drawn
MAX_FRACTION_CHARS = 24  # longer ones are left to the JSON


def extended_body(why: ExtendedWhy, prefix: str) -> Markup:
    """Return the contents of the page; prefix: of ids."""
    return tables_body(why, extended_tables(why, extended_graph(why, prefix)), (), prefix)


def extended_graph(why: ExtendedWhy, prefix: str) -> str:
    """Draw the edges with their posterior; empty for many variables."""
    if not why.edges or len(why.variables) > MAX_NODES:
        return ""
    effects = {edge.effect for edge in why.edges}
    ordered = [*(v for v in why.variables if v not in effects), *(v for v in why.variables if v in effects)]
    nodes = [RingNode(name, "hidden" if name in why.hidden else "", "") for name in ordered]
    edges = [
        RingEdge(edge.cause, edge.effect, "good" if edge.fraction == "1" else "open", share_words(edge))
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
            for k, line in enumerate(why.evidence, 1)
        ),
        numeric=frozenset({0}),
    )
    return [edges, rates, worlds]
