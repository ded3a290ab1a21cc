"""Network files that are XML: SBML-qual and GINML, and GINML in a .zginml archive.

Elements and attributes are read by local name, whatever the prefix. Declared entities are refused, nothing external is
fetched, and nested elements are read without recursion.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Final
from xml.parsers import expat

from calibrant.dsl.errors import readable_repr
from calibrant.dsl.networks.formulas import (
    AND,
    GINML,
    MAX_NAME_CHARS,
    NOT,
    OR,
    XOR,
    NetworkError,
    Node,
    Nodes,
    Rules,
    mentioned_names,
    parse_formula,
    table_bits,
)
from calibrant.dsl.parse_limits import MAX_FILE_BYTES

# --- The tree of elements ---------------------------------------------------------------------------------------------
MAX_DEPTH = 100_000  # nested elements
MAX_ARCHIVE_BYTES = 1 << 23  # a directory of more entries takes seconds to read
MAX_ELEMENTS = 500_000  # the largest published model has 60,000
_IGNORED = {"notes", "annotation", "listOfLayouts", "nodevisualsetting", "edgevisualsetting"}


@dataclass(slots=True)
class Element:
    """An element of an XML file; text: its character data, for `ci` and `cn` only."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute, stripped."""
        return self.attributes.get(name, default).strip()

    def children_of_list(self, list_name: str, name: str) -> Iterator[Element]:
        """Yield the elements `name` directly inside children `list_name`."""
        return (
            element
            for part in self.children
            if part.name == list_name
            for element in part.children
            if element.name == name
        )

    def find(self, name: str) -> Iterator[Element]:
        """Yield the descendants `name`, in file order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            if element.name == name and element is not self:
                yield element
            waiting.extend(reversed(element.children))


class _TreeBuilder:
    """Handlers of expat that build a tree."""

    def __init__(self) -> None:
        self.root = Element("", {})
        self.open = [self.root]
        self.depth = self.num_elements = self.ignored_depth = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.num_elements += 1
        if self.depth > MAX_DEPTH or self.num_elements > MAX_ELEMENTS:
            limit = f"{MAX_DEPTH:,} elements in each other" if self.depth > MAX_DEPTH else f"{MAX_ELEMENTS:,} elements"
            raise NetworkError(f"over {limit}", reason="too-large")
        local = name.rpartition(":")[2]
        if self.ignored_depth or local in _IGNORED:
            self.ignored_depth += 1
            return
        element = Element(local, {key.rpartition(":")[2]: value for key, value in attributes.items()})
        self.open[-1].children.append(element)
        self.open.append(element)

    def end(self, name: str) -> None:
        self.depth -= 1
        if self.ignored_depth:
            self.ignored_depth -= 1
        else:
            self.open.pop()

    def text(self, text: str) -> None:
        element = self.open[-1]
        if element.name in ("ci", "cn") and not self.ignored_depth:
            if len(element.text) + len(text) > 10 * MAX_NAME_CHARS:
                raise NetworkError("a name or number in MathML is too long", reason="name")
            element.text += text


def parse_xml(content: bytes) -> Element:
    """Return the root element; `NetworkError` for declared entities and invalid XML."""
    builder = _TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.text
    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = _refuse_entities
    parser.ExternalEntityRefHandler = _refuse_entities
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise NetworkError(f"no XML: {expat.ErrorString(error.code)} in line {error.lineno}", reason="syntax") from None
    except (ValueError, LookupError) as error:  # unknown encodings, and Python's encodings that are not of text
        raise NetworkError(f"no XML: {readable_repr(str(error))}", reason="syntax") from None
    return builder.root.children[0]


def _refuse_entities(*_: object) -> int:
    problem = "the DOCTYPE declares entities, which are not expanded; save the file without them"
    raise NetworkError(problem, reason="entities")


def read_xml(content: bytes, names: str = "id") -> Rules:
    """Return the rules of an SBML-qual or GINML file.

    names: `id`, or `name` for the names of SBML species
    """
    root = parse_xml(content)
    if root.name == "sbml":
        return _SbmlReader(root, names).read()
    if root.name == "gxl":
        return _GinmlReader(root).read()
    problem = f"XML with the root {readable_repr(root.name)}; SBML-qual begins with <sbml>, GINML with <gxl>"
    raise NetworkError(problem, reason="not-a-network")


def read_zginml(content: bytes) -> Rules:
    """Return the rules of a .zginml archive; its stated size is checked before anything is unpacked."""
    path = "GINsim-data/regulatoryGraph.ginml"
    if len(content) > MAX_ARCHIVE_BYTES:
        raise NetworkError(f"an archive of more than {MAX_ARCHIVE_BYTES} bytes", reason="too-large")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entry = archive.getinfo(path)
            if entry.file_size > MAX_FILE_BYTES:
                raise NetworkError(f"{path} unpacks to more than {MAX_FILE_BYTES} bytes", reason="too-large")
            with archive.open(entry) as file:
                return read_xml(file.read(MAX_FILE_BYTES + 1))
    except KeyError:
        raise NetworkError(f"a zip without {path}: no .zginml archive", reason="not-a-network") from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise NetworkError(f"no zip archive that can be read: {readable_repr(str(error))}", reason="syntax") from None


def _add_node(rules: Rules, name: str) -> None:
    if not name or len(name) > MAX_NAME_CHARS:
        raise NetworkError(f"an id of 1 to {MAX_NAME_CHARS} characters is missing", reason="name")
    rules.names.add(name)
    if len(rules.names) > rules.max_nodes:
        raise NetworkError(f"over {rules.max_nodes:,} nodes", reason="too-large")


def _parse_level(text: str, role: str, name: str) -> int:
    """Parse a level; `NetworkError` unless it is a whole number."""
    if re.fullmatch(r"[+]?[0-9]{1,6}", text) is None:
        raise NetworkError(
            f"{role} {readable_repr(text)} of {readable_repr(name)} is no level", reason="syntax", name=name
        )
    return int(text)


def _multi_level_error(name: str, role: str) -> NetworkError:
    problem = (
        f"{readable_repr(name)} has {role} above 1; models of several levels are not read, convert them to Boolean ones"
    )
    return NetworkError(problem, reason="multi-level", name=name)


def _overlap_error(name: str, parts: Iterable[Nodes], inputs: Iterable[str]) -> NetworkError:
    """Return the error of terms for 0 and for 1 that both hold, with the first row in which they do."""
    row = ", ".join(f"{source} = {value}" for source, value in _common_row(list(parts), sorted(inputs)))
    problem = f"terms for 0 and for 1 of {readable_repr(name)} hold together" + (f", for {row}" if row else "")
    return NetworkError(problem, reason="overlap", name=name)


def _common_row(parts: list[Nodes], inputs: list[str]) -> list[tuple[str, int]]:
    rows = table_bits(join(parts, AND), inputs)
    row = (rows & -rows).bit_length() - 1
    return [(source, row >> i & 1) for i, source in enumerate(inputs)]


def join(parts: Iterable[Nodes], operator: Node) -> Nodes:
    """Return parts joined by a binary operator, False for none."""
    nodes: list[Node] = []
    for index, part in enumerate(parts):
        nodes.extend(part)
        if index:
            nodes.append(operator)
    return tuple(nodes) or (False,)


def combine_levels(name: str, terms: list[tuple[int, Nodes]], default: int) -> Nodes:
    """Return the formula of terms (level, condition); `NetworkError` if terms of two levels hold in one row."""
    ones, zeros = (join([nodes for level, nodes in terms if level == value], OR) for value in (1, 0))
    if default:
        nodes: Nodes = (*zeros, NOT)
    else:
        nodes = ones
    if (False,) not in (ones, zeros):
        inputs = mentioned_names(ones) | mentioned_names(zeros)
        if len(inputs) > MAX_OVERLAP_INPUTS:
            problem = f"terms for 0 and for 1 of {readable_repr(name)} over more than {MAX_OVERLAP_INPUTS} species"
            raise NetworkError(problem, reason="overlap", name=name)
        if table_bits((*ones, *zeros, AND), sorted(inputs)):
            raise _overlap_error(name, (ones, zeros), inputs)
    return nodes


MAX_OVERLAP_INPUTS = 20  # names of terms whose overlap is checked row by row

# --- SBML-qual --------------------------------------------------------------------------------------------------------
_RELATIONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "eq": eq,
    "neq": ne,
    "lt": lt,
    "leq": le,
    "gt": gt,
    "geq": ge,
}
_ALLOWED = "and, or, xor, not, implies, relations of a species and a number"
_MIRRORED = {"lt": "gt", "leq": "geq", "gt": "lt", "geq": "leq"}
_JOINS = {"and": (AND, True), "or": (OR, False), "xor": (XOR, False)}


class _SbmlReader:
    """Reader of SBML level 3 with the package qual."""

    def __init__(self, root: Element, names: str) -> None:
        self.root = root
        self.rules = Rules("sbml-qual", expected={"positive": "+", "negative": "-", "dual": "both"})
        self.species = [element for part in root.find("listOfQualitativeSpecies") for element in part.children]
        self.species = [element for element in self.species if element.name == "qualitativeSpecies"]
        self.names = {element.get("id"): element.get("id") for element in self.species}
        self.uses_names = names == "name"

    def read(self) -> Rules:
        """Return the rules of the model."""
        if not self.species:
            problem = "no qualitative species: a kinetic model or an empty one, no Boolean network"
            raise NetworkError(problem, reason="not-a-network")
        transitions = [
            t for part in self.root.find("listOfTransitions") for t in part.children if t.name == "transition"
        ]
        self._check_levels(transitions)
        if self.uses_names:
            self._take_names()
        for element in self.species:
            name = self.names[element.get("id")]
            if name in self.rules.names:
                raise NetworkError(f"{readable_repr(name)} occurs twice", reason="duplicate-target", name=name)
            _add_node(self.rules, name)
            if "initialLevel" in element.attributes:
                self.rules.start[name] = _parse_level(element.get("initialLevel"), "initialLevel", name)
        for transition in transitions:
            self._read_transition(transition)
        return self.rules

    def _check_levels(self, transitions: Iterable[Element]) -> None:
        """Raise `NetworkError` for the first species, in file order, with a level above 1."""
        levels: dict[str, str] = {}
        for element in self.species:
            for role in ("maxLevel", "initialLevel"):
                if _parse_level(element.get(role, "1"), role, element.get("id")) > 1:
                    levels.setdefault(element.get("id"), "a maxLevel" if role == "maxLevel" else "an initialLevel")
        for transition in transitions:
            outputs = [e.get("qualitativeSpecies") for e in transition.children_of_list("listOfOutputs", "output")]
            for element in transition.children_of_list("listOfInputs", "input"):
                if (
                    _parse_level(
                        element.get("thresholdLevel", "1"), "thresholdLevel", element.get("qualitativeSpecies")
                    )
                    > 1
                ):
                    levels.setdefault(element.get("qualitativeSpecies"), "a thresholdLevel")
            for part in transition.children:
                for term in part.children:
                    if (
                        "resultLevel" in term.attributes
                        and _parse_level(term.get("resultLevel"), "resultLevel", outputs[0] if outputs else "") > 1
                    ):
                        for output in outputs:
                            levels.setdefault(output, "a resultLevel")
        strange = next((e.get("id") for e in self.species if e.get("id") in levels), next(iter(levels), None))
        if strange is not None:
            raise _multi_level_error(strange, levels[strange])

    def _take_names(self) -> None:
        names = [element.get("name") for element in self.species]
        for element in self.species:
            name = element.get("name")
            if not name or names.count(name) > 1:
                problem = (
                    f"species {readable_repr(element.get('id'))} has "
                    + (f"the name {readable_repr(name)} of another" if name else "no name")
                    + "; use ids"
                )
                raise NetworkError(problem, reason="name", name=element.get("id"))
            self.names[element.get("id")] = name

    def _species_name(self, identifier: str) -> str:
        if identifier not in self.names:
            problem = f"{readable_repr(identifier)} is no qualitative species"
            raise NetworkError(problem, reason="unknown-name", name=identifier)
        return self.names[identifier]

    def _read_transition(self, transition: Element) -> None:
        thresholds: dict[str, int] = {}
        inputs: dict[str, str] = {}
        for element in transition.children_of_list("listOfInputs", "input"):
            source = self._species_name(element.get("qualitativeSpecies"))
            if element.get("transitionEffect") == "consumption":
                raise NetworkError(
                    f"{readable_repr(source)} is consumed; consumption is not read", reason="consumption", name=source
                )
            inputs[source] = element.get("sign")
            if element.get("id"):
                thresholds[element.get("id")] = int(element.get("thresholdLevel", "1"))
        outputs = [self._read_output(element) for element in transition.children_of_list("listOfOutputs", "output")]
        terms, default = self._read_terms(transition, thresholds, outputs)
        for target in outputs:
            if target in self.rules.formulas or target in self.rules.unspecified:
                problem = f"{readable_repr(target)} is the output of two transitions"
                raise NetworkError(problem, reason="duplicate-target", name=target)
            self.rules.regulators[target] = set(inputs).union(*(mentioned_names(nodes) for _, nodes in terms))
            self.rules.declared |= {(source, target): sign for source, sign in inputs.items() if sign}
            if default is not None:
                self.rules.formulas[target] = combine_levels(target, terms, default)
            elif inputs:
                self.rules.unspecified.add(target)

    def _read_output(self, element: Element) -> str:
        target = self._species_name(element.get("qualitativeSpecies"))
        if element.get("transitionEffect") == "production":
            raise NetworkError(
                f"{readable_repr(target)} is produced; production is not read", reason="production", name=target
            )
        return target

    def _read_terms(
        self, transition: Element, thresholds: dict[str, int], outputs: list[str]
    ) -> tuple[list[tuple[int, Nodes]], int | None]:
        """Return (level, formula) of the terms, and the default level, None without terms."""
        name = outputs[0] if outputs else transition.get("id")
        terms = []
        for term in transition.children_of_list("listOfFunctionTerms", "functionTerm"):
            maths = [part for part in term.children if part.name == "math"]
            if len(maths) != 1 or len(maths[0].children) != 1:
                raise NetworkError(f"a term of {readable_repr(name)} has no formula", reason="syntax")
            level = _parse_level(term.get("resultLevel", "1"), "resultLevel", name)
            try:
                nodes = self._read_formula(maths[0].children[0], thresholds)
            except NetworkError as error:
                raise error.with_location(field=f"formula of {readable_repr(name)}") from None
            terms.append((level, nodes))
        defaults = [*transition.children_of_list("listOfFunctionTerms", "defaultTerm")]
        if not defaults and terms:
            raise NetworkError(f"{readable_repr(name)} has terms and no default term", reason="syntax")
        return terms, _parse_level(defaults[0].get("resultLevel", "0"), "resultLevel", name) if defaults else None

    def _read_formula(self, root: Element, thresholds: dict[str, int]) -> Nodes:
        """Return the nodes of a MathML expression."""
        nodes: list[Node] = []
        waiting: list[Element | Node] = [root]  # stack: operators lie below their arguments
        while waiting:
            item = waiting.pop()
            if not isinstance(item, Element):
                nodes.append(item)
            elif item.name in ("true", "false"):
                nodes.append(item.name == "true")
            elif item.name == "ci":
                nodes.append(self._species_name(item.text.strip()))
            elif item.name == "apply" and item.children:
                waiting.extend(reversed(self._postfix_parts(item, thresholds)))
            else:
                problem = f"<{item.name}> in a formula; allowed: {_ALLOWED}"
                raise NetworkError(problem, reason="syntax", name=item.name)
        return tuple(nodes)

    def _postfix_parts(self, item: Element, thresholds: dict[str, int]) -> list[Element | Node]:
        """Return the parts of an application in postfix order."""
        head, *arguments = item.children
        if head.name in _RELATIONS and len(arguments) == 2:
            return [*self._read_relation(head.name, arguments, thresholds)]
        if head.name in _JOINS:
            operator, neutral = _JOINS[head.name]
            if not arguments:
                return [neutral]
            return [arguments[0], *(part for argument in arguments[1:] for part in (argument, operator))]
        if head.name == "not" and len(arguments) == 1:
            return [arguments[0], NOT]
        if head.name == "implies" and len(arguments) == 2:
            return [arguments[0], NOT, arguments[1], OR]
        problem = f"<{head.name}> with {len(arguments)} arguments in a formula; allowed: {_ALLOWED}"
        raise NetworkError(problem, reason="syntax", name=head.name)

    def _read_relation(self, relation: str, arguments: list[Element], thresholds: dict[str, int]) -> Nodes:
        """Return the nodes of a relation between a species and a number or the id of an input."""
        first, second = arguments
        if not self._is_species(first):
            first, second, relation = second, first, _MIRRORED.get(relation, relation)
        number = None
        if self._is_species(first) and not self._is_species(second):
            number = self._read_number(second, thresholds)
        if number is None:
            texts = " and ".join(readable_repr(part.text.strip() or f"<{part.name}>") for part in arguments)
            unknown = next(
                (
                    p.text.strip()
                    for p in arguments
                    if p.name == "ci" and p.text.strip() not in {*self.names, *thresholds}
                ),
                None,
            )
            reason = "syntax" if unknown is None else "unknown-name"
            strange = unknown or next((part.name for part in arguments if part.name not in ("ci", "cn")), None)
            raise NetworkError(f"a relation between {texts}; a species and a number", reason=reason, name=strange)
        holds = _RELATIONS[relation]
        values = holds(0, number), holds(1, number)
        name = self.names[first.text.strip()]
        if values[0] == values[1]:
            # the name stays in the formula, so that it is listed as inessential
            return (name, name, NOT, OR) if values[0] else (name, name, NOT, AND)
        return (name,) if values[1] else (name, NOT)

    def _is_species(self, element: Element) -> bool:
        return element.name == "ci" and element.text.strip() in self.names

    def _read_number(self, element: Element, thresholds: dict[str, int]) -> float | None:
        text = element.text.strip()
        if element.name == "ci":
            return thresholds.get(text)
        is_plain = element.name == "cn" and not element.children
        return float(text) if is_plain and re.fullmatch(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?", text) else None


# --- GINML ------------------------------------------------------------------------------------------------------------


class _GinmlReader:
    """Reader of GINsim's regulatory graphs."""

    def __init__(self, root: Element) -> None:
        self.graphs = list(root.find("graph"))
        # the DTD of the format makes edges without a sign positive
        self.rules = Rules("ginml", expected={"positive": "+", "": "+", "negative": "-", "dual": "both"})
        self.edges: dict[str, tuple[str, str]] = {}

    def read(self) -> Rules:
        """Return the rules of the graph."""
        if not self.graphs or self.graphs[0].get("class", "regulatory") != "regulatory":
            raise NetworkError("no regulatory graph in it", reason="not-a-network")
        nodes = list(self.graphs[0].find("node"))
        if not nodes:
            raise NetworkError("the graph has no node", reason="empty")
        for element in nodes:
            name = element.get("id")
            if name in self.rules.names:
                raise NetworkError(f"node {readable_repr(name)} occurs twice", reason="duplicate-target", name=name)
            _add_node(self.rules, name)
        self._check_levels(nodes)
        for element in self.graphs[0].find("edge"):
            self._read_edge(element)
        for element in nodes:
            self._read_node(element)
        return self.rules

    def _check_levels(self, nodes: Iterable[Element]) -> None:
        for element in nodes:
            name = element.get("id")
            levels = [("maxvalue", element.get("maxvalue", "1")), ("basevalue", element.get("basevalue", "0"))]
            levels += [
                ("a value", part.get("val", "1")) for part in element.children if part.name in ("value", "parameter")
            ]
            for role, text in levels:
                if _parse_level(text, role, name) > 1:
                    raise _multi_level_error(name, role)

    def _read_edge(self, element: Element) -> None:
        source, target = element.get("from"), element.get("to")
        for name in (source, target):
            if name not in self.rules.names:
                raise NetworkError(
                    f"an edge of {readable_repr(name)}, which is no node", reason="unknown-name", name=name
                )
        if _parse_level(element.get("minvalue", "1"), "minvalue", source) > 1:
            raise _multi_level_error(source, "an edge with a minvalue")
        self.edges[element.get("id") or f"{source}:{target}"] = source, target
        self.rules.declared[source, target] = element.get("sign")
        self.rules.regulators.setdefault(target, set()).add(source)

    def _read_node(self, element: Element) -> None:
        name = element.get("id")
        terms = [*self._read_parameters(element, name), *self._read_expressions(element, name)]
        if element.get("input").lower() == "true":
            if terms:
                self.rules.notes.add("input-with-function")
            self.rules.regulators.pop(name, None)
            for source, target in [edge for edge in self.rules.declared if edge[1] == name]:
                del self.rules.declared[source, target]
            return
        default = _parse_level(element.get("basevalue", "0"), "basevalue", name)
        self.rules.regulators.setdefault(name, set()).update(*(mentioned_names(nodes) for _, nodes in terms))
        self.rules.formulas[name] = combine_levels(name, terms, default)

    def _read_parameters(self, element: Element, name: str) -> Iterator[tuple[int, Nodes]]:
        """Yield (level, formula) of parameters, each a set of active edges."""
        into = {identifier: source for identifier, (source, target) in self.edges.items() if target == name}
        sources = sorted(set(into.values()))
        for part in element.children:
            if part.name != "parameter":
                continue
            active = part.get("idActiveInteractions").split()
            strange = next((identifier for identifier in active if identifier not in into), None)
            if strange is not None:
                problem = f"{readable_repr(strange)} is no edge into {readable_repr(name)}"
                raise NetworkError(problem, reason="unknown-name", name=strange)
            present = {into[identifier] for identifier in active}
            literals: list[Nodes] = [(source,) if source in present else (source, NOT) for source in sources]
            yield _parse_level(part.get("val", "1"), "a value", name), join(literals, AND) if literals else (True,)

    def _read_expressions(self, element: Element, name: str) -> Iterator[tuple[int, Nodes]]:
        """Yield (level, formula) of expressions."""
        for part in element.children:
            if part.name != "value":
                continue
            level = _parse_level(part.get("val", "1"), "a value", name)
            for expression in part.find("exp"):
                try:
                    nodes = parse_formula(expression.get("str"), GINML, None, self.rules, targets=self.rules.names)
                except NetworkError as error:
                    raise error.with_location(field=f"formula of {readable_repr(name)}") from None
                strange = sorted(mentioned_names(nodes) - self.rules.names)
                if strange:
                    problem = f"{readable_repr(strange[0])} in the formula of {readable_repr(name)} is no node"
                    raise NetworkError(problem, reason="unknown-name", name=strange[0])
                yield level, nodes
