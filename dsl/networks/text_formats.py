"""Text formats of networks: readers of bnet, booleannet, rules and aeon; writers of bnet, SBML-qual and GraphML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import TypeAlias

from calibrant.dsl.errors import readable_repr
from calibrant.dsl.formulas.formula import Apply
from calibrant.dsl.networks.edge_tables import has_head, read_sign
from calibrant.dsl.networks.formulas import (
    AEON,
    BNET,
    MAX_NAME_CHARS,
    WORDED,
    Count,
    Function,
    Grammar,
    NetworkError,
    Node,
    Nodes,
    Rules,
    cover,
    formula_of,
    mentioned_names,
    parse_formula,
)
from calibrant.dsl.parse_limits import split_lines

# --- Recognition ------------------------------------------------------------------------------------------------------
_AEON_LINE = re.compile(r"\s*(?:[A-Za-z0-9_{}]+\s*-[>|?]\??\s*[A-Za-z0-9_{}]+\s*$|\$[A-Za-z0-9_{}]+\s*:)")
_UPDATE = re.compile(r"\*\s*=")
_JSON = re.compile(r"[\[{]+\s*[\"\]}]")
_VALUES = {"0", "1", "-", ""}
_EDGE = re.compile(r"[^\s,=]+\s+[+-]?1\s+[^\s,=]+", re.I)


def _is_series(lines: Sequence[str]) -> bool:
    heads = re.split("[,;\t]", lines[0].lower())
    cells = re.split("[,;\t]", lines[1]) if len(lines) > 1 else []
    return len(cells) > 1 and cells[-1] in ("0", "1", "NA", "") and "series" in heads


def _begins_with_edge(lines: Sequence[str]) -> bool:
    """Return whether the first line is an edge of a SIF with a number or a word for its sign; arrows are aeon's too."""
    first = next((line for line in lines if line and not line.startswith("#")), "")
    fields = first.split()
    if _EDGE.match(first) is not None:
        return True
    try:
        return len(fields) == 3 and fields[1].isalpha() and bool(read_sign(fields[1], 1))
    except NetworkError:
        return False


def _is_headed_table(lines: Sequence[str]) -> bool:
    filled = [line for line in lines if line and not line.startswith("#")]
    try:
        return len(filled) > 1 and has_head(filled[0])
    except NetworkError:
        return False


def _ends_in_number(lines: Sequence[str]) -> bool:
    """Return whether a line is `... = ... | 1 # ...`, as CellNetAnalyzer writes reactions."""
    parts = (line.rpartition("|") for line in lines)
    return any("=" in head and tail.strip() and not tail.strip().strip("#0123456789.") for head, _, tail in parts)


def _has_arrow_formula(lines: Sequence[str]) -> bool:
    parts = (line.rpartition(arrow) for line in lines for arrow in ("->", "-|"))
    return any(
        ("&" in body or "^" in body) and "," not in body and "=" not in body and len(target.split()) == 1
        for body, _, target in parts
    )


def _is_headed_truth_table(lines: Sequence[str]) -> bool:
    """Return whether all lines below the first have the same cells of 0, 1, - or nothing, at least three of them."""
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    width = len(rows[0]) if len(rows) > 1 else 0
    return width > 2 and all(len(row) == width and {cell.strip(' "') for cell in row} <= _VALUES for row in rows[1:])


def _is_truth_table(lines: Sequence[str]) -> bool:
    """Return whether the first line, or the one after a header, has only 0, 1 and -."""
    filled = [line for line in lines if line and not line.startswith("#")][:2]
    return len(filled) > 1 and any(line[0] in "01" and not line.strip("01- \t") for line in filled)


def _is_implicant_table(lines: Sequence[str]) -> bool:
    """Return whether the first lines are those of a table of implicants, as `A B : C` and `1-:1`."""
    head, row = (*(line for line in lines if line and not line.startswith("#")), "", "")[:2]
    inputs, colon, value = row.partition(":")
    return head.count(":") == 1 and bool(colon) and not inputs.strip("0123456789- \t") and value.strip().isdecimal()


def _any_line(pattern: str) -> Callable[[Sequence[str]], bool]:
    compiled = re.compile(pattern, re.I)
    return lambda lines: any(map(compiled.match, lines))


# (description, program that reads it, predicate). Predicates get stripped lines and are linear in the text: a pattern
# over the whole text could backtrack for hours.
_OtherFormat: TypeAlias = tuple[str, str, Callable[[Sequence[str]], bool]]
_TABLES: tuple[_OtherFormat, ...] = (
    (
        "MIDAS measurements",
        "calibrant family PRIOR FILE",
        lambda lines: re.match(r"\"?(?:ID|TR|DA|DV):", next(filter(None, lines), ""), re.I) is not None,
    ),
    ("a table of series", "calibrant family PRIOR FILE", _is_series),
    ("a prior network as SIF", "calibrant family FILE DATA", _begins_with_edge),
    ("a table of edges", "calibrant family FILE DATA", _is_headed_table),
    (
        "BMA JSON",
        "BioModelAnalyzer",
        lambda lines: (
            next(filter(None, lines), "").startswith("{")
            and any('"Model"' in line or '"Variables"' in line for line in lines)
        ),
    ),
    ("a JSON text", "no reader here", lambda lines: _JSON.match("".join(lines[:9])) is not None),
    (
        "a DOT graph",
        "Graphviz; write its edges as source,target,sign",
        _any_line(r"(?:strict\s+)?(?:di)?graph\b[^,=]*\{"),
    ),
    (
        "a list of logic models",
        "calibrant family PRIOR DATA --of FILE",
        lambda lines: "<-" in lines[0] and _is_headed_truth_table(lines),
    ),
    ("a table of values", "calibrant fit FILE --target NAME", _is_headed_truth_table),
)
# formats that are refused; the first match counts
_OTHER_FORMATS: tuple[_OtherFormat, ...] = (
    *_TABLES,
    ("MaBoSS (`Node A {`)", "MaBoSS; its rates are not read here", _any_line(r"node\s+[^\s{=,:]+\s*(?:\{|$)")),
    ("BLIF", "ABC or SIS", _any_line(r"\.(?:model|names|latch)\b")),
    ("cnet", "bns or BooleanNet; bioLQM converts it to bnet", _any_line(r"\.v\s+[0-9]+")),
    ("a PLA truth table", "calibrant fit FILE.pla", _any_line(r"\.(?:i|o|ilb|ob|type)\b")),
    ("CellNetAnalyzer", "CellNetAnalyzer", _ends_in_number),
    ("boolSim (`A&^C -> B`)", "boolSim; bioLQM converts it to bnet", _has_arrow_formula),
    ("a truth table", "bioLQM; calibrant fit reads tables of 0 and 1", _is_truth_table),
    ("implicant tables", "bioLQM, which converts them to bnet", _is_implicant_table),
)


def recognize_text(text: str) -> str:
    """Return the format of a text by its content, "" if unknown."""
    lines = [line for line in split_lines(text) if line.strip() and not line.lstrip().startswith("#")]
    if not lines or _find_format(text, _TABLES) is not None:
        return ""
    if any(_UPDATE.search(line.partition("#")[0]) for line in lines):
        return "booleannet"
    if any(_AEON_LINE.match(line) for line in lines):
        return "aeon"
    if bnet_separator(text) or all(_has_comma_first(line) for line in lines):
        return "bnet"
    return "rules" if all("=" in line for line in lines) and describe_other_format(text) is None else ""


def _has_comma_first(line: str) -> bool:
    """Return whether a line has a comma and no `=` before it, as `target, formula` in bnet."""
    target, comma, _ = line.partition(",")
    return bool(comma) and "=" not in target


def describe_other_format(text: str) -> tuple[str, str] | None:
    """Return (description, program that reads it) of a text in an unsupported format; None if unknown."""
    return _find_format(text, _OTHER_FORMATS)


def looks_like(description: str, reader: str) -> str:
    return f"it looks like {description}; what reads it: {reader}"


def _find_format(text: str, formats: Sequence[_OtherFormat]) -> tuple[str, str] | None:
    lines = [line.strip() for line in split_lines(text[: 1 << 20])]
    return next(((description, reader) for description, reader, matches in formats if matches(lines)), None)


# --- Readers ----------------------------------------------------------------------------------------------------------


def _content_lines(text: str, *, comment_behind: bool) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment."""
    for line_number, line in enumerate(split_lines(text), 1):
        content = line.partition("#")[0] if comment_behind else "" if line.lstrip().startswith("#") else line
        if content.strip():
            yield line_number, content.strip()


def _add_name(rules: Rules, name: str, line: int | None) -> None:
    rules.names.add(name)
    if len(rules.names) > rules.max_nodes:
        raise NetworkError(f"over {rules.max_nodes:,} nodes", reason="too-large", line=line)


def _add_rule(rules: Rules, target: str, nodes: Nodes, line: int | None) -> None:
    rules.formulas[target] = nodes
    _add_name(rules, target, line)
    for name in mentioned_names(nodes):
        _add_name(rules, name, line)


def _check_target(target: str, letters: str, line: int) -> None:
    if not target:
        raise NetworkError("a target is missing", reason="syntax", line=line)
    if len(target) > MAX_NAME_CHARS or not target.isprintable() or re.fullmatch(rf"{letters}+", target) is None:
        allowed = f"no blanks, quotes or operators, to {MAX_NAME_CHARS} characters"
        problem = f"{readable_repr(target)} is no name of a target: {allowed}"
        raise NetworkError(problem, reason="name", line=line)


def _require_content(rules: Rules, example: str) -> Rules:
    if not rules.names:
        raise NetworkError(f"no line of a node; expected: {example}", reason="empty")
    return rules


def _check_new(rules: Mapping[str, object], target: str, line: int) -> None:
    if target in rules:
        problem = f"{readable_repr(target)} has a second function; a node has one"
        raise NetworkError(problem, reason="duplicate-target", line=line, name=target)


def _parse_all(rules: Rules, texts: Mapping[str, tuple[int, str]], grammar: Grammar) -> None:
    """Add the rules of formula texts; parsed at the end, because parsing depends on the names of targets."""
    for target, (line, formula) in texts.items():
        nodes = parse_formula(formula, grammar, line, rules, targets=texts)
        _add_rule(rules, target, nodes, line)


# BoolNet takes two words for the second column
_BNET_HEADS = [["targets", word, *third] for word in ("factors", "functions") for third in ([], ["probabilities"])]


def _split_head(line: str, separator: str) -> list[str]:
    return [part.strip().lower() for part in line.split(separator)]


def bnet_separator(text: str) -> str:
    """Return what separates the columns that the first line of a bnet text names; "" if it names none.

    BoolNet takes other characters than the comma, and spreadsheets write semicolons or tabs.
    """
    _, first = next(_content_lines(text, comment_behind=True), (0, ""))
    return next((mark for mark in ",;\t" if _split_head(first, mark) in _BNET_HEADS), "")


def read_bnet(text: str, max_nodes: int = 20_000) -> Rules:
    """Return the rules of a bnet text, with lines `target, formula`."""
    rules = Rules("bnet", max_nodes=max_nodes)
    texts: dict[str, tuple[int, str]] = {}
    is_probabilistic = is_headed = False
    separator = bnet_separator(text) or ","
    for line, content in _content_lines(text, comment_behind=True):
        target, *formulas = (part.strip() for part in content.split(separator, 1))
        heads = _split_head(content, separator)
        if not texts and not is_headed and heads in _BNET_HEADS:
            is_headed, is_probabilistic = True, len(heads) == 3
            continue
        if not formulas:
            missing = "comma" if separator == "," else f"{readable_repr(separator)}, as in the first line"
            raise NetworkError(f"no {missing}; a line is: target, formula", reason="syntax", line=line)
        _check_target(target, BNET.letters, line)
        if is_probabilistic:
            formulas = [_certain_formula(formulas[0], target, line, separator)]
            if target in texts:
                problem = f"{readable_repr(target)} has several functions; probabilistic networks are not read"
                raise NetworkError(problem, reason="probabilistic", line=line, name=target)
        _check_new(texts, target, line)
        texts[target] = line, formulas[0]
    _parse_all(rules, texts, BNET)
    return _require_content(rules, "target, formula")


def _certain_formula(formula: str, target: str, line: int, separator: str) -> str:
    """Return a formula without its last field, the probability; `NetworkError` unless that is 1."""
    *bodies, probability = (part.strip() for part in formula.rsplit(separator, 1))
    if not bodies or re.fullmatch(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", probability) is None:
        raise NetworkError("a probability is missing behind the formula", reason="syntax", line=line)
    if float(probability) != 1:
        problem = f"{readable_repr(target)} has probability {probability}; probabilistic networks are not read"
        raise NetworkError(problem, reason="probabilistic", line=line, name=target)
    return bodies[0]


_RANK = re.compile(r"([0-9]+)\s*:\s*")


def read_booleannet(text: str) -> Rules:
    """Return the rules of a booleannet text: `NAME *= formula`, and starts; ranks are dropped with a note."""
    rules = Rules("booleannet")
    texts: dict[str, tuple[int, str]] = {}
    for line, content in _content_lines(text, comment_behind=True):
        ranked = _RANK.match(content)
        if ranked is not None:
            content = content[ranked.end() :]
            rules.notes.add("ranks")
        target, *formulas = (part.strip() for part in _UPDATE.split(content, maxsplit=1))
        if not formulas:
            _read_start(rules, content, line)
            continue
        _check_target(target, WORDED.letters, line)
        _check_new(texts, target, line)
        texts[target] = line, formulas[0]
    _parse_all(rules, texts, WORDED)
    return _require_content(rules, "NAME *= formula")


def _read_start(rules: Rules, content: str, line: int) -> None:
    """Read a line of initial values such as `A = B = True`."""
    *names, value = (part.strip() for part in content.split("="))
    if value.startswith("("):
        raise NetworkError(
            "a start of several numbers: piecewise-linear models are not read", reason="tuples", line=line
        )
    if not names or value.lower() not in ("true", "false", "random", "0", "1"):
        raise NetworkError("expected: NAME *= formula, or NAME = True, False or Random", reason="syntax", line=line)
    for name in names:
        _check_target(name, WORDED.letters, line)
        _add_name(rules, name, line)
        if value.lower() == "random":
            rules.notes.add("random-start")
        else:
            rules.start[name] = int(value.lower() in ("true", "1"))


def read_rules(text: str) -> Rules:
    """Return the rules of a text with lines `NAME = formula`."""
    rules = Rules("rules")
    texts: dict[str, tuple[int, str]] = {}
    for line, content in _content_lines(text, comment_behind=True):
        target, equals, formula = (part.strip() for part in content.partition("="))
        if not equals:
            raise NetworkError("no =; a line is: NAME = formula", reason="syntax", line=line)
        _check_target(target, WORDED.letters, line)
        _check_new(texts, target, line)
        texts[target] = line, formula
    _parse_all(rules, texts, WORDED)
    return _require_content(rules, "NAME = formula")


_REGULATION = re.compile(r"([A-Za-z0-9_{}]+)\s*(-[>|?]\??)\s*([A-Za-z0-9_{}]+)")
_FUNCTION = re.compile(r"\$\s*([A-Za-z0-9_{}]+)\s*:(.*)", re.DOTALL)


def read_aeon(text: str) -> Rules:
    """Return the rules of an aeon text: regulations, and functions of some or all variables."""
    rules = Rules("aeon", expected={"->": "+", "->?": "+", "-|": "-", "-|?": "-"}, states_all=True)
    texts: dict[str, tuple[int, str]] = {}
    for line, content in _content_lines(text, comment_behind=False):
        function = _FUNCTION.fullmatch(content)
        if function is not None:
            _check_new(texts, function[1], line)
            _add_name(rules, function[1], line)
            texts[function[1]] = line, function[2]
            continue
        regulation = _REGULATION.fullmatch(content)
        if regulation is None:
            problem = "expected: a -> b, a -| b, a -? b, with or without a last ?, or $b: formula"
            raise NetworkError(problem, reason="syntax", line=line)
        source, sign, target = regulation.groups()
        if (source, target) in rules.declared:
            problem = f"{source} regulates {target} in a second line"
            raise NetworkError(problem, reason="duplicate-edge", line=line, name=f"{source} {target}")
        rules.declared[source, target] = sign
        rules.regulators.setdefault(target, set()).add(source)
        for name in (source, target):
            _check_target(name, AEON.letters, line)
            _add_name(rules, name, line)
    variables = frozenset(rules.names)
    _parse_all(rules, texts, AEON)
    strange = {target: sorted(mentioned_names(rules.formulas[target]) - variables) for target in texts}
    for target, names in strange.items():
        if names:
            problem = f"{readable_repr(names[0])} is no variable: functions with unknown parts are not read"
            raise NetworkError(problem, reason="uninterpreted", line=texts[target][0], name=names[0])
    rules.unspecified = {target for target in rules.regulators if target not in texts}
    return _require_content(rules, "a -> b, or $b: formula")


TEXT_READERS: Mapping[str, Callable[[str], Rules]] = {
    "bnet": read_bnet,
    "booleannet": read_booleannet,
    "rules": read_rules,
    "aeon": read_aeon,
}


# --- Writers of networks: bnet, SBML-qual and GraphML -----------------------------------------------------------------
MAX_COUNT_TERMS = 1_000


def unique_ids(names: Iterable[str], allowed: str, *, is_valid: re.Pattern[str]) -> dict[str, str]:
    """Return name -> id: the name if valid, else with `_` for other characters, and a number if taken.

    allowed: characters of ids, as a class of a regular expression without brackets
    """
    names = list(names)
    ids = {name: name for name in names if is_valid.fullmatch(name)}
    used_ids = set(ids)
    for name in names:
        if name not in ids:
            base = re.sub(rf"[^{allowed}]", "_", name)
            base = base if is_valid.fullmatch(base) else f"_{base}"
            suffix, candidate = 1, base
            while candidate in used_ids:
                suffix += 1
                candidate = f"{base}_{suffix}"
            ids[name] = candidate
            used_ids.add(candidate)
    return ids


# --- bnet -------------------------------------------------------------------------------------------------------------
# no constants, no delays such as [-1]
_VALID_BNET = re.compile(r"(?![01]\Z)(?!.*\[-[0-9]+\]\Z)[^\s!&|(),#\"']+")


def bnet_text(functions: Mapping[str, Function]) -> str:
    """Return functions as bnet, a line for each node, in code point order."""
    ids = unique_ids(sorted(functions), r"\w.+@/-", is_valid=_VALID_BNET)
    comments = [f"# {ids[name]} = {' '.join(name.split())}" for name in sorted(functions) if ids[name] != name]
    lines = [f"{ids[name]}, {_infix(functions[name], ids)}" for name in sorted(functions)]
    return "\n".join([*comments, "targets, factors", *lines]) + "\n"


def _infix(function: Function, ids: Mapping[str, str]) -> str:
    """Return a function as a disjunction of conjunctions, or as the file's formula if it has no table."""
    if function.table is None:
        return infix_text(formula_of(function), ids)
    cubes = cover(function.bits, len(function.inputs))
    if not cubes:
        return "0"
    names = [ids[name] for name in function.inputs]
    terms = [" & ".join(("" if value else "!") + names[position] for position, value in cube) or "1" for cube in cubes]
    return " | ".join(f"({term})" if "&" in term and len(terms) > 1 else term for term in terms)


Pieces: TypeAlias = "str | list[Pieces]"
"""Text as nested lists: an application refers to the pieces of its arguments, so that text is copied only once."""


def _render(
    nodes: Nodes, atom: Callable[[str | bool], str], applied: Callable[[Node, Sequence[Pieces]], Pieces]
) -> str:
    """Return the text of a formula; `atom` renders names and constants, `applied` operators."""
    stack: list[Pieces] = []
    for node in nodes:
        if isinstance(node, str | bool):
            stack.append(atom(node))
            continue
        parts = stack[len(stack) - node.arity :]
        del stack[len(stack) - node.arity :]
        stack.append(applied(node, parts))
    texts = []
    while stack:
        pieces = stack.pop()
        if isinstance(pieces, str):
            texts.append(pieces)
        else:
            stack.extend(reversed(pieces))
    return "".join(texts)


def infix_text(nodes: Nodes, ids: Mapping[str, str]) -> str:
    """Return a formula with bnet's operators, every application in parentheses."""
    return _render(nodes, lambda item: ids[item] if isinstance(item, str) else str(int(item)), _applied_bnet)


def _applied_bnet(node: Node, parts: Sequence[Pieces]) -> Pieces:
    if isinstance(node, Count):
        word = {">": "sumgt", "<": "sumlt", "=": "sumis"}[node.comparison]
        return [f"{word}(", *(piece for part in parts for piece in (part, ", ")), f"{node.number})"]
    operator = node.operator if isinstance(node, Apply) else ""
    if operator == "not":
        return ["!(", parts[0], ")"]
    if operator in ("and", "or"):
        return ["(", parts[0], " & " if operator == "and" else " | ", parts[1], ")"]
    # bnet has no xor: exactly one of two
    return ["!" if operator == "iff" else "", "sumis(", parts[0], ", ", parts[1], ", 1)"]


# --- SBML-qual --------------------------------------------------------------------------------------------------------
_SIGNS = {"+": "positive", "-": "negative", "both": "dual"}
_SBML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1" \
xmlns:qual="http://www.sbml.org/sbml/level3/version1/qual/version1" qual:required="true">
 <model id="model">
  <listOfCompartments><compartment id="cell" constant="true"/></listOfCompartments>
"""
_VALID_ID = re.compile(r"(?!(?:cell|model|tr_|in_|out_))[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def sbml_text(nodes: Sequence[str], functions: Mapping[str, Function], start: Mapping[str, int]) -> str:
    """Return a network as SBML level 3 with qual, valid for libSBML; inputs without a rule have no transition."""
    from xml.sax.saxutils import quoteattr  # imports http.client and ssl

    ids = unique_ids(nodes, "A-Za-z0-9_", is_valid=_VALID_ID)
    pieces = [_SBML_HEAD, "  <qual:listOfQualitativeSpecies>\n"]
    for name in nodes:
        initial = f' qual:initialLevel="{start[name]}"' if name in start else ""
        pieces.append(
            f'   <qual:qualitativeSpecies qual:id="{ids[name]}" qual:name={quoteattr(name)} qual:compartment="cell"'
            f' qual:constant="false" qual:maxLevel="1"{initial}/>\n'
        )
    pieces.append("  </qual:listOfQualitativeSpecies>\n")
    if functions:
        transitions = (_transition(ids[name], functions[name], ids) for name in nodes if name in functions)
        pieces += ["  <qual:listOfTransitions>\n", *transitions, "  </qual:listOfTransitions>\n"]
    return "".join([*pieces, " </model>\n</sbml>\n"])


def _transition(target: str, function: Function, ids: Mapping[str, str]) -> str:
    inputs = "".join(
        f'     <qual:input qual:id="in_{target}_{number}" qual:qualitativeSpecies="{ids[name]}"'
        f' qual:transitionEffect="none" qual:sign="{_SIGNS[sign]}" qual:thresholdLevel="1"/>\n'
        for number, (name, sign) in enumerate(zip(function.inputs, function.signs, strict=True), 1)
    )
    input_list = f"    <qual:listOfInputs>\n{inputs}    </qual:listOfInputs>\n" if inputs else ""
    default, term = int(function.table == "1"), ""
    if function.inputs:
        term = (
            '     <qual:functionTerm qual:resultLevel="1"><math xmlns="http://www.w3.org/1998/Math/MathML">'
            f"{_mathml(formula_of(function), ids)}</math></qual:functionTerm>\n"
        )
    return (
        f'   <qual:transition qual:id="tr_{target}">\n{input_list}'
        f'    <qual:listOfOutputs><qual:output qual:id="out_{target}" qual:qualitativeSpecies="{target}"'
        ' qual:transitionEffect="assignmentLevel"/></qual:listOfOutputs>\n'
        f'    <qual:listOfFunctionTerms>\n     <qual:defaultTerm qual:resultLevel="{default}"/>\n{term}'
        "    </qual:listOfFunctionTerms>\n   </qual:transition>\n"
    )


def _mathml(nodes: Nodes, ids: Mapping[str, str]) -> str:
    """Return a formula as MathML: relations `eq`, and `and`, `or`, `xor`, `not`."""

    def atom(item: str | bool) -> str:
        if isinstance(item, bool):
            return "<true/>" if item else "<false/>"
        return f'<apply><eq/><ci>{ids[item]}</ci><cn type="integer">1</cn></apply>'

    return _render(nodes, atom, _applied_mathml)


def _applied_mathml(node: Node, parts: Sequence[Pieces]) -> Pieces:
    if isinstance(node, Count):
        return _count_mathml(node, parts)
    operator = node.operator if isinstance(node, Apply) else ""
    if operator == "iff":
        return ["<apply><not/><apply><xor/>", *parts, "</apply></apply>"]
    return [f"<apply><{operator}/>", *parts, "</apply>"]


def _count_mathml(node: Count, parts: Sequence[Pieces]) -> Pieces:
    """Return a count as a disjunction of conjunctions, for MathML; `NetworkError` beyond MAX_COUNT_TERMS."""
    if node.comparison == "=":
        bounds = _more_than(parts, node.number - 1), ["<apply><not/>", _more_than(parts, node.number), "</apply>"]
        return ["<apply><and/>", *bounds, "</apply>"]
    if node.comparison == "<":
        return ["<apply><not/>", _more_than(parts, node.number - 1), "</apply>"]
    return _more_than(parts, node.number)


def _more_than(parts: Sequence[Pieces], bound: int) -> Pieces:
    """Return the condition that more than `number` parts are true."""
    if bound < 0 or bound >= len(parts):
        return "<true/>" if bound < 0 else "<false/>"
    if comb(len(parts), bound + 1) > MAX_COUNT_TERMS:
        problem = f"a count over {len(parts)} arguments takes over {MAX_COUNT_TERMS:,} terms in SBML; write bnet"
        raise NetworkError(problem, reason="wide")
    conjunctions = (["<apply><and/>", *subset, "</apply>"] for subset in combinations(parts, bound + 1))
    return ["<apply><or/>", *conjunctions, "</apply>"]


# --- GraphML ----------------------------------------------------------------------------------------------------------


def graphml_text(nodes: Iterable[str], edges: Iterable[tuple[str, str, str]]) -> str:
    """Return nodes and edges (source, target, sign) as GraphML."""
    from xml.sax.saxutils import escape, quoteattr  # imports http.client and ssl

    pieces = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        ' <key id="sign" for="edge" attr.name="sign" attr.type="string"/>\n <graph edgedefault="directed">\n'
    ]
    pieces += [f"  <node id={quoteattr(name)}/>\n" for name in nodes]
    for source, target, sign in edges:
        ends = f"source={quoteattr(source)} target={quoteattr(target)}"
        pieces.append(f'  <edge {ends}><data key="sign">{escape(sign)}</data></edge>\n')
    return "".join([*pieces, " </graph>\n</graphml>\n"])
