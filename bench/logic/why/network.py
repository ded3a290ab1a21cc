"""The network of a family in layers: width is the share of members, colour the sign, dots are clauses.

A dot is a clause of several literals. Each clause that is drawn has the width of its own share; edges of which no
clause is drawn have that of theirs. Lines are solid where all members have the edge, whatever its clauses. An edge that
closes a cycle with others is laid out upside down, and keeps its direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from calibrant.audits.logic.why.parts import LogicWhy
from calibrant.bench.logic.family.words import percent
from calibrant.bench.pages.charts import figure, text_at, text_width
from calibrant.bench.pages.design.page import standalone_svg
from calibrant.bench.pages.graphs import Layers, Spacing, curve_path
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.clause import Clause, parse_clause

MAX_NODES = 60
MAX_GATES = 12  # clauses of several literals that are drawn, by share
BOX, DOT = 30.0, 5.0  # height of a node, radius of a clause
SPACING = Spacing(BOX, gap=20, fall=54, margin=16, passing=8)
GATE = "\N{BULLET}"  # no name of a node begins with it


@dataclass(frozen=True)
class _Line:
    """A line of the drawing: from a node or gate to another, with its share and what it stands for.

    is_open: whether only some members have the edge that the line is part of
    """

    source: str
    target: str
    sign: int
    share: float
    title: str
    has_head: bool = True
    is_open: bool = False


def network(why: LogicWhy, prefix: str) -> str:
    """Return the network as an SVG; empty for more than MAX_NODES nodes. prefix: of ids of arrow heads."""
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
        )
    )
    label = f"The network: {sum(e.share == 1 for e in why.edges)} edges in all members, "
    label += f"{sum(0 < e.share < 1 for e in why.edges)} in some, {sum(e.share == 0 for e in why.edges)} in none"
    return figure(layout.width, layout.height, label, [f"<defs>{heads}</defs>", *marks])


def network_file(why: LogicWhy) -> str:
    """Return the network as an SVG file; `CalibrantError` where there are too many nodes to draw."""
    picture = network(why, "tip")
    if not picture:
        raise CalibrantError(f"more than {MAX_NODES} nodes are not drawn; --html has them in a table")
    return standalone_svg(picture)


def _lines(why: LogicWhy) -> Iterator[_Line]:
    """Yield clauses of one literal, the most frequent ones of several as gates, and the edges that are then missing."""
    clauses = [(parse_clause(part.text), part.share) for part in why.clauses]
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
        title = f"{clause}: {percent(share)} of the members"
        is_open = False
        for source, sign in clause.literals:
            edge = (source, sign, clause.target)
            covered.add(edge)
            of_edge = title if edge not in certain or share == 1 else f"{title}; {edge_arrow(*edge)}: all members"
            is_open |= edge not in certain
            yield _Line(source, _gate_name(clause), sign, share, of_edge, sign == -1, edge not in certain)
        yield _Line(_gate_name(clause), clause.target, 1, share, title, is_open=is_open)
    for part in why.edges:
        if (part.source, part.sign, part.target) not in covered:
            title = f"{part.text}: {percent(part.share)} of the members" if part.share else f"{part.text}: no member"
            is_open = 0 < part.share < 1
            yield _Line(part.source, part.target, part.sign, part.share, title, is_open=is_open)


def edge_arrow(source: str, sign: int, target: str) -> str:
    """Return an edge with the head that it is drawn with: → activates, ⊣ inhibits."""
    return f"{source} {'→' if sign == 1 else '⊣'} {target}"


def _gate_name(clause: Clause) -> str:
    return f"{GATE}{clause}"


def _acyclic(names: list[str], lines: list[_Line]) -> Mapping[str, list[str]]:
    """Return parents by node, in an order in which they come first; a line that closes a cycle is turned round."""
    following: dict[str, list[str]] = {name: [] for name in names}
    for line in lines:
        following[line.source].append(line.target)
    finished: list[str] = []
    state = dict.fromkeys(names, 0)
    for root in names:
        if state[root]:
            continue
        stack = [(root, iter(following[root]))]
        state[root] = 1
        while stack:
            name, rest = stack[-1]
            child = next((c for c in rest if not state[c]), None)
            if child is None:
                state[name] = 2
                finished.append(name)
                stack.pop()
            else:
                state[child] = 1
                stack.append((child, iter(following[child])))
    place = {name: k for k, name in enumerate(reversed(finished))}
    parents: dict[str, list[str]] = {name: [] for name in sorted(names, key=place.__getitem__)}
    for line in lines:
        upper, lower = sorted((line.source, line.target), key=place.__getitem__)
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
    head = "none" if not line.share else "plus" if line.sign == 1 else "minus"
    end_mark = f' marker-end="url(#{prefix}-{head})"' if line.has_head else ""
    return (
        f'<path d="{path}" style="fill:none;stroke:var(--{colour});stroke-width:{width:.1f}{dash}"{end_mark}>'
        f"<title>{escape(line.title)}</title></path>"
    )


def _end(name: str, layout: Layers, *, is_lower: bool) -> tuple[float, float]:
    """Return where lines leave or enter a node or a clause."""
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
