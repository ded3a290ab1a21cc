"""Formulas as people write them: X1 and not (X2 or X3). Pools and answers use the prefix form (dsl.formulas.text)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NoReturn

from calibrant.dsl.errors import Culprit, ParseError, short_repr
from calibrant.dsl.formulas.formula import Apply, Formula, Node, fold
from calibrant.dsl.formulas.operators import OPERATORS
from calibrant.dsl.formulas.text import STANDARD, Grammar, parse

BETWEEN = frozenset({"and", "or", "xor"})  # written between any number of arguments
MAX_INFIX_CHARS = 4_000
MAX_INFIX_DEPTH = 100  # the parser recurses
_SIGNS = {"&": "and", "&&": "and", "|": "or", "||": "or", "^": "xor", "!": "not", "~": "not", "<->": "iff", "=": "iff"}
_SIGNS |= {"==": "iff", "\N{LOGICAL AND}": "and", "\N{LOGICAL OR}": "or", "\N{NOT SIGN}": "not"}
_TOKEN = re.compile(r"\s*(<->|&&|\|\||==|[()&|^!~=,\u2227\u2228\u00ac]|[^\s()&|^!~=,<\u2227\u2228\u00ac]+)")


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


def parse_infix(text: str, grammar: Grammar = STANDARD, variables: Collection[str] = ()) -> Formula:
    """Parse a formula in infix or in prefix form; `ParseError` with position, culprit and what is allowed.

    `and` binds tighter than `or`; any other two operators side by side need parentheses, and so do three sides of
    `iff`. Calls such as if(X1, X2, X3) are read too. Variables count in any case that fits one alone.
    """
    if len(text) > MAX_INFIX_CHARS:
        culprit = Culprit(MAX_INFIX_CHARS, "")
        raise ParseError("too_long", culprit, f"text of {len(text)} characters", f"at most {MAX_INFIX_CHARS} are read")
    if text.lstrip().startswith("("):
        try:
            return parse(text, grammar, variables)
        except ParseError as error:
            words = text.lstrip()[1:].split(maxsplit=1)
            if words and words[0] in OPERATORS.keys() - {"not"}:
                raise error from None
    return Formula(tuple(_InfixParser(text, grammar, variables).run()))


class _InfixParser:
    """One run over the tokens of an infix text."""

    def __init__(self, text: str, grammar: Grammar, variables: Collection[str]) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._index = 0
        self._depth = 0
        self._grammar = grammar
        self._variables = variables

    def run(self) -> list[Node]:
        """Return the nodes in postfix order."""
        if not self._tokens:
            self._fail("empty", "empty formula", "expected a variable")
        nodes = self._alternatives()
        if self._peek():
            self._fail("trailing", f"{short_repr(self._peek())} after a complete formula", "expected an operator")
        return nodes

    def _alternatives(self) -> list[Node]:
        """Read an `or` of terms, a chain of `xor`, or two sides of `iff`."""
        self._depth += 1
        if self._depth > MAX_INFIX_DEPTH:
            self._fail("too_deep", f"more than {MAX_INFIX_DEPTH} nested parts", "nest less deeply")
        nodes, operator = self._term()
        following = self._peek()
        if following == "or":
            nodes, operator = self._chain(nodes, "or"), "or"
        elif following in ("xor", "iff") and not operator:
            nodes, operator = self._chain(nodes, following), following
        if self._peek() in (*BETWEEN, "iff"):
            self._fail("trailing", f"{operator} and {self._peek()} side by side", "parentheses are needed")
        self._depth -= 1
        return nodes

    def _chain(self, first: list[Node], operator: str) -> list[Node]:
        """Read the rest of a chain of one operator; terms of `or` may be chains of `and`."""
        nodes, arity = first, 1
        while self._peek() == operator and not (operator == "iff" and arity == 2):
            self._index += 1
            nodes = nodes + (self._term()[0] if operator == "or" else self._factor())
            arity += 1
        return self._apply(nodes, operator, arity)

    def _term(self) -> tuple[list[Node], str]:
        """Read a chain of `and`; its nodes, and `and` if there are several factors."""
        nodes = self._factor()
        return (self._chain(nodes, "and"), "and") if self._peek() == "and" else (nodes, "")

    def _factor(self) -> list[Node]:
        token = self._peek()
        if token == "not":
            self._depth += 1
            if self._depth > MAX_INFIX_DEPTH:
                self._fail("too_deep", f"more than {MAX_INFIX_DEPTH} nested parts", "nest less deeply")
            self._index += 1
            nodes = self._apply(self._factor(), "not", 1)
            self._depth -= 1
            return nodes
        if token == "(":
            self._index += 1
            nodes = self._alternatives()
            self._expect(")")
            return nodes
        if token in OPERATORS and self._peek(1) == "(":
            return self._call(token)
        if not token or token in (*BETWEEN, "iff", ")", ",") or token in OPERATORS:
            culprit = short_repr(token) if token else "the end"
            self._fail("unexpected_end" if not token else "invalid_symbol", f"{culprit} where a variable has to be", "")
        self._index += 1
        return [self._atom(token)]

    def _call(self, operator: str) -> list[Node]:
        self._index += 2
        nodes, arity = self._alternatives(), 1
        while self._peek() == ",":
            self._index += 1
            nodes = nodes + self._alternatives()
            arity += 1
        self._expect(")")
        return self._apply(nodes, operator, arity)

    def _atom(self, token: str) -> Node:
        if token in ("0", "1"):
            if not self._grammar.allow_constants:
                self._fail("constants_forbidden", f"the constant {token}", "constants are not allowed", back=1)
            return token == "1"
        alike = [name for name in self._variables if name.casefold() == token.casefold()]
        if token not in self._variables and len(alike) != 1:
            allowed = f"the variables are {', '.join(self._variables)}"
            self._fail("variable_not_allowed", f"{short_repr(token)} is no variable here", allowed, back=1)
        return token if token in self._variables else alike[0]

    def _apply(self, nodes: list[Node], operator: str, arity: int) -> list[Node]:
        rule = OPERATORS[operator]
        if operator not in self._grammar.operators:
            allowed = f"the operators are {', '.join(self._grammar.operators)}"
            self._fail("operator_not_allowed", f"{operator} is not allowed", allowed, back=1)
        if arity < rule.min_arity or (rule.max_arity is not None and arity > rule.max_arity):
            kind = "arity_low" if arity < rule.min_arity else "arity_high"
            self._fail(kind, f"{operator} with {arity} argument(s)", f"it takes {rule.arity_text}", back=1)
        return [*nodes, Apply(operator, arity)]

    def _peek(self, ahead: int = 0) -> str:
        place = self._index + ahead
        return self._tokens[place][0] if place < len(self._tokens) else ""

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            self._fail("missing_close", f"missing {token!r}", "close what was opened")
        self._index += 1

    def _fail(self, kind: str, message: str, allowed: str, *, back: int = 0) -> NoReturn:
        place = max(0, self._index - back)
        token, start = self._tokens[place] if place < len(self._tokens) else ("", len(self._text))
        operators = ", ".join(self._grammar.operators)
        raise ParseError(kind, Culprit(start, token), message, allowed or f"write names, parentheses and {operators}")


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield tokens, signs and operators as words in lower case, each with its place."""
    end = 0
    stripped = text.rstrip()
    while end < len(stripped):
        match = _TOKEN.match(stripped, end)
        if match is None:
            end += len(stripped[end:]) - len(stripped[end:].lstrip())
            culprit = Culprit(end, stripped[end])
            problem = f"{short_repr(culprit.token)} is no sign of a formula"
            raise ParseError("invalid_symbol", culprit, problem, f"signs are {' '.join(sorted(_SIGNS))}")
        token = _SIGNS.get(match[1], match[1])
        yield (token.lower() if token.lower() in OPERATORS else token), match.start(1)
        end = match.end()
