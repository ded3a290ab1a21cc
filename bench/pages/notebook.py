"""Pictures in notebooks: a self-contained HTML element each, with its own background in light and dark themes."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from hashlib import blake2b

from markupsafe import Markup

from calibrant.bench.pages.graphs import MAX_NODES, Graph, GraphEdge, GraphNode, Tone, draw_ring, draw_together
from calibrant.bench.pages.page import html_page
from calibrant.bench.pages.tokens import scoped_token_rules
from calibrant.dsl.pictures import MAX_PICTURE_LINES, Picture
from calibrant.dsl.text import plural

# selectors of the frontends' themes: JupyterLab and Notebook, VS Code, Colab, marimo
LIGHT = ("[data-jp-theme-light=true]", ".vscode-light", "html[theme=light]", "html.light")
DARK = ("[data-jp-theme-light=false]", ".vscode-dark", "html[theme=dark]", "html.dark")
MAX_EDGES = 120  # of a drawn graph
MAX_COLUMNS = 40  # of a shown table
RULES = """
{s} {{ color: var(--ink); background: var(--paper); font: 14px/20px system-ui, sans-serif; padding: 8px 12px; }}
{s} p {{ margin: 0 0 6px; overflow-wrap: anywhere; white-space: pre-line; }}
{s} .soft {{ color: var(--soft); font-size: 12px; line-height: 17px; text-align: left; }}
{s} .scroll {{ overflow-x: auto; max-width: 100%; }}
{s} table {{ border-collapse: collapse; font-size: 13px; margin: 0; color: var(--ink); }}
{s} tbody tr:nth-child(n) {{ background: none; }}
{s} th, {s} td {{ border: 0; border-bottom: 1px solid var(--line); padding: 2px 9px; text-align: left;
  overflow-wrap: break-word; max-width: none; }}
{s} td.clamped {{ background: var(--sunk); color: var(--soft); font-style: italic; }}
{s} pre {{ margin: 4px 0 0; padding: 8px; color: var(--ink); background: var(--panel); overflow-x: auto;
  font: 12.5px/18px ui-monospace, monospace; white-space: pre; }}
{s} .scroll + p {{ margin-top: 6px; }}
{s} svg {{ height: auto; }}
"""
EDGE_TITLES = {"": "depends", "good": "certain", "open": "open", "bad": "inhibits"}  # tooltips of edges without a label
_RULE = re.compile(r"^(svg[^{]*)\{", re.MULTILINE)


def draw_picture(picture: Picture) -> str:
    """Return a picture as HTML; ids begin with a digest of its contents, so that they are unique in a notebook."""
    prefix = f"calibrant-{blake2b(repr(picture).encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
    notes = []
    if picture.num_rows > len(picture.rows):
        notes.append(f"{len(picture.rows)} of {plural(picture.num_rows, 'rows')}.")
    if len(picture.columns) > MAX_COLUMNS:
        notes.append(f"{MAX_COLUMNS} of {plural(len(picture.columns), 'columns')}.")
    drawing = ""
    if picture.nodes and len(picture.nodes) <= MAX_NODES and len(picture.edges) <= MAX_EDGES:
        drawing = _draw_graph(picture, prefix)
    elif picture.nodes:
        size = f"{plural(len(picture.nodes), 'nodes')} and {plural(len(picture.edges), 'edges')}"
        notes.append(f"{size}: graphs are drawn up to {MAX_NODES} and {MAX_EDGES}.")
    header, *rows = ((*cells[:MAX_COLUMNS],) for cells in (picture.columns, *picture.rows))
    lines = picture.code.splitlines()
    if len(lines) > MAX_PICTURE_LINES:
        notes.append(f"{MAX_PICTURE_LINES} of {plural(len(lines), 'lines')}.")
    content = {
        "code": "\n".join(lines[:MAX_PICTURE_LINES]),
        "picture": picture,
        "columns": header,
        "rows": rows,
        "prefix": prefix,
        "drawing": Markup(drawing),
        "more": " ".join(notes),
        "rules": Markup(_rules(f"#{prefix}")),
    }
    return html_page("notebook.html", content)


def _rules(scope: str) -> str:
    """Return the style sheet of one element; its selectors have the element's id, which overrides the notebook's."""
    drawing = html_page("design/drawing.css", {})
    scoped = _RULE.sub(lambda rule: _scoped(rule[1], scope) + "{", drawing)
    return scoped_token_rules(scope, LIGHT, DARK) + RULES.format(s=scope).strip() + "\n" + scoped


def _scoped(selectors: str, scope: str) -> str:
    return ", ".join(f"{scope} {selector.strip()}" for selector in selectors.split(",")) + " "


def _draw_graph(picture: Picture, prefix: str) -> str:
    """Draw a graph in layers, causes above effects; on a ring if it has cycles or labelled edges."""
    label = f"Graph of {picture.title}"
    nodes = {name: GraphNode(name, label_below) for name, label_below in picture.nodes.items()}
    parents: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in picture.edges:
        parents[edge.effect].append(edge.cause)
    if not any(edge.label for edge in picture.edges) and _is_acyclic(parents):
        tones: dict[tuple[str, str], Tone] = {(edge.cause, edge.effect): edge.tone for edge in picture.edges}
        (svg,) = draw_together([Graph(parents, nodes, label, tones=tones)], prefix)
        return svg
    edges = [
        GraphEdge(edge.cause, edge.effect, edge.tone, edge.label, title=edge.label or EDGE_TITLES[edge.tone])
        for edge in picture.edges
    ]
    return draw_ring([*nodes.values()], edges, label, prefix)


def _is_acyclic(parents: dict[str, list[str]]) -> bool:
    try:
        TopologicalSorter(parents).prepare()
    except CycleError:
        return False
    return True
