"""Writers of networks: bnet, SBML-qual and GraphML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

from calibrant.dsl.formulas.formula import Apply
from calibrant.dsl.networks.formulas import Count, NetworkError, Node, Nodes
from calibrant.dsl.networks.functions import Function, cover, formula_of

MAX_COUNT_TERMS = 1_000


def unique_ids(names: Iterable[str], allowed: str, *, is_valid: re.Pattern[str]) -> dict[str, str]:
    """Return an id of each name: itself if valid, else with `_` for other characters, and a number if taken.

    allowed: characters of ids, as a class of a regular expression without brackets
    """
    names = list(names)
    ids = {name: name for name in names if is_valid.fullmatch(name)}
    taken = set(ids)
    for name in names:
        if name not in ids:
            base = re.sub(rf"[^{allowed}]", "_", name)
            base = base if is_valid.fullmatch(base) else f"_{base}"
            number, candidate = 1, base
            while candidate in taken:
                number += 1
                candidate = f"{base}_{number}"
            ids[name] = candidate
            taken.add(candidate)
    return ids


# --- bnet -------------------------------------------------------------------------------------------------------------
# no constants, no delays such as [-1]
_VALID_BNET = re.compile(r"(?![01]\Z)(?!.*\[-[0-9]+\]\Z)[^\s!&|(),#\"']+")


def bnet_text(functions: Mapping[str, Function]) -> str:
    """Return functions as bnet, one line a node, in code point order."""
    ids = unique_ids(sorted(functions), r"\w.+@/-", is_valid=_VALID_BNET)
    comments = [f"# {ids[name]} = {' '.join(name.split())}" for name in sorted(functions) if ids[name] != name]
    lines = [f"{ids[name]}, {_infix(functions[name], ids)}" for name in sorted(functions)]
    return "\n".join([*comments, "targets, factors", *lines]) + "\n"


def _infix(function: Function, ids: Mapping[str, str]) -> str:
    """Return a function as a disjunction of conjunctions, or as the file's formula where it has no table."""
    if function.table is None:
        return infix_text(formula_of(function), ids)
    cubes = cover(function.bits, len(function.inputs))
    if not cubes:
        return "0"
    names = [ids[name] for name in function.inputs]
    terms = [" & ".join(("" if value else "!") + names[position] for position, value in cube) or "1" for cube in cubes]
    return " | ".join(f"({term})" if "&" in term and len(terms) > 1 else term for term in terms)


Pieces: TypeAlias = "str | list[Pieces]"
"""Text in nested lists: an application refers to the pieces of its arguments, so that no text is copied twice."""


def _render(
    nodes: Nodes, atom: Callable[[str | bool], str], applied: Callable[[Node, Sequence[Pieces]], Pieces]
) -> str:
    """Return the text of a formula: `atom` writes names and constants, `applied` operators."""
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
    """Return a formula in the operators of bnet, every application in parentheses."""
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
    listed = f"    <qual:listOfInputs>\n{inputs}    </qual:listOfInputs>\n" if inputs else ""
    default, term = int(function.table == "1"), ""
    if function.inputs:
        term = (
            '     <qual:functionTerm qual:resultLevel="1"><math xmlns="http://www.w3.org/1998/Math/MathML">'
            f"{_mathml(formula_of(function), ids)}</math></qual:functionTerm>\n"
        )
    return (
        f'   <qual:transition qual:id="tr_{target}">\n{listed}'
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
    """Return a count as a disjunction of conjunctions, which MathML has; refused where these are too many."""
    if node.comparison == "=":
        more = _more_than(parts, node.number - 1), ["<apply><not/>", _more_than(parts, node.number), "</apply>"]
        return ["<apply><and/>", *more, "</apply>"]
    if node.comparison == "<":
        return ["<apply><not/>", _more_than(parts, node.number - 1), "</apply>"]
    return _more_than(parts, node.number)


def _more_than(parts: Sequence[Pieces], number: int) -> Pieces:
    """Return that more than a number of parts are true."""
    if number < 0 or number >= len(parts):
        return "<true/>" if number < 0 else "<false/>"
    if comb(len(parts), number + 1) > MAX_COUNT_TERMS:
        problem = f"a count over {len(parts)} arguments takes over {MAX_COUNT_TERMS:,} terms in SBML; write bnet"
        raise NetworkError(problem, reason="wide")
    chosen = (["<apply><and/>", *some, "</apply>"] for some in combinations(parts, number + 1))
    return ["<apply><or/>", *chosen, "</apply>"]


# --- GraphML ----------------------------------------------------------------------------------------------------------


def graphml_text(nodes: Iterable[str], edges: Iterable[tuple[str, str, str]]) -> str:
    """Return nodes and edges (source, target, sign) as GraphML."""
    pieces = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        ' <key id="sign" for="edge" attr.name="sign" attr.type="string"/>\n <graph edgedefault="directed">\n'
    ]
    pieces += [f"  <node id={quoteattr(name)}/>\n" for name in nodes]
    for source, target, sign in edges:
        ends = f"source={quoteattr(source)} target={quoteattr(target)}"
        pieces.append(f'  <edge {ends}><data key="sign">{escape(sign)}</data></edge>\n')
    return "".join([*pieces, " </graph>\n</graphml>\n"])
