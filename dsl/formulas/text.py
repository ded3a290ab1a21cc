"""Formulas as text: S-expressions of pools and answers, infix notation for people, and the published normal form.

    expr := NAME | ( NAME ) | ( op expr ... )

`(X1)` is legal, `((X1))` is not. Tokens are separated by Unicode white space and parentheses. The parser is a loop over
tokens with its own stack: linear time and no recursion. Errors are those that the published scorer reports first:
errors of arguments before those of the operator, and these before those of its arity.

Ordinary texts take half the time: `_plain` parses them without the data that error messages need, and returns None for
any other text, which `_Parser` then parses.

The normal form has double negation removed, and/or/xor flattened one level, and/or/iff deduplicated, equal xor pairs
cancelled, constants folded (a single constant inside iff remains), arguments sorted: variables by number, constants,
operator nodes by operator and text. It applies no De Morgan rules, and does not exchange iff and xor.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, groupby
from typing import NoReturn, TypeAlias

from calibrant.dsl.errors import Culprit, ParseError, short_repr
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Apply, Formula, Node, fold
from calibrant.dsl.text import is_name, natural_key

# --- S-expressions <-> formulas ---------------------------------------------------------------------------------------
MAX_NESTING = 496  # deeper nesting of operators crashes the published scorer; here it is a parse error
MAX_TEXT = 1_000_000  # characters; mechanisms over 16 variables have less than a thousandth of it
_MAX_PLAIN_ARITY = 16  # more arguments are legal but rare, so `_Parser` parses them


@lru_cache(maxsize=256)
def _apply_node(name: str, arity: int) -> Apply:
    return Apply(name, arity)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The admissible operators, and whether the literals 0 and 1 are admissible."""

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
ALL_OPERATORS = Grammar(tuple(OPERATORS), allow_constants=True)  # for texts of solvers and of checked files


def parse(text: str, grammar: Grammar = STANDARD, variables: Collection[str] | None = None) -> Formula:
    """Return the formula of a text; `ParseError` with the position, the invalid token and the allowed ones.

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
    """Return the nodes of a correct text without constants, parenthesised atoms or space after '('; else None."""
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
    except LookupError:  # no open parenthesis, wrong arity, or an unusual token
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
        for token_index, offset in enumerate(_token_offsets(self.text)):
            if token_index == index:
                return offset
        return len(self.text)

    def _fail(self, kind: str, index: int, message: str, allowed: str) -> NoReturn:
        token = self.tokens[index] if index < len(self.tokens) else ""
        raise ParseError(kind, Culprit(self._offset(index), token), message, allowed)


def _token_offsets(text: str) -> Iterator[int]:
    """Yield the character offset of each token, which only error messages need."""
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


# --- Infix notation for people: X1 and not (X2 or X3). Pools and answers use the prefix form
BETWEEN = frozenset({"and", "or", "xor"})  # written between any number of arguments
MAX_INFIX_CHARS = 4_000  # of a typed formula
MAX_INFIX_DEPTH = 100  # of parentheses, since the infix parser recurses
_SIGNS = {"&": "and", "&&": "and", "|": "or", "||": "or", "^": "xor", "!": "not", "~": "not", "<->": "iff", "=": "iff"}
_SIGNS |= {"==": "iff", "\N{LOGICAL AND}": "and", "\N{LOGICAL OR}": "or", "\N{NOT SIGN}": "not"}
_TOKEN = re.compile(r"\s*(<->|&&|\|\||==|[()&|^!~=,\u2227\u2228\u00ac]|[^\s()&|^!~=,<\u2227\u2228\u00ac]+)")


def infix(formula: Formula) -> str:
    """Return the formula in infix form, with parentheses around arguments that are operators."""
    return fold(formula, lambda atom: atom if isinstance(atom, str) else str(int(atom)), _applied)


def _applied(node: Apply, arguments: Sequence[str]) -> str:
    if node.operator == "not":
        return f"not {_closed(arguments[0])}"
    if (node.operator in BETWEEN and len(arguments) > 1) or (node.operator == "iff" and len(arguments) == 2):
        return f" {node.operator} ".join(_closed(text) for text in arguments)
    return f"{node.operator}({', '.join(arguments)})"


def _closed(text: str) -> str:
    """Return a text in parentheses, unless it is an atom, a negated atom or a call."""
    words = text.split(" ")
    is_call = text.endswith(")") and "(" in words[0] and not words[0].startswith("(") and _closes_at_end(text)
    return text if len(words) == 1 or is_call or (len(words) == 2 and words[0] == "not") else f"({text})"


def _closes_at_end(text: str) -> bool:
    """Return whether the last character closes the first parenthesis."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return index == len(text) - 1
    return False


def parse_infix(text: str, grammar: Grammar = STANDARD, variables: Collection[str] = ()) -> Formula:
    """Parse a formula in infix or prefix form; `ParseError` with position, invalid token and allowed ones.

    `and` binds tighter than `or`. Any other mixture of operators needs parentheses, and so does an `iff` of three
    arguments. Calls such as if(X1, X2, X3) are allowed. Case of variables is ignored if unambiguous.
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
        """Parse an `or` of terms, a chain of `xor`, or an `iff` of two arguments."""
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
        """Parse the rest of a chain of one operator; terms of `or` may be chains of `and`."""
        nodes, arity = first, 1
        while self._peek() == operator and not (operator == "iff" and arity == 2):
            self._index += 1
            nodes = nodes + (self._term()[0] if operator == "or" else self._factor())
            arity += 1
        return self._apply(nodes, operator, arity)

    def _term(self) -> tuple[list[Node], str]:
        """Parse a chain of `and`; return its nodes, and `and` or, for a single factor, an empty text."""
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
        index = self._index + ahead
        return self._tokens[index][0] if index < len(self._tokens) else ""

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            self._fail("missing_close", f"missing {token!r}", "close what was opened")
        self._index += 1

    def _fail(self, kind: str, message: str, allowed: str, *, back: int = 0) -> NoReturn:
        index = max(0, self._index - back)
        token, start = self._tokens[index] if index < len(self._tokens) else ("", len(self._text))
        operators = ", ".join(self._grammar.operators)
        raise ParseError(kind, Culprit(start, token), message, allowed or f"write names, parentheses and {operators}")


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield tokens with their character offsets; signs and operators become lower-case words."""
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


# --- The published generator's syntactic normal form of formulas, on which no score depends ---------------------------
Nodes: TypeAlias = tuple[Node, ...]
"""A formula's nodes, without the class: the generator normalises about a hundred formulas for each accepted one."""

TRUE: Nodes = (True,)
FALSE: Nodes = (False,)
NOT = Apply("not", 1)


def canonical_formula(formula: Formula) -> Formula:
    """Return the normal form of a formula, which is equivalent to it."""
    return Formula(fold(formula, lambda atom: (atom,), lambda node, arguments: _normal(node.operator, arguments)))


def _normal(operator: str, arguments: Sequence[Nodes]) -> Nodes:
    if operator == "not":
        (inner,) = arguments
        if inner[-1] == NOT:
            return inner[:-1]
        return (not inner[0],) if isinstance(inner[-1], bool) else (*inner, NOT)
    if operator == "if":
        return _normal_if(*arguments)
    if operator == "iff":
        return _normal_iff(arguments)
    flat: list[Nodes] = []
    for argument in arguments:
        head = argument[-1]
        if isinstance(head, Apply) and head.operator == operator:
            flat += split_arguments(argument)
        else:
            flat.append(argument)
    return _normal_xor(flat) if operator == "xor" else _normal_lattice(operator, flat)


def split_arguments(nodes: Nodes) -> list[Nodes]:
    """Return the arguments of the last (outermost) operator, in order; empty for an atom."""
    head = nodes[-1]
    if not isinstance(head, Apply):
        return []
    parts: list[Nodes] = []
    end = len(nodes) - 1
    for _ in range(head.arity):
        start, missing = end, 1
        while missing:  # go back to the start of one complete argument
            start -= 1
            node = nodes[start]
            missing += node.arity - 1 if isinstance(node, Apply) else -1
        parts.append(nodes[start:end])
        end = start
    return parts[::-1]


def _normal_if(condition: Nodes, then: Nodes, otherwise: Nodes) -> Nodes:
    if isinstance(condition[-1], bool):
        return then if condition[0] else otherwise
    if (then, otherwise) == (TRUE, FALSE):
        return condition
    if (then, otherwise) == (FALSE, TRUE):
        return _normal("not", [condition])
    return then if then == otherwise else _apply("if", (condition, then, otherwise))


def _normal_lattice(operator: str, arguments: Iterable[Nodes]) -> Nodes:
    absorbing = operator == "or"  # or(1, ...) = 1, and(0, ...) = 0
    unique = dict.fromkeys(arguments)
    if (absorbing,) in unique:
        return (absorbing,)
    unique.pop((not absorbing,), None)
    return _join_arguments(operator, list(unique), neutral=not absorbing)


def _normal_xor(arguments: Sequence[Nodes]) -> Nodes:
    odd_arguments = [a for a in dict.fromkeys(arguments) if a != FALSE and arguments.count(a) % 2]
    return _join_arguments("xor", odd_arguments, neutral=False)


def _normal_iff(arguments: Iterable[Nodes]) -> Nodes:
    unique = list(dict.fromkeys(arguments))
    if TRUE in unique and FALSE in unique:
        return FALSE
    return TRUE if len(unique) == 1 else _apply("iff", _in_order(unique))


def _join_arguments(operator: str, arguments: list[Nodes], *, neutral: bool) -> Nodes:
    if not arguments:
        return (neutral,)
    return arguments[0] if len(arguments) == 1 else _apply(operator, _in_order(arguments))


def _apply(operator: str, arguments: Sequence[Nodes]) -> Nodes:
    return (*chain.from_iterable(arguments), Apply(operator, len(arguments)))


def _in_order(arguments: list[Nodes]) -> list[Nodes]:
    """Sort arguments: variables by number, constants, operator nodes by operator and (only on ties) text."""
    ordered: list[Nodes] = []
    for (_, _, operator), group in groupby(sorted(arguments, key=_kind), _kind):
        alike = list(group)
        ordered += sorted(alike, key=lambda nodes: render(Formula(nodes))) if operator and len(alike) > 1 else alike
    return ordered


def _kind(nodes: Nodes) -> tuple[int, tuple[int, int, str], str]:
    head = nodes[-1]
    if isinstance(head, str):
        return (0, natural_key(head), "")
    return (1, (0, head, ""), "") if isinstance(head, bool) else (2, (0, 0, ""), head.operator)
