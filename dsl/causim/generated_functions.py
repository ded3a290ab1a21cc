"""Functions of generated programs, their topologies, and requirements on generated models."""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeAlias, TypeVar

import numpy as np

from calibrant.dsl.causim.bundle import Bundle
from calibrant.dsl.causim.language.driver import parse
from calibrant.dsl.causim.model import Local, Model

# --- Random choices that depend on a key alone, in all versions of Python ---------------------------------------------
T = TypeVar("T")
_WORD_BYTES = 8


class Draws:
    """Draws from a stream of SHA-256 blocks that a key determines."""

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode()
        self._words = self._stream()

    def _stream(self) -> Iterator[int]:
        block = 0
        while True:
            digest = hashlib.sha256(self._key + b"\x1e" + str(block).encode()).digest()
            for start in range(0, len(digest), _WORD_BYTES):
                yield int.from_bytes(digest[start : start + _WORD_BYTES], "big")
            block += 1

    def below(self, bound: int) -> int:
        """Draw an integer from 0 to bound - 1; for bounds below 2**24 it is uniform up to 2**-40."""
        return next(self._words) % bound

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with that probability, to within a millionth."""
        return self.below(1_000_000) < round(probability * 1_000_000)

    def sample(self, options: Sequence[T], size: int) -> list[T]:
        """Return `size` options at distinct positions, in random order."""
        remaining = list(options)
        return [remaining.pop(self.below(len(remaining))) for _ in range(size)]

    def shuffle(self, values: MutableSequence[T]) -> None:
        values[:] = self.sample(list(values), len(values))


# --- Names and values of generated programs ---------------------------------------------------------------------------
Vocabulary: TypeAlias = Literal["nonsense", "medical"]
_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"

NOISE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("bo", "cek", "da", "fi", "gul", "ho", "jat", "ki", "lu", "mep", "no", "pir", "qua", "rus", "so"),
    "medical": (
        "acute", "benign", "chronic", "delayed", "early", "focal", "gradual", "latent", "marked", "occult", "patchy",
        "recurrent", "stable", "transient", "unstable", "viral",
    ),
}  # fmt: skip
VALUE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("BEX", "COD", "FAP", "GIM", "HUR", "JOL", "KET", "LIS", "MAV", "NUB", "POZ", "RIK", "SEF", "TAG"),
    "medical": (
        "absent", "mild", "moderate", "severe", "normal", "raised", "low", "high", "present", "resolved", "worse",
        "improved", "pending", "excluded", "confirmed",
    ),
}  # fmt: skip


def new_name(draws: Draws, used: Iterable[str]) -> str:
    """Return a name of alternating consonants and vowels; no keyword, and not in `used`, case ignored."""
    used_names = {name.lower() for name in used}
    while True:
        name = "".join(draws.choice(_CONSONANTS) + draws.choice(_VOWELS) for _ in range(2))
        if name not in used_names and not keyword.iskeyword(name) and not keyword.issoftkeyword(name):
            return name.capitalize()


def outcomes(draws: Draws, vocabulary: Vocabulary, num_values: int) -> list[object]:
    """Draw values of a node: all words, all integers or both booleans, so that no two are equal in Python."""
    kind = draws.below(6)
    if kind == 0:
        return list(range(num_values))
    if kind == 1 and num_values == 2:
        return [False, True]
    return list(draws.sample(VALUE_WORDS[vocabulary], num_values))


# --- Bodies of U_*: uniform and weighted choices, thresholds, choices with an optional suffix; two to six values ------


def sampler(draws: Draws, vocabulary: Vocabulary) -> str:
    """Return the body of a sampler."""
    words = list(draws.sample(NOISE_WORDS[vocabulary], 6))
    kind = draws.below(5)
    if kind == 0:
        return f"return random.choice({words[: 2 + draws.below(5)]!r})"
    if kind == 1:
        chosen = words[: 2 + draws.below(4)]
        weights = [1 + draws.below(5) for _ in chosen]
        return f"return random.choices({chosen!r}, weights={weights!r})[0]"
    if kind == 2:
        pool, suffix = words[: 2 + draws.below(2)], draws.choice(["x", "k", "v"])
        share = (1 + draws.below(9)) / 10
        lines = [f"pick = random.choice({pool!r})", f"if random.random() < {share}:", "    return pick"]
        return "\n".join([*lines, f"return pick + {suffix!r}"])
    if kind == 3:
        low = 1 + draws.below(5)
        lines = ["r = random.random()", f"if r < {low / 10}:", f"    return {words[0]!r}"]
        lines += [f"elif r < {(low + 1 + draws.below(9 - low)) / 10}:", f"    return {words[1]!r}"]
        return "\n".join([*lines, f"return {words[2]!r}"])
    return f"if random.choice([True, False]):\n    return {words[0]!r}\nreturn random.choice({words[1:4]!r})"


# --- Bodies of f_* in several forms; all of them return on every path -------------------------------------------------
INDENT: Final = "    "
MAX_TABLE_ROWS: Final = 64  # combinations of parents' values in a lookup table


@dataclass(frozen=True)
class Input:
    """A parameter of a mechanism, and its possible values, all of one type."""

    variable: str
    values: Sequence[object]


@dataclass(frozen=True)
class Setting:
    """Inputs and outputs of a mechanism: any number of parents, one noise variable, two to four output values."""

    parents: Sequence[Input]
    noise: Input
    outputs: Sequence[object]


def mechanism(draws: Draws, setting: Setting) -> str:
    """Return the body of a mechanism in a form drawn uniformly from those that its number of parents allows."""
    few = 1
    for parent in setting.parents:
        few *= len(parent.values)
    forms = [form for form in _FORMS if form is not _lookup or few <= MAX_TABLE_ROWS]
    return "\n".join(draws.choice(forms)(draws, setting))


def indent_lines(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _sample_some(draws: Draws, values: Sequence[object]) -> tuple[object, ...]:
    """Sample some of the values, a proper subset if there are several."""
    return tuple(draws.sample(values, 1 + draws.below(max(len(values) - 1, 1))))


def _two(draws: Draws, setting: Setting) -> tuple[object, object]:
    first, second = draws.sample(setting.outputs, 2)
    return first, second


def _test(draws: Draws, argument: Input) -> str:
    chosen = _sample_some(draws, argument.values)
    return f"{argument.variable} == {chosen[0]!r}" if len(chosen) == 1 else f"{argument.variable} in {chosen!r}"


def _rule(draws: Draws, setting: Setting) -> list[str]:
    """Return lines that compute an output from the parents alone and end in a return."""
    first, second = _two(draws, setting)
    if not setting.parents:
        return [f"return {first!r}"]
    if len(setting.parents) == 1 or draws.chance(0.5):
        lines = []
        for parent in draws.sample(setting.parents, len(setting.parents)):
            lines += [f"if {_test(draws, parent)}:", f"{INDENT}return {draws.choice(setting.outputs)!r}"]
        return [*lines, f"return {first!r}"]
    tests = [_test(draws, parent) for parent in setting.parents]
    return [f"if {draws.choice([' and ', ' or ']).join(tests)}:", f"{INDENT}return {first!r}", f"return {second!r}"]


def _membership(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    head = [f"if {setting.noise.variable} in {_sample_some(draws, setting.noise.values)!r}:"]
    if not setting.parents:
        return [*head, f"{INDENT}return {first!r}", f"return {second!r}"]
    return [*head, *indent_lines([f"return {first!r}"]), *_rule(draws, setting)]


def _gates(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    inner = [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}return {first!r}",
        f"return {draws.choice(setting.outputs)!r}",
    ]
    for parent in draws.sample(setting.parents, len(setting.parents)):
        inner = [f"if {_test(draws, parent)}:", *indent_lines(inner), f"return {second!r}"]
    return inner


def _text(draws: Draws, setting: Setting) -> list[str]:
    parts = [
        f"str({argument.variable})"
        for argument in draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    ]
    characters = "".join(str(value) for argument in [*setting.parents, setting.noise] for value in argument.values)
    first, second = _two(draws, setting)
    ends = sorted({str(value)[-1] for argument in [*setting.parents, setting.noise] for value in argument.values})
    return [
        f"t = {' + '.join(parts)}",
        f"if {draws.choice(sorted(set(characters)))!r} in t and not t.endswith({draws.choice(ends)!r}):",
        f"{INDENT}return {first!r}",
        f"if len(t) % {2 + draws.below(2)} == 0:",
        f"{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {second!r}",
    ]


def _loop(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    givens = draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    letters = sorted({letter for argument in givens for value in argument.values for letter in str(value)})
    chosen = draws.sample(letters, min(len(letters), 3))
    return [
        f"for item in [{', '.join(argument.variable for argument in givens)}]:",
        f"{INDENT}if str(item).startswith({chosen[0]!r}):",
        f"{INDENT}{INDENT}return {first!r}",
        f"{INDENT}if {chosen[-1]!r} in str(item):",
        f"{INDENT}{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {second!r}",
    ]


def _lookup(draws: Draws, setting: Setting) -> list[str]:
    if not setting.parents:
        table = {value: draws.choice(setting.outputs) for value in setting.noise.values}
        return [f"table = {table!r}", f"return table[{setting.noise.variable}]"]
    rows = list(product(*(parent.values for parent in setting.parents)))
    first, second = ({row: draws.choice(setting.outputs) for row in rows} for _ in range(2))
    key = f"({', '.join(parent.variable for parent in setting.parents)},)"
    return [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}table = {first!r}",
        "else:",
        f"{INDENT}table = {second!r}",
        f"return table[{key}]",
    ]


def _counter(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    givens = [*setting.parents, setting.noise]
    lines = ["count = 0"]
    for argument in givens:
        lines += [f"if {_test(draws, argument)}:", f"{INDENT}count += {1 + draws.below(2)}"]
    threshold = 1 + draws.below(len(givens))
    return [*lines, f"return {first!r} if count > {threshold - 1} else {second!r}"]


def _response(draws: Draws, setting: Setting) -> list[str]:
    """Return lines in which the noise selects one of two rules on the parents.

    Without such forms, knowing all values would nearly always leave one counterfactual answer.
    """
    groups = draws.sample(setting.noise.values, len(setting.noise.values))
    cut = 1 + draws.below(len(groups) - 1) if len(groups) > 1 else 1
    first = f"{setting.noise.variable} in {tuple(groups[:cut])!r}"
    return [f"if {first}:", *indent_lines(_rule(draws, setting)), *_rule(draws, setting)]


_FORMS: Final[tuple[Callable[[Draws, Setting], list[str]], ...]] = (
    _membership,
    _gates,
    _text,
    _loop,
    _lookup,
    _counter,
    _response,
)


# --- Requirements on generated programs: their topology, and effects of edges and noise -------------------------------
# A graph is a mapping from every node to its parents. Small graphs satisfy several predicates.
#
# Acyclicity, private noise, call order and declared outputs are checked when a program is loaded. Checks that need
# the tables are here: edges and noise without an effect, constant nodes, the topology.
# --- The six topologies as predicates on a graph, and insertions of a node that keep a topology -----------------------
Parents: TypeAlias = Mapping[str, Sequence[str]]


def children_of(graph: Parents) -> dict[str, list[str]]:
    """Return the children of each node, in the order of the graph."""
    children: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            children[parent].append(node)
    return children


def is_acyclic(graph: Parents) -> bool:
    return depths(graph) is not None


def depths(graph: Parents) -> dict[str, int] | None:
    """Return the length of the longest path from a root to each node; None for a graph with a cycle."""
    depth: dict[str, int] = {}
    unplaced = list(graph)
    while unplaced:
        ready = [node for node in unplaced if all(parent in depth for parent in graph[node])]
        if not ready:
            return None
        for node in ready:
            depth[node] = max((depth[parent] + 1 for parent in graph[node]), default=0)
        unplaced = [node for node in unplaced if node not in depth]
    return depth


def is_connected(graph: Parents) -> bool:
    """Return whether the undirected graph is connected."""
    near: dict[str, set[str]] = {node: set(parents) for node, parents in graph.items()}
    for node, parents in graph.items():
        for parent in parents:
            near[parent].add(node)
    reached: set[str] = set()
    waiting = list(graph)[:1]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting.extend(near[node])
    return len(reached) == len(graph)


def _chain(graph: Parents) -> bool:
    return all(len(parents) <= 1 for parents in graph.values()) and all(
        len(children) <= 1 for children in children_of(graph).values()
    )


def _star(graph: Parents) -> bool:
    return any(all(list(parents) == ([] if node == hub else [hub]) for node, parents in graph.items()) for hub in graph)


def _inverted_star(graph: Parents) -> bool:
    return any(
        set(graph[sink]) == set(graph) - {sink} and all(not parents for node, parents in graph.items() if node != sink)
        for sink in graph
    )


def _tree(graph: Parents) -> bool:
    return sorted(map(len, graph.values())) == [0] + [1] * (len(graph) - 1)


def _is_layered(graph: Parents) -> bool:
    depth = depths(graph) or {}
    return all(depth[parent] + 1 == depth[node] for node, parents in graph.items() for parent in parents)


def _poly_tree_strict(graph: Parents) -> bool:
    return sum(map(len, graph.values())) == len(graph) - 1


_PREDICATES: Final[dict[str, Callable[[Parents], bool]]] = {
    "chain": _chain,
    "star": _star,
    "inverted_star": _inverted_star,
    "tree": _tree,
    "layered": _is_layered,
    "poly_tree": lambda graph: True,
    "poly_tree_strict": _poly_tree_strict,
}
TOPOLOGIES: Final = ("chain", "star", "inverted_star", "tree", "layered", "poly_tree")


def satisfies(graph: Parents, topology: str) -> bool:
    """Return whether an acyclic, connected graph has the topology; `KeyError` for an unknown one."""
    return is_acyclic(graph) and is_connected(graph) and _PREDICATES[topology](graph)


def topologies(graph: Parents) -> dict[str, bool]:
    """Return the values of all predicates on a graph, `poly_tree_strict` included."""
    return {name: satisfies(graph, name) for name in _PREDICATES}


# --- insertions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Insertion:
    """Insertion of a new node, which is called `NEW` here.

    parents: of the new node
    changed: node and its new parents, for each node that becomes a child of the new one or loses parents
    """

    parents: tuple[str, ...]
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()


NEW: Final = ""


def insert_node(graph: Parents, insertion: Insertion, name: str) -> dict[str, tuple[str, ...]]:
    """Insert the new node; children come after their parents."""
    changed = dict(insertion.changed)
    after = {
        node: tuple(name if parent == NEW else parent for parent in changed.get(node, tuple(parents)))
        for node, parents in graph.items()
    }
    after[name] = insertion.parents
    depth = depths(after) or {}
    return {node: after[node] for node in sorted(after, key=lambda node: (depth[node], list(after).index(node)))}


def insertions(graph: Parents, topology: str) -> list[Insertion]:
    """Return the insertions that keep the topology, in a fixed order; an empty graph has one."""
    if not graph:
        return [Insertion(())]
    return _INSERTIONS[topology](graph)


def _edges(graph: Parents) -> list[tuple[str, str]]:
    return [(parent, node) for node, parents in graph.items() for parent in parents]


def _on_edges(graph: Parents) -> list[Insertion]:
    """Return insertions on an edge: the child gets the new node in place of its parent."""
    return [
        Insertion((parent,), ((node, tuple(NEW if old == parent else old for old in graph[node])),))
        for parent, node in _edges(graph)
    ]


def _in_chain(graph: Parents) -> list[Insertion]:
    start = next(node for node, parents in graph.items() if not parents)
    end = next(node for node, children in children_of(graph).items() if not children)
    return [Insertion((), ((start, (NEW,)),)), Insertion((end,)), *_on_edges(graph)]


def _in_star(graph: Parents) -> list[Insertion]:
    return [Insertion((next(node for node, parents in graph.items() if not parents),))]


def _in_inverted_star(graph: Parents) -> list[Insertion]:
    sink = next((node for node, parents in graph.items() if parents), next(iter(graph)))
    return [Insertion((), ((sink, (*graph[sink], NEW)),))]


def _in_tree(graph: Parents) -> list[Insertion]:
    root = next(node for node, parents in graph.items() if not parents)
    leaves = [Insertion((node,)) for node in graph]
    return [Insertion((), ((root, (NEW,)),)), *leaves, *_on_edges(graph)]


def _in_layers(graph: Parents) -> list[Insertion]:
    """Return insertions into a layer with one or two parents in the layer above, and as a layer of its own.

    Nodes of the layer below a new layer get the new node in place of all their parents, so each keeps a parent.
    """
    depth = depths(graph) or {}
    layers = [[node for node in graph if depth[node] == k] for k in range(max(depth.values()) + 1)]
    insertions: list[Insertion] = []
    for below in layers[1:2]:  # a new node of layer 0 needs a child, which is in the next layer
        insertions.extend(Insertion((), ((node, (*graph[node], NEW)),)) for node in below)
    for above in layers:
        insertions.extend(Insertion((node,)) for node in above)
        insertions.extend(Insertion((first, second)) for i, first in enumerate(above) for second in above[i + 1 :])
    if len(graph) > 1:
        for k in range(len(layers)):
            parents = tuple(layers[k - 1][:2]) if k else ()
            changed = tuple((node, (NEW,)) for node in layers[k])
            insertion = Insertion(parents, changed)
            if satisfies(insert_node(graph, insertion, "new node"), "layered"):
                insertions.append(insertion)
    return insertions


def _in_poly_tree(graph: Parents) -> list[Insertion]:
    """Return insertions below or above a node, on an edge, and with two parents."""
    nodes = list(graph)
    under = [Insertion((node,)) for node in nodes]
    above = [Insertion((), ((node, (*graph[node], NEW)),)) for node in nodes]
    joins = [Insertion((first, second)) for i, first in enumerate(nodes) for second in nodes[i + 1 :]]
    return [*under, *above, *_on_edges(graph), *joins]


_INSERTIONS: Final[dict[str, Callable[[Parents], list[Insertion]]]] = {
    "chain": _in_chain,
    "star": _in_star,
    "inverted_star": _in_inverted_star,
    "tree": _in_tree,
    "layered": _in_layers,
    "poly_tree": _in_poly_tree,
}


# --- Requirements on generated models, and their violations by other models -------------------------------------------


@dataclass(frozen=True, slots=True)
class Vacuity:
    """Edges, noise and nodes without an effect, in topological order.

    edges: (parent, child) such that no change of the parent alone ever changes the child
    noise: nodes whose noise changes nothing
    constants: nodes with one value
    """

    edges: tuple[tuple[str, str], ...]
    noise: tuple[str, ...]
    constants: tuple[str, ...]


def vacuity(model: Model) -> Vacuity:
    """Return the edges, noise and nodes of a model without an effect; `ModelError` if a table is too large."""
    edges: list[tuple[str, str]] = []
    noise, constants = [], []
    for node, local in zip(model.nodes, model.system, strict=True):
        edges.extend((parent, node.name) for axis, parent in enumerate(node.parents) if not _matters(local, axis))
        if not _matters(local, len(node.parents)):
            noise.append(node.name)
        if len(local.domain) == 1:
            constants.append(node.name)
    return Vacuity(tuple(edges), tuple(noise), tuple(constants))


def _matters(local: Local, axis: int) -> bool:
    first = np.take(local.table, [0], axis=axis)
    return bool(np.any(local.table != first))


def graph_of(model: Model) -> dict[str, tuple[str, ...]]:
    """Return the parents of each node, nodes in topological order."""
    return {node.name: node.parents for node in model.nodes}


def objections(model: Model, topology: str, *, size: int | None = None) -> list[str]:
    """Return why a generated model is rejected, a line for each reason; empty if it is accepted."""
    graph = graph_of(model)
    problems = []
    if not is_connected(graph):
        problems.append("the graph is not connected")
    if topology and not satisfies(graph, topology):
        problems.append(f"the graph is no {topology}")
    if size is not None and len(model) != size:
        problems.append(f"{len(model)} nodes where {size} are declared")
    vacuous = vacuity(model)
    problems.extend(f"the edge {parent} -> {child} makes no difference" for parent, child in vacuous.edges)
    problems.extend(f"the noise of {name} makes no difference" for name in vacuous.noise)
    problems.extend(f"{name} never varies" for name in vacuous.constants)
    return problems


def unread_arguments(source: str) -> list[tuple[str, str]]:
    """Return (function, parameter) for each parameter that the body never names; `Unsupported` as `load_source`."""
    return [(name, parameter) for name, function in parse(source).functions.items() for parameter in function.unread]


def bundle_objections(bundle: Bundle, model: Model, source: str) -> list[str]:
    """Return the `objections` to a bundle's model, and its unread arguments."""
    unread = [f"{name} never reads {parameter}" for name, parameter in unread_arguments(source)]
    return [*objections(model, bundle.topology, size=bundle.v), *unread]
