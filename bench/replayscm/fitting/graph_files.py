"""Networks as files, texts and objects: graphs of one's own in, learned networks out; effects as they are asked for.

Read are DOT, GraphML, BIF, CSV edge lists, model strings (`[A][B|A]`), texts (`A -> B, B -> C`), pairs of names, and
graphs of networkx and pgmpy. Written are .dot, .graphml, .bif and .txt (model string). Names are those of the table.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant.baselines.structure_learning.classes import dag_of_arcs
from calibrant.baselines.structure_learning.effects import Effects, Query
from calibrant.baselines.structure_learning.levels import LevelFrame
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError, readable_repr, require_extra
from calibrant.dsl.knowledge import parse_statement
from calibrant.solvers.acyclic.least import members_of

Arcs = list[tuple[str, str]]
MAX_GRAPH_BYTES = 10_000_000  # bytes of a file; 62 columns have 3,782 arcs
FORMS = "DOT (.dot, .gv), GraphML, BIF, CSV, or a text with a model string or arcs (.txt)"
EXPORTS = (".dot", ".graphml", ".bif", ".txt")

# --- Graphs -----------------------------------------------------------------------------------------------------------


class StatedGraph(NamedTuple):
    """Content of a file or text. nodes: names that it states apart from those of its arcs."""

    arcs: Arcs
    nodes: Sequence[str] = ()


class OwnGraph(NamedTuple):
    """A graph of one's own. remarks: lines on what a file states of its arcs that is not read, such as signs."""

    arcs: Arcs
    remarks: tuple[str, ...] = ()


def read_graph(graph: Any, table: Table) -> OwnGraph:
    """Return a graph of one's own over the columns of a table; `CalibrantError` states what cannot be read."""
    unread: list[str] = []
    nodes: Sequence[str]
    if isinstance(graph, Path) or (isinstance(graph, str) and _is_file(graph)):
        ((arcs, nodes), unread), source = _read_file(Path(graph)), str(graph)
    elif isinstance(graph, str):
        (arcs, nodes), source = _read_text(graph, "graph"), "graph"
    elif hasattr(graph, "edges"):
        edges = graph.edges() if callable(graph.edges) else graph.edges
        arcs, source = [(str(edge[0]), str(edge[1])) for edge in edges], "graph"
        nodes = [*map(str, getattr(graph, "nodes", ()))]
        if hasattr(graph, "is_directed") and not graph.is_directed():
            raise CalibrantError("graph is undirected; a network has arcs from parents to children")
    else:
        arcs, nodes, source = _read_pairs(graph), (), "graph"
    _require_names((*nodes, *(name for arc in arcs for name in arc)), table, source)
    arcs = list(dict.fromkeys(arcs))
    dag_of_arcs(table.names, arcs)  # refuses cycles
    stated = f"{source}: {', '.join(unread)} not read: arcs alone are, no signs, weights or labels of them"
    return OwnGraph(arcs, (stated,) if unread else ())


def _is_file(text: str) -> bool:
    return not re.search(r"->|\n|^\s*\[", text) and (Path(text).is_file() or Path(text).suffix.lower() in _READERS)


def _require_names(named: Iterable[str], table: Table, source: str) -> None:
    unknown = next((name for name in named if name not in table.names), None)
    if unknown is not None:
        raise table.unknown_column(unknown, source, f"has {readable_repr(unknown)}, which is no column")


def _read_pairs(graph: Any) -> Arcs:
    try:
        pairs = [tuple(arc) for arc in graph]
    except TypeError:
        pairs = [()]
    if not all(len(pair) == 2 and all(isinstance(name, str) for name in pair) for pair in pairs):
        raise CalibrantError(
            f"graph is {readable_repr(graph)}; a file, a text 'A -> B, B -> C', a model string, pairs of names, or a"
            " graph of networkx or pgmpy is allowed"
        )
    return [(parent, child) for parent, child in pairs]


def _read_file(path: Path) -> tuple[StatedGraph, list[str]]:
    """Return the graph, and what the file states of them otherwise."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CalibrantError(f"{path}: a graph is read from {FORMS}")
    try:
        if path.stat().st_size > MAX_GRAPH_BYTES:
            raise CalibrantError(f"{path} has more than {MAX_GRAPH_BYTES:,} bytes, too many for a graph")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise CalibrantError(f"{path}: cannot be read: {reason}") from error
    unread_by = {".csv": _unread_of_csv, ".dot": _unread_of_dot, ".gv": _unread_of_dot}.get(path.suffix.lower())
    return reader(text, str(path)), [] if unread_by is None else unread_by(text)


def _read_text(text: str, source: str) -> StatedGraph:
    stripped = text.strip()
    if not stripped:
        return StatedGraph([])
    if stripped.startswith("[") and ("->" not in stripped or re.fullmatch(r"(?:\[[^\[\]]+\]\s*)+", stripped)):
        return _read_model_string(stripped, source)
    if _TETRAD_EDGES in stripped:
        return StatedGraph(_read_tetrad(stripped.partition(_TETRAD_EDGES)[2], source))
    lines = [line.strip().rstrip(",;") for line in re.split(r"[\n;]", stripped)]
    return StatedGraph([arc for line in lines if line for arc in parse_statement("require", line, source).arcs])


_TETRAD_EDGES = "Graph Edges:"


def _read_tetrad(text: str, source: str) -> Arcs:
    """Read the numbered edges that Tetrad and causal-learn write."""
    edges = [
        edge.groups() for line in text.splitlines() if (edge := re.match(r"\s*\d+\. (.+?) (\S{3}) (.+?)\s*$", line))
    ]
    no_arc = next((" ".join(edge) for edge in edges if edge[1] != "-->"), None)
    if no_arc is not None:
        raise CalibrantError(
            f"{source}: {readable_repr(no_arc)} is no arc -->; a network has arcs in one direction alone"
        )
    return [(start, end) for start, _, end in edges]


def _read_model_string(text: str, source: str) -> StatedGraph:
    nodes = re.findall(r"\[([^\[\]|]+)(?:\|([^\[\]|]*))?\]", text)
    written = "".join(f"[{name}|{parents}]" if parents else f"[{name}]" for name, parents in nodes)
    if re.sub(r"\s", "", written) != re.sub(r"\s", "", text):
        raise CalibrantError(f"{source}: {readable_repr(text)} is no model string such as [A][C][B|A:C]")
    arcs = [(parent.strip(), name.strip()) for name, parents in nodes if parents for parent in parents.split(":")]
    return StatedGraph(arcs, [name.strip() for name, _ in nodes])


_DOT_TOKEN = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*|-?(?:\.\d+|\d+(?:\.\d*)?))'
    r"|(?P<sign>->|--|[\[\]{};,=])|(?P<space>\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)


def _dot_tokens(text: str, source: str) -> list[tuple[str, bool]]:
    """Return the tokens of DOT, and whether each is a name."""
    tokens: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        match = _DOT_TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise CalibrantError(f"{source}, line {line}: {readable_repr(text[position : position + 20])} is no DOT")
        position = match.end()
        if match["sign"]:
            tokens.append((match["sign"], False))
        elif not match["space"]:
            quoted = match["quoted"]
            tokens.append((re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match["plain"], True))
    return tokens


def _unread_of_dot(text: str) -> list[str]:
    """Return the names of the attributes of arcs, each once."""
    attributes: dict[str, None] = {}
    is_arc, depth, previous = False, 0, ""
    for token, is_name in _dot_tokens(text, ""):
        if token in ("[", "]") and not is_name:
            depth += 1 if token == "[" else -1
        elif depth and token == "=" and not is_name and is_arc:
            attributes[previous] = None
        elif not depth and (token == "->" or (is_name and token.lower() == "edge")):
            is_arc = True
        elif not depth and previous != "->":
            is_arc = False
        previous = token
    return [f"attribute {readable_repr(name)}" for name in attributes]


def _read_dot(text: str, source: str) -> StatedGraph:
    """Read a digraph without subgraphs and ports: nodes, chains of arcs, attributes."""
    tokens = _dot_tokens(text, source)
    if ("--", False) in tokens:
        raise CalibrantError(f"{source}: an edge -- has no direction; a network has arcs ->")
    if ("{", False) not in tokens or tokens.count(("{", False)) > 1:
        raise CalibrantError(f"{source}: one digraph {{ ... }} without subgraphs is read")
    arcs: Arcs = []
    nodes: list[str] = []
    chain: list[str] = []
    expects, is_value, depth = False, False, 0
    body = tokens[tokens.index(("{", False)) + 1 :]
    for (token, is_name), following in zip(body, [*body[1:], ("", False)], strict=True):
        if token in ("[", "]") and not is_name:
            depth += 1 if token == "[" else -1
        elif depth:
            continue
        elif is_name:
            if expects:
                arcs.append((chain[-1], token))
            elif not is_value and following != ("=", False) and token.lower() not in ("node", "edge", "graph"):
                nodes.append(token)
            chain, expects, is_value = [token], False, False
        else:
            expects, is_value = token == "->" and bool(chain), token == "="
            chain = chain if expects else []
    return StatedGraph(arcs, nodes)


def _read_graphml(text: str, source: str) -> StatedGraph:
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise CalibrantError(f"{source}: a document type is not read in GraphML")
    if "<graphml" not in text:
        raise CalibrantError(f"{source}: no <graphml> in it")
    if re.search(r"""edgedefault\s*=\s*["']undirected""", text):
        raise CalibrantError(f"{source}: the graph is undirected; a network has arcs")
    labels = dict(_graphml_labels(text))
    arcs = []
    for attributes in re.findall(r"<edge\b([^>]*)>", text):
        start, end = _attribute(attributes, "source"), _attribute(attributes, "target")
        if start is None or end is None:
            raise CalibrantError(f"{source}: an edge without source and target")
        parent, child = unescape(start), unescape(end)
        arcs.append((labels.get(parent, parent), labels.get(child, child)))
    ids = (_attribute(attributes, "id") for attributes in re.findall(r"<node\b([^>]*)>", text))
    nodes = [unescape(identifier) for identifier in ids if identifier]
    return StatedGraph(arcs, [labels.get(node, node) for node in nodes])


def _graphml_labels(text: str) -> Iterator[tuple[str, str]]:
    """Yield node id -> name, of files that write names as data of a key called label or name."""
    keys = [
        identifier
        for attributes in re.findall(r"<key\b([^>]*)>", text)
        if (identifier := _attribute(attributes, "id")) and _attribute(attributes, "attr.name") in ("label", "name")
    ]
    for attributes, inner in re.findall(r"<node\b([^>/]*)>(.*?)</node>", text, re.DOTALL):
        for key, value in re.findall(r"""<data\s+key\s*=\s*["']([^"']*)["']\s*>([^<]*)</data>""", inner):
            if key in keys and (identifier := _attribute(attributes, "id")):
                yield unescape(identifier), unescape(value).strip()


def _attribute(attributes: str, name: str) -> str | None:
    match = re.search(rf"""(?:^|\s){re.escape(name)}\s*=\s*(["'])(.*?)\1""", attributes, re.DOTALL)
    return None if match is None else match[2]


def _read_bif(text: str, source: str) -> StatedGraph:
    bodies = re.findall(r"\bprobability\s*\(([^)]*)\)", text)
    if not bodies:
        raise CalibrantError(f"{source}: no `probability ( child | parents )` in it")
    arcs, nodes = [], []
    for body in bodies:
        child, _, parents = body.partition("|")
        nodes.append(_unquote(child))
        arcs += [(_unquote(parent), nodes[-1]) for parent in parents.split(",") if parent.strip()]
    return StatedGraph(arcs, nodes)


def _unquote(name: str) -> str:
    return name.strip().strip('"')


_CSV_HEADS = (("from", "to"), ("source", "target"), ("parent", "child"), ("cause", "effect"))


def _read_csv(text: str, source: str) -> StatedGraph:
    """Read an arc a line, from the columns that a head such as `from,to` names, else from the first two."""
    rows = [*_numbered_rows(text)]
    start, end = _ends_of_arcs(rows)
    is_headed = start >= 0
    if rows and not is_headed and not rows[0][1][0].strip():
        advice = "a CSV of arcs has a head with from and to; matrices are not read"
        raise CalibrantError(f"{source}, line {rows[0][0]}: the first column has no name; {advice}")
    start, end = (start, end) if is_headed else (0, 1)
    for number, row in rows:
        if len(row) <= max(start, end):
            raise CalibrantError(f"{source}, line {number}: {readable_repr(','.join(row))} is not of the form from,to")
    return StatedGraph([(row[start].strip(), row[end].strip()) for _, row in (rows[1:] if is_headed else rows)])


def _numbered_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number of the last line, from 1, and cells of each row that is not empty; separated as its head is."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = min((mark for mark in ",;\t" if mark in first), key=first.index, default=",")
    reader = csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, row


def _ends_of_arcs(rows: Sequence[tuple[int, Sequence[str]]]) -> tuple[int, int]:
    """Return the positions of the columns of both ends that the first row names; -1 twice if it names none."""
    heads = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    named = ((heads.index(start), heads.index(end)) for start, end in _CSV_HEADS if {start, end} <= set(heads))
    return next(named, (-1, -1))


def _unread_of_csv(text: str) -> list[str]:
    """Return the columns beside the two that have the ends of arcs; one without a name has names of rows."""
    rows = [*_numbered_rows(text)]
    start, end = _ends_of_arcs(rows)
    names = rows[0][1] if start >= 0 else []
    ends = (start, end) if start >= 0 else (0, 1)
    further = [k for k in range(max((len(row) for _, row in rows), default=0)) if k not in ends]
    named = [(k, names[k].strip() if k < len(names) else k + 1) for k in further]
    return [f"column {readable_repr(name)}" if isinstance(name, str) else f"column {name}" for _, name in named if name]


_READERS = {
    ".dot": _read_dot,
    ".gv": _read_dot,
    ".graphml": _read_graphml,
    ".bif": _read_bif,
    ".csv": _read_csv,
    ".txt": _read_text,
}

# --- Effects ----------------------------------------------------------------------------------------------------------
_EFFECT = re.compile(r"\s*(?:P\s*\(\s*)?(?P<of>.+?)\s*\|\s*do\s*\((?P<do>.+)\)\s*\)?\s*")


def read_effect(effect: Any, table: Table) -> Query:
    """Return the effect that is asked for: `Y=yes | do(X=no, Z=1)`, or {"of": {"Y": "yes"}, "do": {"X": "no"}}."""
    form = "write Y=yes | do(X=no)"
    if isinstance(effect, str):
        match = _EFFECT.fullmatch(effect)
        if match is None:
            raise CalibrantError(f"effect {readable_repr(effect)}: {form}")
        ends = match["do"].rstrip(") ")
        names = (*table.names, *table.left_out)
        of = [_assignment(match["of"], names)]
        setting = [_assignment(part, names) for part in next(csv.reader([ends], skipinitialspace=True))]
    elif (
        isinstance(effect, Mapping)
        and set(effect) == {"of", "do"}
        and all(isinstance(part, Mapping) for part in effect.values())
    ):
        of, setting = list(effect["of"].items()), list(effect["do"].items())
    else:
        raise CalibrantError(
            f"effect is {readable_repr(effect)}; {form}, or {{'of': {{'Y': 'yes'}}, 'do': {{'X': 'no'}}}}"
        )
    if len(of) != 1 or not setting:
        raise CalibrantError(f"effect has {len(of)} values before | and {len(setting)} settings; {form}")
    ((target, value),) = (_code(name, word, table) for name, word in of)
    settings = dict(_code(name, word, table) for name, word in setting)
    if len(settings) < len(setting) or target in settings:
        raise CalibrantError(f"effect {readable_repr(effect)} names a column twice")
    return Query(target, value, settings)


def _assignment(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split `COL=WORD` where the left part is a column; names may hold an equals sign."""
    ends = [match.start() for match in re.finditer("=", text)]
    end = next((end for end in reversed(ends) if text[:end].strip() in names), ends[0] if ends else None)
    if end is None:
        raise CalibrantError(f"effect {readable_repr(text.strip())}: write COL=WORD")
    return text[:end].strip(), text[end + 1 :].strip()


def _code(name: str, word: Any, table: Table) -> tuple[int, int]:
    if name not in table.names:
        raise table.unknown_column(name, "effect", f"names {readable_repr(name)}, which is no column")
    column = table.used[table.position(name)]
    code = column.code_of(str(word))
    if code is None:
        raise CalibrantError(
            f"effect has {name}={readable_repr(str(word))}; the values of {name} are {', '.join(column.words)}"
        )
    return table.position(name), code


# --- Exports ----------------------------------------------------------------------------------------------------------


class WrittenNetwork(NamedTuple):
    """Content of a file of a network.

    words: the values of each column; arcs: (parent, child); probabilities: of arcs, where there are any
    frame, imaginary_rows: of the tables of posterior means; None for a table with gaps
    """

    variables: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    arcs: tuple[tuple[str, str], ...]
    probabilities: Mapping[tuple[str, str], float]
    frame: LevelFrame | None
    imaginary_rows: float


def export_network(network: WrittenNetwork, path: Path) -> None:
    """Write the first network; `CalibrantError` for another suffix, or a name that the format cannot hold."""
    suffix = path.suffix.lower()
    if suffix not in EXPORTS:
        raise CalibrantError(
            f"{path}: a network is written as {', '.join(EXPORTS)}; calibrant.learn_networks(TABLE).to_frame() is the"
            " table of its arcs, whose to_csv(FILE) writes CSV"
        )
    text = {".dot": _dot_text, ".graphml": _graphml_text, ".bif": _bif_text, ".txt": _model_text}[suffix](network)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CalibrantError(f"{path}: cannot be written: {error.strerror}") from error


def _model_text(network: WrittenNetwork) -> str:
    from calibrant.baselines.structure_learning.classes import model_string

    for name in network.variables:
        if re.search(r"[\[\]|:]", name):
            raise CalibrantError(
                f"{readable_repr(name)} cannot be written in a model string, whose names have no [, ], | or :; the"
                " other formats hold it"
            )
    return f"{model_string(network.variables, dag_of_arcs(network.variables, network.arcs))}\n"


def _dot_text(network: WrittenNetwork) -> str:
    def quote(name: str) -> str:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    lines = [f" {quote(name)};" for name in network.variables]
    for parent, child in network.arcs:
        probability = network.probabilities.get((parent, child))
        attributes = "" if probability is None else f" [probability={probability:.9f}]"
        lines.append(f" {quote(parent)} -> {quote(child)}{attributes};")
    return "\n".join(["digraph network {", *lines, "}", ""])


def _graphml_text(network: WrittenNetwork) -> str:
    from xml.sax.saxutils import quoteattr  # imports http.client and ssl

    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        ' <key id="probability" for="edge" attr.name="probability" attr.type="double"/>',
        ' <graph edgedefault="directed">',
        *(f"  <node id={quoteattr(name)}/>" for name in network.variables),
    ]
    for parent, child in network.arcs:
        probability = network.probabilities.get((parent, child))
        data = "" if probability is None else f'<data key="probability">{probability:.9f}</data>'
        lines.append(f"  <edge source={quoteattr(parent)} target={quoteattr(child)}>{data}</edge>")
    return "\n".join([*lines, " </graph>", "</graphml>", ""])


def _bif_text(network: WrittenNetwork) -> str:
    words = network.words
    for text in (*network.variables, *(word for row in words for word in row)):
        if not re.fullmatch(r"[^\s\"(){}\[\],;|]+", text):
            raise CalibrantError(
                f"{readable_repr(text)} cannot be written in BIF, whose names have no blanks, quotes, commas, bars or"
                " brackets; the other formats hold it"
            )
    pieces = ["network unknown {\n}\n"]
    for name, row in zip(network.variables, words, strict=True):
        pieces.append(f"variable {name} {{\n  type discrete [ {len(row)} ] {{ {', '.join(row)} }};\n}}\n")
    for v, (scope, means) in enumerate(_means(network)):
        parents = scope[:-1]
        head = network.variables[v] + (f" | {', '.join(network.variables[u] for u in parents)}" if parents else "")
        pieces.append(f"probability ( {head} ) {{\n")
        for index in np.ndindex(means.shape[:-1]):
            shares = ", ".join(repr(float(value)) for value in means[index])
            values = ", ".join(words[u][code] for u, code in zip(parents, index, strict=True))
            pieces.append(f"  ({values}) {shares};\n" if parents else f"  table {shares};\n")
        pieces.append("}\n")
    return "".join(pieces)


def _means(network: WrittenNetwork) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield, per column, its parents and itself, and the posterior means, the column's axis last."""
    if network.frame is None:
        raise CalibrantError("a table with gaps has no tables of probabilities; --gaps drop learns some")
    effects = Effects(network.frame, Fraction(str(network.imaginary_rows)))
    for v, parents in enumerate(dag_of_arcs(network.variables, network.arcs)):
        yield (*members_of(parents), v), effects.means(v, parents)


def to_networkx(network: WrittenNetwork) -> Any:
    """Return the first network as a `networkx.DiGraph`; `MissingExtraError` without networkx."""
    require_extra("graphs", "networkx")
    networkx = import_module("networkx")
    graph = networkx.DiGraph()
    graph.add_nodes_from(network.variables)
    for arc in network.arcs:
        graph.add_edge(*arc, **({"probability": network.probabilities[arc]} if arc in network.probabilities else {}))
    return graph


def to_pgmpy(network: WrittenNetwork) -> Any:
    """Return the first network as a pgmpy `DiscreteBayesianNetwork` with tables of posterior means."""
    require_extra("discovery", "pgmpy")
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork(network.arcs)
    model.add_nodes_from(network.variables)
    words = network.words
    for v, (scope, means) in enumerate(_means(network)):
        parents = scope[:-1]
        model.add_cpds(
            TabularCPD(
                network.variables[v],
                len(words[v]),
                means.reshape(-1, len(words[v])).T.astype(float),
                [network.variables[u] for u in parents] or None,
                [len(words[u]) for u in parents] or None,
                {network.variables[u]: words[u] for u in scope},
            )
        )
    return model
