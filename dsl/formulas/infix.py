"""Formulas as people write them: X1 and not (X2 or X3). For reading only; pools and answers use the prefix form."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.dsl.formulas.formula import Apply, Formula, fold

BETWEEN = frozenset({"and", "or", "xor"})  # written between any number of arguments


def infix(formula: Formula) -> str:
    """Return the formula in infix form; arguments that are themselves operators are in parentheses."""
    return fold(formula, lambda atom: atom if isinstance(atom, str) else str(int(atom)), _applied)


def _applied(node: Apply, arguments: Sequence[str]) -> str:
    if node.operator == "not":
        return f"not {_closed(arguments[0])}"
    if (node.operator in BETWEEN and len(arguments) > 1) or (node.operator == "iff" and len(arguments) == 2):
        return f" {node.operator} ".join(_closed(text) for text in arguments)
    return f"{node.operator}({', '.join(arguments)})"


def _closed(text: str) -> str:
    """Parentheses around what is not an atom, a negated atom or a call."""
    words = text.split(" ")
    is_call = text.endswith(")") and "(" in words[0] and not words[0].startswith("(") and _closes_at_end(text)
    return text if len(words) == 1 or is_call or (len(words) == 2 and words[0] == "not") else f"({text})"


def _closes_at_end(text: str) -> bool:
    """Return whether the first parenthesis is closed by the last character."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return place == len(text) - 1
    return False
