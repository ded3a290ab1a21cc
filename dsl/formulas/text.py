"""S-expressions <-> formulas.

    expr := NAME | ( NAME ) | ( op expr ... )

One parenthesised atom layer is legal, `((X1))` is not. Tokens are separated by Unicode white space and parentheses.
The parser is a loop over tokens with its own stack: linear time, no recursion, whatever the input.
Errors come in the order in which the published scorer meets them: arguments first, then operator, then arity.

Ordinary spellings take half the time: `_plain` reads them without keeping what errors need, and gives up on anything
else, which is then read again by the parser that can explain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NoReturn

from calibrant.dsl.errors import Culprit, ParseError, short_repr
from calibrant.dsl.formulas.formula import Apply, Formula, Node
from calibrant.dsl.formulas.operators import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.names import is_name

MAX_NESTING = 496  # operators nested deeper than this crash the published scorer; here they are a parse error
MAX_TEXT = 1_000_000  # characters; no mechanism over 16 variables needs a thousandth of it
_MAX_PLAIN_ARITY = 16  # more arguments are legal, but nobody writes them


@lru_cache(maxsize=256)
def _apply_node(name: str, arity: int) -> Apply:
    return Apply(name, arity)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The admissible operators, and whether the literals 0 and 1 are."""

    operators: tuple[str, ...] = STANDARD_OPERATORS
    allow_constants: bool = False
    _openings: dict[str, dict[int, Apply]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        operators = (name for name in self.operators if name in OPERATORS)
        object.__setattr__(self, "_openings", {f"({name}": _nodes_by_arity(name) for name in operators})


@cache
def _nodes_by_arity(name: str) -> dict[int, Apply]:
    operator = OPERATORS[name]
    arities = range(operator.min_arity, (operator.max_arity or _MAX_PLAIN_ARITY) + 1)
    return {arity: _apply_node(name, arity) for arity in arities}


STANDARD = Grammar()
ALL_OPERATORS = Grammar(tuple(OPERATORS), allow_constants=True)  # of texts that a solver or a checked file gives


def parse(text: str, grammar: Grammar = STANDARD, variables: Collection[str] | None = None) -> Formula:
    """Parse the formula that a text spells; `ParseError` with position, culprit and what was allowed otherwise.

    variables: the names that may occur (a set for speed); None admits every well-formed name.
    """
    if len(text) > MAX_TEXT:
        culprit = Culprit(MAX_TEXT, "")
        raise ParseError("too_long", culprit, f"text of {len(text)} characters", f"at most {MAX_TEXT} are read")
    nodes = _plain(text, grammar, variables) if variables else None
    if nodes is None:
        tokens = text.replace("(", " ( ").replace(")", " ) ").split()
        nodes = _Parser(text, tokens, grammar, variables).run()
    return Formula(tuple(nodes))


def _plain(text: str, grammar: Grammar, variables: Collection[str]) -> list[Node] | None:
    """Return the nodes of a correct text without constants, parenthesised atoms or space behind '('; else None."""
    openings = grammar._openings
    nodes: list[Node] = []
    opened: list[tuple[dict[int, Apply], int]] = []  # operator by arity, values on the evaluation stack below it
    height = 0
    if text.count("(") > MAX_NESTING:
        return None
    try:
        for token in text.replace("(", " (").replace(")", " ) ").split():
            if token in variables:
                nodes.append(token)
                height += 1
            elif token == ")":
                by_arity, below = opened.pop()
                nodes.append(by_arity[height - below])
                height = below + 1
            else:
                opened.append((openings[token], height))
    except LookupError:  # nothing is open, wrong arity, or no ordinary token
        return None
    return nodes if height == 1 and not opened else None


class _Parser:
    """One run over the tokens. A frame of the stack is an open parenthesis: its head token and its argument count."""

    __slots__ = ("grammar", "nodes", "text", "tokens", "variables")

    def __init__(self, text: str, tokens: list[str], grammar: Grammar, variables: Collection[str] | None) -> None:
        self.text = text
        self.tokens = tokens
        self.grammar = grammar
        self.variables = variables
        self.nodes: list[Node] = []

    def run(self) -> list[Node]:
        tokens, nodes = self.tokens, self.nodes
        end = len(tokens)
        if not end:
            self._fail("empty", 0, "empty mechanism", "expected a variable or '(op ...)'")
        heads: list[int] = []  # index of the head token of each open parenthesis
        counts: list[int] = []  # arguments completed so far in each
        index = 0
        while True:
            token = tokens[index] if index < end else ""
            if token == "(":
                if index + 2 < end and tokens[index + 2] == ")" and tokens[index + 1] != ")":
                    nodes.append(self._atom(index + 1))
                    index += 3
                else:
                    index = self._open(index, heads, counts)
                    continue
            elif token == ")":
                if not heads:
                    self._fail("unexpected_close", index, "unexpected ')'", "expected a variable or '(op ...)'")
                self._close(heads.pop(), counts.pop())
                index += 1
            elif token:
                nodes.append(self._atom(index))
                index += 1
            else:  # the text has ended; an empty one never gets here, so something is open
                opened = self._offset(heads[-1] - 1)
                self._fail("missing_close", index, "missing ')'", f"the '(' at character {opened} is open")
            if not heads:
                break
            counts[-1] += 1
        if index < end:
            self._fail("trailing", index, f"{short_repr(tokens[index])} after a complete mechanism", "expected the end")
        return nodes

    def _open(self, index: int, heads: list[int], counts: list[int]) -> int:
        if index + 1 >= len(self.tokens):
            self._fail("unexpected_end", index + 1, "the text ends after '('", "expected an operator")
        if self.tokens[index + 1] == ")":
            self._fail("empty_list", index, "'()' is not a mechanism", "expected a variable or '(op ...)'")
        if len(heads) >= MAX_NESTING:
            self._fail("too_deep", index, f"more than {MAX_NESTING} nested operators", "nest less deeply")
        heads.append(index + 1)
        counts.append(0)
        return index + 2

    def _close(self, head: int, arity: int) -> None:
        name = self.tokens[head]
        operator = OPERATORS.get(name)
        if operator is None or name not in self.grammar.operators:
            kind = "unknown_operator" if operator is None else "operator_not_allowed"
            allowed = f"allowed operators: {', '.join(self.grammar.operators)}"
            self._fail(
                kind,
                head,
                f"operator {short_repr(name)} is {'unknown' if operator is None else 'not allowed'}",
                allowed,
            )
        if arity < operator.min_arity:
            self._fail("arity_low", head, f"'{name}' got {arity}", f"it takes {operator.arity_text}")
        if operator.max_arity is not None and arity > operator.max_arity:
            self._fail("arity_high", head, f"'{name}' got {arity}", f"it takes {operator.arity_text}")
        self.nodes.append(_apply_node(name, arity))

    def _atom(self, index: int) -> Node:
        token = self.tokens[index]
        if token in ("0", "1"):
            if not self.grammar.allow_constants:
                self._fail("constants_forbidden", index, f"constant {token} is not allowed", "use variables only")
            return token == "1"
        if not is_name(token):
            self._fail(
                "invalid_symbol", index, f"invalid symbol {short_repr(token)}", "names are [A-Za-z_][A-Za-z0-9_]*"
            )
        if self.variables is not None and token not in self.variables:
            names = ", ".join(sorted(self.variables)) or "none"
            allowed = f"allowed variables: {names}"
            self._fail("variable_not_allowed", index, f"variable {short_repr(token)} is not allowed here", allowed)
        return token

    def _offset(self, index: int) -> int:
        for number, offset in enumerate(_token_offsets(self.text)):
            if number == index:
                return offset
        return len(self.text)

    def _fail(self, kind: str, index: int, message: str, allowed: str) -> NoReturn:
        token = self.tokens[index] if index < len(self.tokens) else ""
        raise ParseError(kind, Culprit(self._offset(index), token), message, allowed)


def _token_offsets(text: str) -> Iterator[int]:
    """Character offset of each token; only errors need it, so the parser does not keep it."""
    inside = False
    for offset, character in enumerate(text):
        if character in "()":
            yield offset
            inside = False
        elif character.isspace():
            inside = False
        elif not inside:
            yield offset
            inside = True


def render(formula: Formula) -> str:
    """Render the canonical spelling: one space between items, no parentheses around atoms. `parse(render(f)) == f`."""
    return str(formula)
