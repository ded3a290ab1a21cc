"""Formulas of published Boolean networks, and functions of nodes: one parser for all text grammars, evaluation, tables.

A formula is a flat tuple of nodes in postfix order, as in dsl.formulas.formula; nothing here recurses, because
published files nest 10,192 deep. `Count` is the only node that the mechanism language lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from operator import eq, gt, lt
from typing import Final, NamedTuple, TypeAlias

from calibrant.dsl.errors import RefusedError, readable_repr
from calibrant.dsl.formulas.formula import OPERATORS, Apply
from calibrant.dsl.formulas.table import TruthTable, cofactor, full_mask, projection, shrink

# --- Refusals: one line, and the fields that programs compare ---------------------------------------------------------


class NetworkError(RefusedError):
    """A file is not a Boolean network in a supported format."""


# --- Nodes, and their evaluation on bit vectors -----------------------------------------------------------------------
COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {">": gt, "<": lt, "=": eq}
MAX_STACK_BYTES = 1 << 27  # bit vectors of one evaluation; beyond, rows are evaluated in blocks


class Count(NamedTuple):
    """A node that compares the number of its true arguments with a number.

    comparison: a key of COMPARISONS
    """

    arity: int
    comparison: str
    number: int


Node: TypeAlias = str | bool | Apply | Count
Nodes: TypeAlias = tuple[Node, ...]
NOT, AND, OR, XOR, IFF = (
    Apply(name, arity) for name, arity in (("not", 1), *((n, 2) for n in ("and", "or", "xor", "iff")))
)


def mentioned_names(nodes: Iterable[Node]) -> set[str]:
    """Return the names that occur in a formula."""
    return {node for node in nodes if isinstance(node, str)}


def stack_depth(nodes: Iterable[Node]) -> int:
    """Return the greatest number of values that wait during evaluation."""
    depth = deepest = 0
    for node in nodes:
        depth += 1 - node.arity if isinstance(node, Apply | Count) else 1
        deepest = max(deepest, depth)
    return deepest


def evaluate(nodes: Iterable[Node], columns: Mapping[str, int], mask: int) -> int:
    """Return the bits of a formula.

    columns: bits of each name; mask: the valid bits
    """
    stack: list[int] = []
    for node in nodes:
        if isinstance(node, str):
            stack.append(columns[node])
        elif isinstance(node, bool):
            stack.append(mask if node else 0)
        else:
            arguments = stack[len(stack) - node.arity :]
            del stack[len(stack) - node.arity :]
            if isinstance(node, Count):
                stack.append(_count_bits(node, arguments, mask))
            else:
                stack.append(OPERATORS[node.operator].bits(arguments, mask))
    (bits,) = stack
    return bits


def _count_bits(node: Count, arguments: Sequence[int], mask: int) -> int:
    """Add up the arguments by carry-save adders, row by row at once, and compare the sums with the number."""
    by_weight, digits = [[*arguments]], []
    for weight in range(len(arguments).bit_length() + 1):
        bits, carries = by_weight[weight], list[int]()
        while len(bits) > 1:
            first, second = bits.pop(), bits.pop()
            third = bits.pop() if bits else 0
            bits.append(first ^ second ^ third)
            carries.append(first & second | third & (first ^ second))
        digits.append(bits[0] if bits else 0)
        by_weight.append(carries)
    greater, equal = 0, 0 if node.number >> len(digits) else mask
    for digit in reversed(range(len(digits))):
        if node.number >> digit & 1:
            equal &= digits[digit]
        else:
            greater |= equal & digits[digit]
            equal &= ~digits[digit]
    return {">": greater, "=": equal, "<": mask & ~(greater | equal)}[node.comparison]


def table_bits(nodes: Nodes, inputs: Sequence[str]) -> int:
    """Return the truth table of a formula: bit r is the value in row r, bit i of r is input i."""
    num_low = min(len(inputs), MAX_TABLE_INPUTS)  # inputs that vary within a block; 6: a block has at least 64 rows
    while num_low > 6 and stack_depth(nodes) << num_low >> 3 > MAX_STACK_BYTES:
        num_low -= 1
    columns = {name: projection(i, num_low).bits for i, name in enumerate(inputs[:num_low])}
    mask, high = full_mask(num_low), inputs[num_low:]
    bits = 0
    for block in range(1 << len(high)):
        fixed = {name: mask if block >> i & 1 else 0 for i, name in enumerate(high)}
        bits |= evaluate(nodes, columns | fixed, mask) << (block << num_low)
    return bits


# --- What a file states -----------------------------------------------------------------------------------------------


@dataclass
class Rules:
    """Content of a network file, before anything is derived from it.

    formulas: by target, in the order of the file; names: all nodes
    regulators: target -> names that the file lists as its inputs
    declared: (source, target) -> sign in the file's own word
    expected: declared word -> sign that has to be proven (`+`, `-`, `both`), "" for any
    states_all: whether a dependency that is not declared is a contradiction
    unspecified: nodes without a formula; start: node -> initial value
    notes: keys of remarks on how the file was read; num_tokens: tokens of the formulas so far
    """

    format: str
    formulas: dict[str, Nodes] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    regulators: dict[str, set[str]] = field(default_factory=dict)
    declared: dict[tuple[str, str], str] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)
    states_all: bool = False
    max_nodes: int = 20_000
    unspecified: set[str] = field(default_factory=set)
    start: dict[str, int] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    num_tokens: int = 0


# --- The parser: one loop over tokens, a table a grammar --------------------------------------------------------------
MAX_NAME_CHARS = 200
MAX_TOKENS = 1_000_000  # tokens of the formulas of one file; the longest published one, 1.3 MB, has 300,000


class Infix(NamedTuple):
    """A binary operator.

    precedence: higher binds first; node: the operator in postfix order; right: whether it is right-associative
    negates_left: whether the left operand is negated, as in `a => b`, read as `!a | b`
    """

    precedence: int
    node: Apply
    right: bool = False
    negates_left: bool = False


@dataclass(frozen=True)
class Grammar:
    """Spelling of one format.

    symbols: characters that no name contains, as the alternatives of a regular expression
    words: operators and constants that look like names, in lower case; any_case: whether other cases are read too
    constants_yield: whether `true` is a name in files with a target of that name; `Rules.notes` records its use
    counts: whether BoolNet's calls such as `maj(a, b)` are read; levels: whether `X:1` and `X:0` are
    letters: characters of a name, as a class of a regular expression
    """

    symbols: str
    infix: Mapping[str, Infix]
    negations: frozenset[str]
    words: Mapping[str, str | bool]
    letters: str
    any_case: bool = True
    constants_yield: bool = False
    counts: bool = False
    levels: bool = False

    def tokens(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the tokens; group `bad` is a character that no token begins with."""
        level = "(?::[0-9]+)?" if self.levels else ""
        pattern = rf"(?P<symbol>{self.symbols}|[(),])|(?P<name>{self.letters}+{level})|\s+|(?P<bad>.)"
        return re.finditer(pattern, text, re.DOTALL)


_C_LIKE = {"&": Infix(2, AND), "&&": Infix(2, AND), "|": Infix(1, OR), "||": Infix(1, OR)}
_NAME_LETTERS = r"[^\s!&|(),#\"']"
BNET = Grammar(
    symbols=r"&&?|\|\|?|!",
    infix=_C_LIKE,
    negations=frozenset("!"),
    words={"true": True, "false": False, "0": False, "1": True},
    letters=_NAME_LETTERS,
    constants_yield=True,
    counts=True,
)
WORDED = Grammar(
    symbols=r"&&?|\|\|?|[!~]",
    infix={**_C_LIKE, "and": Infix(2, AND), "or": Infix(1, OR)},
    negations=frozenset(("!", "~", "not")),
    words={"not": "not", "and": "and", "or": "or", "true": True, "false": False, "0": False, "1": True},
    letters=r"[^\s!~&|(),#\"'*=]",
)
AEON = Grammar(
    symbols=r"<=>|=>|[&|^!]",
    infix={
        "^": Infix(5, XOR),
        "&": Infix(4, AND),
        "|": Infix(3, OR),
        "=>": Infix(2, OR, right=True, negates_left=True),
        "<=>": Infix(1, IFF, right=True),
    },
    negations=frozenset("!"),
    words={"true": True, "false": False, "0": False, "1": True},
    letters=r"[A-Za-z0-9_{}]",
    any_case=False,
)
GINML = Grammar(
    symbols=r"&&?|\|\|?|!",
    infix=_C_LIKE,
    negations=frozenset("!"),
    words={"true": True, "false": False},
    letters=r"[^\s!&|(),#\"':]",
    constants_yield=True,
    levels=True,
)
_COUNTS = {"all", "any", "maj", "sumgt", "sumlt", "sumis"}
_SUMS = {"sumgt": ">", "sumlt": "<", "sumis": "="}
_TEMPORAL_CALLS = {"timeis", "timegt", "timelt"}
_DELAYED_NAME = re.compile(r"(.*)\[-[0-9]+\]", re.DOTALL)


class _Open(NamedTuple):
    """An operator, parenthesis or call that waits for operands.

    kind: `(`, `call`, `not` or `infix`
    """

    kind: str
    infix: Infix | None = None
    word: str = ""


class _Parser:
    """One formula in progress.

    waiting: operators, parentheses and calls without their last operand
    num_arguments: number of arguments so far of each open call
    """

    def __init__(self, grammar: Grammar, targets: Container[str], line: int | None, max_tokens: int) -> None:
        self.grammar = grammar
        self.max_tokens = max_tokens
        self.num_tokens = 0
        self.targets = targets
        self.line = line
        self.nodes: list[Node] = []
        self.waiting: list[_Open] = []
        self.num_arguments: list[int] = []
        self.has_word_constant = False

    def error(self, problem: str, reason: str = "syntax", name: str | None = None) -> NetworkError:
        """Return an error at the line of the formula."""
        return NetworkError(problem, reason=reason, line=self.line, name=name)

    def parse(self, text: str) -> None:
        """Append the formula to `nodes` in postfix order."""
        needs_operand = True
        tokens = (match for match in self.grammar.tokens(text) if match.lastgroup)
        for match, following in pairwise(chain(tokens, (None,))):
            assert match is not None  # None is the end alone
            token = match.group()
            if match.lastgroup == "bad":
                reason = "name" if token in "\"'" else "syntax"
                allowed = " ".join([*self.grammar.infix, *sorted(self.grammar.negations)])
                raise self.error(f"{token!r} in a formula; operators are {allowed}", reason)
            self.num_tokens += 1
            if self.num_tokens > self.max_tokens:
                raise self.error(f"the formulas have over {MAX_TOKENS:,} tokens; write them shorter")
            spelling = token.lower() if self.grammar.any_case else token
            is_called = following is not None and following.group() == "("
            needs_operand = (
                self._operand(token, spelling, is_called) if needs_operand else self._operator(token, spelling)
            )
        if needs_operand:
            raise self.error("a formula ends where a name, a constant or ( is expected")
        self._reduce(0)
        if self.waiting:
            raise self.error("a ( is not closed")

    def _operand(self, token: str, spelling: str, is_called: bool) -> bool:
        """Read a token where an operand begins; return whether one is still expected."""
        if token == "(":
            self.waiting.append(_Open("("))
            return True
        if spelling in self.grammar.negations:
            self.waiting.append(_Open("not"))
            return True
        if token in (")", ",") or spelling in self.grammar.infix:
            raise self.error(f"{readable_repr(token)} where a name, a constant or ( is expected")
        if is_called:
            self._call(token, spelling)
            return True
        self._atom(token, spelling)
        return False

    def _call(self, token: str, spelling: str) -> None:
        if self.grammar.counts and (spelling in _TEMPORAL_CALLS or "[" in spelling):  # BoolNet: all[d=-2..-1](a)
            raise self.error(f"{token}(...) is temporal: delays are not read", "temporal", token)
        if not (self.grammar.counts and spelling in _COUNTS):
            raise self.error(f"{readable_repr(token)}(...) is an uninterpreted function", "uninterpreted", token)
        self.waiting.append(_Open("call", word=spelling))
        self.num_arguments.append(1)

    def _atom(self, token: str, spelling: str) -> None:
        if len(token) > MAX_NAME_CHARS or not token.isprintable():
            raise self.error(
                f"{readable_repr(token)}; a name has at most {MAX_NAME_CHARS} printable characters", "name"
            )
        constant = self.grammar.words.get(spelling)
        if isinstance(constant, bool) and not (self.grammar.constants_yield and token in self.targets):
            self.has_word_constant |= token not in ("0", "1")
            self.nodes.append(constant)
        elif self.grammar.levels and ":" in token:
            name, _, level = token.partition(":")
            if level not in ("0", "1"):
                raise self.error(f"{readable_repr(token)}: levels above 1 are not read", "multi-level", name)
            self.nodes.extend((name,) if level == "1" else (name, NOT))
        elif self.grammar.counts and (delayed := _DELAYED_NAME.fullmatch(token)) is not None:
            raise self.error(f"{readable_repr(token)} is temporal: delays are not read", "temporal", delayed[1])
        else:
            self.nodes.append(token)

    def _operator(self, token: str, spelling: str) -> bool:
        """Read a token behind an operand; return whether an operand is expected next."""
        infix = self.grammar.infix.get(spelling)
        if infix is not None:
            self._reduce(infix.precedence + infix.right)  # + 1: equal right-associative operators wait
            if infix.negates_left:
                self.nodes.append(NOT)
            self.waiting.append(_Open("infix", infix))
            return True
        if token == ",":
            self._reduce(0)
            if len(self.waiting) < 2 or self.waiting[-2].kind != "call":
                raise self.error("a comma outside of a count such as maj(a, b, c)")
            self.num_arguments[-1] += 1
            return True
        if token != ")":
            name = readable_repr(token)
            raise self.error(f"{name} where an operator is expected: {' '.join(self.grammar.infix)}")
        self._reduce(0)
        if not self.waiting:
            raise self.error("a ) without a (")
        self.waiting.pop()
        if self.waiting and self.waiting[-1].kind == "call":
            self._close_call(self.waiting.pop().word, self.num_arguments.pop())
        return False

    def _close_call(self, word: str, arity: int) -> None:
        if word not in _SUMS:
            comparison, threshold = {"all": ("=", arity), "any": (">", 0), "maj": (">", arity // 2)}[word]
            self.nodes.append(Count(arity, comparison, threshold))
            return
        last = self.nodes.pop()
        text = str(int(last)) if isinstance(last, bool) else last if isinstance(last, str) else ""
        if arity < 2 or re.fullmatch(r"[0-9]{1,9}", text) is None:
            raise self.error(f"{word}(...) needs arguments and a number at the end")
        self.nodes.append(Count(arity - 1, _SUMS[word], int(text)))

    def _reduce(self, precedence: int) -> None:
        """Apply the waiting operators of at least this precedence."""
        while self.waiting:
            kind, infix, _ = self.waiting[-1]
            if kind == "not":
                self.nodes.append(NOT)
            elif infix is not None and infix.precedence >= precedence:
                self.nodes.append(infix.node)
            else:
                return
            self.waiting.pop()


def parse_formula(
    text: str, grammar: Grammar, line: int | None, rules: Rules, *, targets: Container[str] = ()
) -> Nodes:
    """Return the nodes of a formula text; `NetworkError` names the line of what is refused.

    rules: content of the file so far; its tokens are counted, and its notes may receive `true-false`
    targets: names that have a rule, see `Grammar.constants_yield`
    """
    parser = _Parser(grammar, targets, line, MAX_TOKENS - rules.num_tokens)
    if not text.strip():
        raise parser.error("a formula is missing")
    parser.parse(text)
    rules.num_tokens += parser.num_tokens
    if grammar.constants_yield and parser.has_word_constant:
        rules.notes.add("true-false")
    return tuple(parser.nodes)


# --- Functions of nodes: a truth table over the essential inputs, with proven signs -----------------------------------
MAX_TABLE_INPUTS = 16
"""Names in a formula up to which a function has a table; beyond, essential inputs and signs are found by SAT."""

Cube: TypeAlias = tuple[tuple[int, bool], ...]
"""A conjunction: positions of inputs and their values."""


@dataclass(frozen=True, slots=True)
class Function:
    """A Boolean function over its essential inputs.

    inputs: in code point order
    table: character r is the value in row r, bit i of r is input i; None beyond MAX_TABLE_INPUTS names
    signs: of each input: `+` if raising it never lowers the value, `-` if it never raises it, else `both`
    nodes: the formula of the file
    """

    inputs: tuple[str, ...]
    table: str | None
    signs: tuple[str, ...]
    nodes: Nodes = field(compare=False, repr=False)

    def is_identity(self, name: str) -> bool:
        """Return whether the function copies input `name`."""
        return self.inputs == (name,) and self.signs == ("+",)

    @property
    def bits(self) -> int:
        """The table as an integer; ValueError without one."""
        if self.table is None:
            raise ValueError(f"a function of {len(self.inputs)} inputs has no table")
        return int(self.table[::-1], 2)

    def steps(self, name: str) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Return sign -> (row with input `name` at 0, row with it at 1) that proves the sign, for signs that occur."""
        position, bits = self.inputs.index(name), self.bits
        rising, falling = _sign_rows(bits, position, len(self.inputs))
        pairs = {}
        for sign, rows in (("+", rising), ("-", falling)):
            if rows:
                row = (rows & -rows).bit_length() - 1
                pairs[sign] = (self.row(row), self.row(row | 1 << position))
        return pairs

    def value(self, row: Mapping[str, int]) -> int:
        """Return the value in a row; ValueError without a table."""
        return self.bits >> sum(row[name] << i for i, name in enumerate(self.inputs)) & 1

    def row(self, index: int) -> dict[str, int]:
        """Return the values of the inputs in a row."""
        return {name: index >> i & 1 for i, name in enumerate(self.inputs)}


Decide: TypeAlias = Callable[[Nodes, Sequence[str]], Mapping[str, str]]
"""Function (nodes, names) -> {essential input: sign}, for formulas of more than MAX_TABLE_INPUTS names."""


def require_table(name: str, function: Function) -> None:
    """Raise `NetworkError` if the function of a node has no table."""
    if function.table is None:
        number = len(mentioned_names(function.nodes) | {*function.inputs})
        problem = f"the formula of {readable_repr(name)} has {number} names; here at most {MAX_TABLE_INPUTS} are read"
        raise NetworkError(f"{problem}: write it with fewer", reason="wide", name=name)


def derive_function(nodes: Nodes, decide: Decide) -> Function:
    """Return the function of a formula; without a table if it has more than MAX_TABLE_INPUTS names."""
    names = sorted(mentioned_names(nodes))
    if len(names) <= MAX_TABLE_INPUTS:
        table, positions = shrink(TruthTable(len(names), table_bits(nodes, names)))
        return from_bits([names[i] for i in positions], table.bits, nodes)
    signs = decide(nodes, names)
    inputs = tuple(sorted(signs))
    return Function(inputs, None, tuple(signs[name] for name in inputs), nodes)


def from_bits(inputs: Sequence[str], bits: int, nodes: Nodes = ()) -> Function:
    """Return the function of a table all of whose inputs are essential."""
    num_inputs = len(inputs)
    signs = []
    for position in range(num_inputs):
        rising, falling = _sign_rows(bits, position, num_inputs)
        signs.append("both" if rising and falling else "+" if rising else "-")
    table = format(bits, f"0{1 << num_inputs}b")[::-1]
    return Function(tuple(inputs), table, tuple(signs), nodes)


def from_table(inputs: Sequence[str], table: str) -> Function:
    """Return the function of a table, over the inputs that are essential; inputs: in code point order."""
    return restrict(Function(tuple(inputs), table, (), ()), {})


def rename_inputs(function: Function, names: Mapping[str, str]) -> Function:
    """Rename inputs, in their new order; names: old -> new, names not listed stay. ValueError without a table."""
    renamed = [names.get(name, name) for name in function.inputs]
    order = sorted(range(len(renamed)), key=renamed.__getitem__)
    table = format(function.bits, f"0{1 << len(renamed)}b")[::-1]
    rows = (sum((row >> index & 1) << i for index, i in enumerate(order)) for row in range(len(table)))
    return from_table([renamed[i] for i in order], "".join(table[row] for row in rows))


def _sign_rows(bits: int, position: int, num_inputs: int) -> tuple[int, int]:
    """Return two bit sets of rows with the input at 0: where raising it raises the value, and where it lowers it."""
    ones = projection(position, num_inputs).bits
    low = bits & ~ones & full_mask(num_inputs)
    high = (bits & ones) >> (1 << position)
    return high & ~low, low & ~high


def restrict(function: Function, values: Mapping[str, int]) -> Function:
    """Fix inputs, by name -> value; return the function over the inputs that remain essential."""
    table = TruthTable(len(function.inputs), function.bits)
    for position, name in enumerate(function.inputs):
        if name in values:
            table = cofactor(table, position, bool(values[name]))
    table, positions = shrink(table)
    return from_bits([function.inputs[i] for i in positions], table.bits)


def align_tables(first: Function, second: Function) -> tuple[list[str], int, int]:
    """Return the inputs of both functions in code point order, and the bits of both tables over them."""
    names = sorted({*first.inputs, *second.inputs})
    return names, table_bits(formula_of(first), names), table_bits(formula_of(second), names)


# --- Formulas of tables -----------------------------------------------------------------------------------------------


def cover(bits: int, num_inputs: int) -> list[Cube]:
    """Return an irredundant sum of products by Minato's algorithm (S. Minato, SASIMI 1992)."""
    cubes, _ = _cover(bits, bits, num_inputs)
    return cubes


def _cover(least: int, greatest: int, num_inputs: int) -> tuple[list[Cube], int]:
    """Return cubes whose table lies between two tables over the first inputs, and that table. Recursion depth: 16."""
    if not least:
        return [], 0
    if greatest == full_mask(num_inputs):
        return [()], greatest
    num_inputs -= 1
    half = full_mask(num_inputs)
    size = 1 << num_inputs
    lower, upper = (least & half, least >> size), (greatest & half, greatest >> size)
    zeros, covered_zero = _cover(lower[0] & ~upper[1], upper[0], num_inputs)
    ones, covered_one = _cover(lower[1] & ~upper[0], upper[1], num_inputs)
    uncovered = lower[0] & ~covered_zero | lower[1] & ~covered_one
    shared, covered = _cover(uncovered, upper[0] & upper[1], num_inputs)
    cubes = [
        *((*cube, (num_inputs, False)) for cube in zeros),
        *((*cube, (num_inputs, True)) for cube in ones),
        *shared,
    ]
    return cubes, covered_zero | covered | (covered_one | covered) << size


def formula_of(function: Function) -> Nodes:
    """Return a formula in which only essential inputs occur; without a table the file's, with 0 for other names."""
    if function.table is None:
        essential = {*function.inputs}
        return tuple(False if isinstance(node, str) and node not in essential else node for node in function.nodes)
    return cubes_formula(cover(function.bits, len(function.inputs)), function.inputs)


def cubes_formula(cubes: Iterable[Cube], inputs: Sequence[str]) -> Nodes:
    """Return the formula of a sum of products in postfix order."""
    nodes: list[Node] = []
    for index, cube in enumerate(cubes):
        for index_in_cube, (position, value) in enumerate(cube):
            nodes.extend((inputs[position],) if value else (inputs[position], NOT))
            if index_in_cube:
                nodes.append(AND)
        if not cube:
            nodes.append(True)
        if index:
            nodes.append(OR)
    return tuple(nodes) or (False,)
