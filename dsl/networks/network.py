"""Boolean networks of published files, and their trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from calibrant.dsl.errors import PoolError, RefusedError, readable_repr
from calibrant.dsl.networks import text_formats
from calibrant.dsl.networks.edge_tables import add_head_advice, headless_columns
from calibrant.dsl.networks.formulas import (
    MAX_TABLE_INPUTS,
    Decide,
    Function,
    NetworkError,
    Rules,
    align_tables,
    derive_function,
    formula_of,
    mentioned_names,
)
from calibrant.dsl.networks.xml_formats import read_xml, read_zginml
from calibrant.dsl.parse_limits import decode_text, read_bytes
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, EdgeTone, Picture, Pictured, PictureEdge, networkx_graph
from calibrant.dsl.text import Wording, plural

# --- Boolean networks read from published files: functions, proven signs, what the file declares, and comparison ------
MAX_COMPARED_INPUTS = 20
"""Inputs of two functions together, up to which they are compared row by row; beyond, by SAT."""
MAX_LINES = 1_000_000
"""Lines of a text file; a CRLF counts twice."""
MAX_WORK = 1 << 34
"""Operators times table rows, over all functions of a file: some seconds; the longest published formula takes less."""
SIGN_OPERATIONS = 64  # cost of the signs of a function, as operators: 4 for each of 16 inputs

# --- Files ------------------------------------------------------------------------------------------------------------
FORMATS: Final = ("bnet", "booleannet", "rules", "aeon", "sbml-qual", "ginml", "zginml")
_ENDINGS = {".bnet": "bnet", ".booleannet": "booleannet", ".aeon": "aeon", ".xml": "sbml-qual", ".sbml": "sbml-qual"}
_ENDINGS |= {".ginml": "ginml", ".zginml": "zginml"}


def recognize(content: bytes, name: str = "") -> str:
    """Return the format of a file, by content, else by the suffix of its name; "" if unknown."""
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if content.startswith(b"PK\x03\x04") and b"xl/workbook.xml" not in content:
        return "zginml"
    if head.startswith(b"<"):
        start = content[: 1 << 16]
        return "ginml" if b"<gxl" in start and b"<sbml" not in start else "sbml-qual"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    stranger = text_formats.describe_other_format(text)
    by_content = text_formats.recognize_text(text)
    if stranger is not None and by_content not in ("booleannet", "bnet"):
        return ""
    return by_content or ("" if stranger is not None else _ENDINGS.get(Path(name).suffix.lower(), ""))


def add_kind(error: RefusedError, content: bytes, own_kinds: tuple[str, ...]) -> RefusedError:
    """Return the error on a file, with what it looks like and what reads it if it is of another kind than its own.

    An error in the first line says nothing more, so its problem is left out.
    own_kinds: how descriptions of its own kind begin
    """
    try:
        text = decode_text(content, "")
    except PoolError:
        return error
    kind = text_formats.describe_other_format(text)
    if kind is None and (network_format := _proven_format(content)):
        kind = f"a network ({network_format})", "calibrant network FILE"
    if kind is None or kind[0].startswith(own_kinds):
        return error
    described = text_formats.looks_like(*kind)
    return error.with_problem(described if error.line in (None, 1) else f"{error.problem}; {described}")


def _proven_format(content: bytes) -> str:
    """Return the format of a network; "" for a text that its reader refuses: tables with commas may begin like bnet."""
    network_format = recognize(content)
    if network_format and not content.lstrip().startswith(b"<"):
        try:
            read_rules(content, "")
        except PoolError:
            return ""
    return network_format


def read_rules(content: bytes, file: str, chosen: str | None = None, names: str = "id") -> Rules:
    """Read a network file; `NetworkError` names the format that a file of another kind resembles.

    chosen: one of FORMATS, None to recognise it; names: `id`, or `name` for the names of SBML species
    """
    if chosen not in (None, *FORMATS):
        raise NetworkError(f"format {readable_repr(chosen)}; one of {', '.join(FORMATS)}", reason="format", file=file)
    if names not in ("id", "name"):
        raise NetworkError(f"names {readable_repr(names)}; id or name", reason="names", file=file)
    is_text = not content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"PK"))
    if is_text and content.count(b"\n") + content.count(b"\r") > MAX_LINES:
        raise NetworkError(f"over {MAX_LINES:,} lines; a network has fewer", reason="too-large", file=file)
    chosen = chosen or recognize(content, file)
    try:
        if chosen == "zginml":
            return read_zginml(content)
        if chosen in ("sbml-qual", "ginml"):
            return read_xml(content, names)
        text = _decode(content)
        if not chosen:
            raise _unrecognized(text)
        try:
            return text_formats.TEXT_READERS[chosen](text)
        except NetworkError as error:
            raise (add_head_advice(error, text) if chosen == "bnet" else error) from None
    except NetworkError as error:
        raise error.with_location(file=file) from None


def _decode(content: bytes) -> str:
    try:
        return decode_text(content, "")
    except PoolError as error:
        raise NetworkError(error.problem, reason="encoding") from None


def _unrecognized(text: str) -> NetworkError:
    stranger = text_formats.describe_other_format(text)
    if stranger is not None:
        return NetworkError(text_formats.looks_like(*stranger), reason="not-a-network")
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), None)
    if first is None:
        return NetworkError("no line of a node", reason="empty")
    problem = f"no network of a format that is read ({', '.join(FORMATS)}): it begins with {readable_repr(first)}"
    problem += "; take out lines that are no rules, or name one with --format"
    return add_head_advice(NetworkError(problem, reason="not-a-network"), text)


def edge_list_note(content: bytes, file: Path, network: Network) -> str:
    """Return the note on a text of lines `a, b` that was read as bnet but may be a list of edges; empty for others.

    Both forms are the same text if every target has one line, and in bnet b regulates a.
    """
    text = "" if network.format != "bnet" or file.suffix.lower() == ".bnet" else _decode(content)
    edges = [edge for edge in network.edges() if edge.source != edge.target] if headless_columns(text) else []
    if len(edges) < 2 or text_formats.bnet_separator(text):
        return ""
    source, target, _ = edges[0]
    return (
        f"read as bnet, in which the line `{target}, {source}` is an edge from {source} to {target}; a list of edges"
        " has a first line of names: source, target"
    )


# --- Networks ---------------------------------------------------------------------------------------------------------


class SignedEdge(NamedTuple):
    """An essential dependency; sign: `+`, `-` or `both`, proven from the function."""

    source: str
    target: str
    sign: str


class Contradiction(NamedTuple):
    """A sign that the file declares and its function refutes."""

    source: str
    target: str
    declared: str
    proven: str


class Difference(NamedTuple):
    """A node whose functions differ in two networks.

    row: the first row, over the inputs of both, in which they differ; first, second: the values there
    """

    node: str
    row: Mapping[str, int]
    first: int
    second: int


@dataclass(frozen=True)
class Comparison:
    """Differences of two networks.

    only_first, only_second: nodes of one network alone; differences: of common nodes
    """

    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def is_equal(self) -> bool:
        """Whether both have the same nodes and functions."""
        return not (self.only_first or self.only_second or self.differences)


@dataclass(frozen=True)
class Network(Pictured):
    """A Boolean network.

    nodes: all names, sorted; functions: node -> function, of nodes with a rule
    inputs: nodes that keep their value; no_rule: inputs without a rule in the file
    inessential: node -> names that its rule or the file lists as inputs and that have no effect
    declared: declared signs that the functions refute; declared_edges: (source, target) -> the file's word
    unspecified: nodes whose function the file leaves open; start: initial values in the file
    notes: keys of remarks on how the file was read
    """

    format: str
    nodes: tuple[str, ...]
    functions: Mapping[str, Function]
    inputs: tuple[str, ...]
    no_rule: tuple[str, ...]
    inessential: Mapping[str, tuple[str, ...]]
    declared: tuple[Contradiction, ...]
    unspecified: tuple[str, ...]
    declared_edges: Mapping[tuple[str, str], str]
    start: Mapping[str, int]
    notes: tuple[str, ...]
    file: str = ""

    def __repr__(self) -> str:
        return f"<Network: {len(self.nodes)} nodes, {sum(1 for _ in self.edges())} edges, {len(self.inputs)} inputs>"

    def edges(self) -> Iterator[SignedEdge]:
        """Yield the essential dependencies by target, then source, without self-loops of nodes that have no rule."""
        for target in self.nodes:
            function = self.functions.get(target)
            if function is not None:
                for source, sign in zip(function.inputs, function.signs, strict=True):
                    yield SignedEdge(source, target, sign)

    @cached_property
    def digest(self) -> str:
        """Digest of nodes and functions: independent of format and order; a function without a table is its formula."""
        hashed = sha256()
        for name in self.nodes:
            function = self.functions.get(name)
            if function is None or function.is_identity(name):
                hashed.update(repr((name, (name,), "01")).encode())
            else:
                hashed.update(repr((name, function.inputs, function.table or formula_of(function))).encode())
        return hashed.hexdigest()

    def require_functions(self) -> None:
        """Raise `NetworkError` if the file leaves functions open."""
        if self.unspecified:
            names = ", ".join(self.unspecified[:5]) + (", ..." if len(self.unspecified) > 5 else "")
            problem = f"no function of {names}: the file serves as a prior, not as a model"
            raise NetworkError(problem, reason="unspecified", name=self.unspecified[0], file=self.file)

    def function(self, name: str) -> Function:
        """Return the function of a node; an input without a rule keeps its value."""
        return self.functions.get(name) or Function((name,), "01", ("+",), (name,))

    def compare(self, second: Network) -> Comparison:
        """Return nodes of one network alone, and the first differing row of each common node whose functions differ."""
        self.require_functions()
        second.require_functions()
        common = sorted({*self.nodes} & {*second.nodes})
        differences = (self._difference(name, self.function(name), second.function(name)) for name in common)
        return Comparison(
            tuple(sorted({*self.nodes} - {*second.nodes})),
            tuple(sorted({*second.nodes} - {*self.nodes})),
            tuple(difference for difference in differences if difference is not None),
        )

    def _difference(self, name: str, first: Function, second: Function) -> Difference | None:
        """Return the first row in which two functions differ, or None."""
        if first.table is not None and (first.inputs, first.table) == (second.inputs, second.table):
            return None
        if len({*first.inputs, *second.inputs}) > MAX_COMPARED_INPUTS:
            return self._search_difference(name, first, second)
        names, bits, other_bits = align_tables(first, second)
        rows = bits ^ other_bits
        if not rows:
            return None
        row = (rows & -rows).bit_length() - 1
        values = {name: row >> i & 1 for i, name in enumerate(names)}
        return Difference(name, values, bits >> row & 1, other_bits >> row & 1)

    def _search_difference(self, name: str, first: Function, second: Function) -> Difference | None:
        problem = f"functions of {readable_repr(name)} have over {MAX_COMPARED_INPUTS} inputs together"
        raise NetworkError(problem, reason="wide", name=name, file=self.file)

    def to_bnet(self) -> str:
        """Return the network as bnet; a name that bnet lacks is written with `_`, and a comment line states it."""
        self.require_functions()
        return text_formats.bnet_text({name: self.function(name) for name in self.nodes})

    def to_sbml(self) -> str:
        """Return the network as SBML-qual: names in `name`, ids made of letters, digits and `_`."""
        self.require_functions()
        return text_formats.sbml_text(self.nodes, self.functions, self.start)

    def to_graphml(self) -> str:
        """Return nodes and signed edges as GraphML."""
        return text_formats.graphml_text(self.nodes, self.edges())

    def to_networkx(self) -> Any:
        """Return a directed graph with a `sign` on each edge; `MissingExtraError` without networkx."""
        edges = ((edge.source, edge.target, {"sign": edge.sign}) for edge in self.edges())
        return networkx_graph(((name, {}) for name in self.nodes), edges)

    def picture(self) -> Picture:
        """Return the graph with its signs, and the essential inputs of each node."""
        tones: dict[str, EdgeTone] = {"+": "", "-": "bad", "both": "open"}
        edges = tuple(PictureEdge(edge.source, edge.target, tones[edge.sign]) for edge in self.edges())
        rows = tuple((name, ", ".join(function.inputs)) for name, function in self.functions.items())[:MAX_PICTURE_ROWS]
        return Picture(
            f"Boolean network: {plural(len(self.nodes), 'nodes')}, {plural(len(edges), 'edges')}",
            (plural(len(self.inputs), "inputs"),),
            nodes=dict.fromkeys(self.nodes, ""),
            edges=edges,
            columns=("node", "depends on"),
            rows=rows,
            num_rows=len(self.functions),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "format": self.format,
            "nodes": list(self.nodes),
            "functions": {
                name: {"inputs": list(function.inputs), "table": function.table}
                for name, function in sorted(self.functions.items())
            },
            "edges": [list(edge) for edge in self.edges()],
            "inputs": list(self.inputs),
            "no_rule": list(self.no_rule),
            "unspecified": list(self.unspecified),
            "inessential": {name: list(names) for name, names in self.inessential.items()},
            "declared": [list(contradiction) for contradiction in self.declared],
            "start": dict(sorted(self.start.items())),
            "notes": list(self.notes),
            "digest": self.digest,
        }


def derive_fields(rules: Rules, decide: Decide) -> dict[str, Any]:
    """Return the fields of a `Network`, derived from the content of its file.

    decide: gives essential inputs and signs of formulas with more names than a table
    """
    _require_tables(rules)
    functions = {target: derive_function(nodes, decide) for target, nodes in rules.formulas.items()}
    inessential = {}
    for target, function in sorted(functions.items()):
        stated = mentioned_names(rules.formulas[target]) | rules.regulators.get(target, set())
        if names := sorted(stated.difference(function.inputs)):
            inessential[target] = tuple(names)
    no_rule = sorted(rules.names - functions.keys() - rules.unspecified)
    keeping = [name for name, function in functions.items() if function.is_identity(name)]
    notes = set(rules.notes)
    if len({name.lower() for name in rules.names}) < len(rules.names):
        notes.add("case")
    return {
        "format": rules.format,
        "nodes": tuple(sorted(rules.names)),
        "functions": functions,
        "inputs": tuple(sorted([*no_rule, *keeping])),
        "no_rule": tuple(no_rule),
        "inessential": inessential,
        "declared": tuple(sorted(_find_contradictions(rules, functions))),
        "unspecified": tuple(sorted(rules.unspecified)),
        "declared_edges": dict(rules.declared),
        "start": dict(rules.start),
        "notes": tuple(sorted(notes)),
    }


def _require_tables(rules: Rules) -> None:
    """Raise `NetworkError` if the tables of all functions together exceed MAX_WORK."""
    work = 0
    for target, nodes in rules.formulas.items():
        num_names = len(mentioned_names(nodes))
        work += (len(nodes) + SIGN_OPERATIONS) << num_names if num_names <= MAX_TABLE_INPUTS else 0
        if work > MAX_WORK:
            problem = "the tables of the functions take over 2**34 steps (operators times rows); write them shorter"
            raise NetworkError(problem, reason="wide", name=target)


def _find_contradictions(rules: Rules, functions: Mapping[str, Function]) -> Iterator[Contradiction]:
    for target, function in functions.items():
        for source, proven in zip(function.inputs, function.signs, strict=True):
            declared = rules.declared.get((source, target))
            if declared is None:
                if rules.states_all:
                    yield Contradiction(source, target, "", proven)
            elif rules.expected.get(declared, proven) != proven:
                yield Contradiction(source, target, declared, proven)


def read_file(path: Path) -> bytes:
    """Return the bytes of a network file; `NetworkError` if it cannot be read or is too large."""
    try:
        return read_bytes(path)
    except PoolError as error:
        raise NetworkError(error.problem, reason="unreadable", file=path.name) from None


def first_names(names: Sequence[str], limit: int = 10) -> str:
    """Return at most `limit` names for a message, with the number of all if there are more."""
    return ", ".join(names[:limit]) + (f", ... ({len(names)} in all)" if len(names) > limit else "")


# --- Trajectories of a network under clamps, and questions on further ones; reference semantics -----------------------
# All genes are updated synchronously. A state is a text with a character for each gene, in their order. A gene's
# functions are over its candidates; in the class `signed` they are monotone in each candidate as its sign states.
FunctionClass: TypeAlias = Literal["signed", "free"]
FUNCTION_CLASSES: Final = ("signed", "free")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """States in the order of time; clamps: genes that are held, whose functions have no reading there."""

    clamps: Mapping[str, int]
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Clamps and a start; steps: number of states to predict, None for the attractor."""

    clamps: Mapping[str, int]
    start: str
    steps: int | None


@dataclass(frozen=True, slots=True)
class TrajectoryTask:
    """The public part of an item: everything that a solver may read.

    genes: in the order of characters of states; candidates: gene -> (candidate, sign `+`, `-` or `both`)
    function_class: admissible functions of the candidates; wording: variant of the prompt's wording
    """

    genes: tuple[str, ...]
    candidates: Mapping[str, tuple[tuple[str, str], ...]]
    evidence: tuple[Trajectory, ...]
    question: Question
    function_class: FunctionClass = "signed"
    wording: Wording = "standard"

    @property
    def in_words(self) -> str:
        """The class of networks in words, for claims."""
        kind = "monotone as their signs say" if self.function_class == "signed" else "of any kind"
        num_candidates = sum(map(len, self.candidates.values()))
        return f"networks of {len(self.genes)} genes, functions of {num_candidates} candidates, {kind}"


def clamp_state(state: str, genes: Sequence[str], clamps: Mapping[str, int]) -> str:
    """Return a state with held genes set."""
    return "".join(str(clamps.get(gene, value)) for gene, value in zip(genes, state, strict=True))


def next_state(network: Network, genes: Sequence[str], state: str, clamps: Mapping[str, int]) -> str:
    """Return the state after one step. genes: all nodes, in the order of the characters of states."""
    values = {gene: int(value) for gene, value in zip(genes, state, strict=True)}
    after = (network.function(gene).value(values) if gene not in clamps else clamps[gene] for gene in genes)
    return "".join(map(str, after))


def simulate(
    network: Network, genes: Sequence[str], start: str, clamps: Mapping[str, int], steps: int
) -> tuple[str, ...]:
    """Return the start, with held genes set, and the states of `steps` updates."""
    states = [clamp_state(start, genes, clamps)]
    for _ in range(steps):
        states.append(next_state(network, genes, states[-1], clamps))
    return tuple(states)


def path_to_attractor(
    network: Network, genes: Sequence[str], start: str, clamps: Mapping[str, int]
) -> tuple[int, tuple[str, ...]]:
    """Return the number of steps before the attractor, and the attractor's states from the least one on."""
    step_of_state: dict[str, int] = {}
    state = clamp_state(start, genes, clamps)
    while state not in step_of_state:
        step_of_state[state] = len(step_of_state)
        state = next_state(network, genes, state, clamps)
    return step_of_state[state], rotate_cycle([*step_of_state][step_of_state[state] :])


def rotate_cycle(cycle: Sequence[str]) -> tuple[str, ...]:
    """Return the states of a cycle from the least one on."""
    first = min(range(len(cycle)), key=lambda i: cycle[i])
    return (*cycle[first:], *cycle[:first])


def readings(task: TrajectoryTask, gene: str) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield (values of a gene's candidates before, its value after) for each step that does not hold it."""
    position = task.genes.index(gene)
    sources = [task.genes.index(name) for name, _ in task.candidates[gene]]
    for trajectory in task.evidence:
        if gene not in trajectory.clamps:
            for before, after in zip(trajectory.states, trajectory.states[1:], strict=False):
                yield tuple(int(before[s]) for s in sources), int(after[position])


def class_violation(network: Network, task: TrajectoryTask) -> str:
    """Return why a network is not in the class of a task; empty if it is."""
    if set(network.nodes) != set(task.genes):
        strange = sorted(set(network.nodes) ^ set(task.genes))
        return f"{strange[0]} is {'no gene' if strange[0] in network.nodes else 'a gene without a function'}"
    for gene in task.genes:
        allowed, function = dict(task.candidates[gene]), network.function(gene)
        for source, sign in zip(function.inputs, function.signs, strict=True):
            if source not in allowed:
                return f"{gene} depends on {source}, which is no candidate of it"
            if task.function_class == "signed" and allowed[source] not in ("both", sign):
                return f"{gene} depends on {source} with sign {sign}, not {allowed[source]}"
    return ""


def fits(network: Network, task: TrajectoryTask) -> bool:
    """Return whether a network reproduces every state of the evidence from the one before."""
    return all(
        next_state(network, task.genes, before, trajectory.clamps) == after
        for trajectory in task.evidence
        for before, after in zip(trajectory.states, trajectory.states[1:], strict=False)
    )


def answer_question(network: Network, task: TrajectoryTask) -> tuple[str, ...]:
    """Return a network's answer: the states after the start, or those of the attractor from the least one on."""
    question = task.question
    if question.steps is None:
        return path_to_attractor(network, task.genes, question.start, question.clamps)[1]
    return simulate(network, task.genes, question.start, question.clamps, question.steps)[1:]
