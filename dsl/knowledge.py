"""Knowledge of a network in words: required and forbidden arcs, tiers, order, roots, numbers of parents, monotony.

One line is one statement; the words on arcs and numbers are options of the command line too:

    require A -> B            forbid A -> B, C -> D
    tiers A, B < C < D        no arc from a later to an earlier tier; every column in one
    order A, B, C             no arc from a later to an earlier column of the list; others are free
    roots A                   no arc into A
    max-parents 2             of every column
    max-parents-of B=1        of one
    increasing A -> B         B never falls if A alone rises; A need not be a parent
    decreasing A -> B         B never rises if A alone rises
    no-common-parent A, B     no column is a parent of both
    (assert (=> |A -> B| |A -> C|))   a formula over arcs in SMT-LIB 2: and, or, not, =>, xor, =, ite, true, false

The last four are about SCMs, whose mechanisms are functions; learning by scores refuses them. A line of SMT-LIB holds
one command; declarations, `check-sat` and the like are skipped, so that a file for a solver can be given as it is.

`#` begins a comment line, and so does `;`. A name with a separator of its statement (comma, arrow or `<`) is
quoted like a CSV cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

Arc: TypeAlias = tuple[str, str]
RELATION_WORDS = ("no-common-parent", "assert")  # about arcs into several columns at once
SCM_WORDS = ("increasing", "decreasing", *RELATION_WORDS)  # about SCMs, not about scored networks
WORDS = ("require", "forbid", "tiers", "order", "roots", "max-parents", "max-parents-of", *SCM_WORDS)
ARC_WORDS = ("require", "forbid", "increasing", "decreasing")
_SEPARATORS = {**dict.fromkeys(ARC_WORDS, ("->", ",")), "tiers": ("<", ",")}  # other words: a comma alone
SKIPPED_COMMANDS = (
    "declare-const",
    "declare-fun",
    "set-logic",
    "set-info",
    "set-option",
    "check-sat",
    "get-model",
    "exit",
)
ARITIES = {
    "and": (0, None),
    "or": (0, None),
    "not": (1, 1),
    "=>": (2, None),
    "xor": (2, None),
    "=": (2, None),
    "ite": (3, 3),
}
MAX_DEPTH = 50  # nested parentheses of a formula


@dataclass(frozen=True, slots=True)
class ArcFormula:
    """Boolean formula over arcs.

    operator: a key of ARITIES, "true", "false", or "arc"
    arguments: empty for the last three; arc: (parent, child) if the operator is "arc"
    """

    operator: str
    arguments: tuple[ArcFormula, ...] = ()
    arc: Arc = ("", "")

    def holds(self, has_arc: Callable[[Arc], bool]) -> bool:
        """Return the value of the formula in a network; has_arc: return whether an arc is in the network."""
        if self.operator == "arc":
            return has_arc(self.arc)
        values = [argument.holds(has_arc) for argument in self.arguments]
        match self.operator:
            case "and" | "true":
                return all(values)
            case "or" | "false":
                return any(values)
            case "not":
                return not values[0]
            case "=>":  # right-associative, as in SMT-LIB: false iff all arguments but the last are true
                return values[-1] or not all(values[:-1])
            case "xor":
                return sum(values) % 2 == 1
            case "=":
                return all(first == second for first, second in pairwise(values))
        return values[1] if values[0] else values[2]

    @property
    def arcs(self) -> frozenset[Arc]:
        """The arcs that the formula mentions."""
        if self.operator == "arc":
            return frozenset([self.arc])
        return frozenset().union(*(argument.arcs for argument in self.arguments))

    def renamed(self, names: Mapping[str, str]) -> ArcFormula:
        """Return the formula with columns renamed; names: old name -> new name, for every column that occurs."""
        arc = self.arc if self.operator != "arc" else (names[self.arc[0]], names[self.arc[1]])
        return ArcFormula(self.operator, tuple(argument.renamed(names) for argument in self.arguments), arc)


class Statement(NamedTuple):
    """One statement; the fields that its word does not use are empty.

    word: one of WORDS; source: its name in messages, such as "line 3" or "--require 'A -> B'"
    arcs: (parent, child); tiers: names by tier, earliest first; names: of an order, of roots or without common parent
    limits: (column, largest number of parents); "" stands for all columns
    """

    word: str
    source: str
    arcs: tuple[Arc, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    names: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    formula: ArcFormula | None = None

    def mentioned(self) -> Iterable[str]:
        """Yield the columns that the statement names, some more than once."""
        for arc in self.arcs if self.formula is None else self.formula.arcs:
            yield from arc
        for tier in self.tiers:
            yield from tier
        yield from self.names
        yield from (name for name, _ in self.limits if name)

    def renamed(self, names: Mapping[str, str]) -> Statement:
        """Return the statement with columns renamed; names: old name -> new name, for every column that occurs."""
        return self._replace(
            arcs=tuple((names[parent], names[child]) for parent, child in self.arcs),
            tiers=tuple(tuple(names[name] for name in tier) for tier in self.tiers),
            names=tuple(names[name] for name in self.names),
            limits=tuple((names[name] if name else "", limit) for name, limit in self.limits),
            formula=None if self.formula is None else self.formula.renamed(names),
        )


@dataclass(frozen=True)
class Knowledge:
    """Statements about a network, which `check` compares with each other and with the columns."""

    statements: tuple[Statement, ...] = ()

    def __add__(self, addition: Knowledge) -> Knowledge:
        return Knowledge(self.statements + addition.statements)

    def __bool__(self) -> bool:
        return bool(self.statements)

    @property
    def in_words(self) -> str:
        """Text for the description of a model class, such as "2 assumed statements"."""
        return f"{plural(len(self.statements), 'assumed statements')}"

    def renamed(self, names: Mapping[str, str]) -> Knowledge:
        """Return the statements with columns renamed; a name that `names` lacks stays, and `check` refuses it."""
        mentioned = {name for statement in self.statements for name in statement.mentioned()}
        new_names = {name: names.get(name, name) for name in sorted(mentioned)}
        return Knowledge(tuple(statement.renamed(new_names) for statement in self.statements))

    def refuse_scm_words(self, reason: str) -> None:
        """Refuse statements that are about SCMs alone; reason: the last part of the message."""
        for statement in self.statements:
            if statement.word in SCM_WORDS:
                raise CalibrantError(f"{statement.source}: '{statement.word}' {reason}")

    def check(self, columns: Sequence[str], left_out: Mapping[str, str] = MappingProxyType({})) -> CheckedKnowledge:
        """Return the statements as masks over the columns; `CalibrantError` names the two lines that clash.

        left_out: column of the table that is not in `columns` -> why it is not, for messages
        """
        return _Checker(columns, self.statements, left_out).checked()


@dataclass(frozen=True)
class CheckedKnowledge:
    """Knowledge that is consistent.

    A mask is an integer whose bit i stands for column i. Tuples have an entry for each column.
    allowed, required: masks of the parents that a column may and must have; limits: its largest number of parents
    earlier: masks of the columns that an order or tiers put before it
    rising, falling: masks of the columns in which it is increasing, and decreasing
    relations: formulas over arcs, all of which hold
    sources: (parent, child) -> why this arc is not allowed
    """

    columns: tuple[str, ...]
    allowed: tuple[int, ...]
    required: tuple[int, ...]
    limits: tuple[int, ...]
    earlier: tuple[int, ...]
    sources: Mapping[tuple[int, int], str] = field(default_factory=dict)
    rising: tuple[int, ...] = ()
    falling: tuple[int, ...] = ()
    relations: tuple[ArcFormula, ...] = ()

    def admits(self, child: int, parents: int) -> bool:
        """Return whether a column may have exactly these parents."""
        return (
            not parents & ~self.allowed[child]
            and not self.required[child] & ~parents
            and parents.bit_count() <= self.limits[child]
        )

    def violations(self, dag: Sequence[int]) -> list[str]:
        """Return a line for each statement that a network violates; dag: mask of the parents of each column."""
        lines = []
        for child, parents in enumerate(dag):
            name = self.columns[child]
            for u, parent in enumerate(self.columns):
                if parents >> u & 1 and not self.allowed[child] >> u & 1:
                    lines.append(f"{parent} -> {name} is not allowed ({self.sources.get((u, child), 'knowledge')})")
                if self.required[child] >> u & 1 and not parents >> u & 1:
                    lines.append(f"{parent} -> {name} is required")
            if parents.bit_count() > self.limits[child]:
                lines.append(f"{name} has {parents.bit_count()} parents, at most {self.limits[child]} are allowed")
        return lines


def parse_statement(word: str, text: str, source: str) -> Statement:
    """Parse the text after one of WORDS."""
    if word not in WORDS:
        raise CalibrantError(f"{source}: unknown word {short_repr(word)}; known: {', '.join(WORDS)}")
    if word == "assert":
        return Statement(word, source, formula=_parse_formula(_lisp_tokens(text, source), source))
    tokens = _tokens(text, _SEPARATORS.get(word, (",",)))
    if word in ARC_WORDS:
        arcs = tuple(_arc(group, source) for group in _split(tokens, ",", source))
        return Statement(word, source, arcs=arcs)
    if word == "tiers":
        tiers = tuple(
            tuple(_name(item, source) for item in _split(group, ",", source)) for group in _split(tokens, "<", source)
        )
        return Statement(word, source, tiers=tiers)
    if word in ("order", "roots", "no-common-parent"):
        names = tuple(_name(group, source) for group in _split(tokens, ",", source))
        if word == "no-common-parent" and len(set(names)) < max(2, len(names)):
            raise CalibrantError(f"{source}: no-common-parent takes two or more different columns, such as A, B")
        return Statement(word, source, names=names)
    if word == "max-parents":
        return Statement(word, source, limits=(("", _limit(tokens, source)),))
    limits = []
    for group in _split(tokens, ",", source):
        name, equals, limit = "".join(group).rpartition("=")
        if not equals or not name:
            raise CalibrantError(f"{source}: {short_repr(' '.join(group))} is not of the form B=1")
        limits.append((_name([name.strip()], source), _limit([limit.strip()], source)))
    return Statement(word, source, limits=tuple(limits))


def _tokens(text: str, separators: Sequence[str]) -> list[str]:
    """Return names and separators; a quoted name stays quoted."""
    either = "|".join(separators)
    pattern = rf'"(?:[^"]|"")*"(?:=[^,]*)?|{either}|(?:(?!{either}|")[^\n])+'
    return [token for token in (part.strip() for part in re.findall(pattern, text)) if token]


def parse_knowledge(text: str, source: str) -> Knowledge:
    """Parse the text of a file with one statement a line; source: name of the file, for messages."""
    statements = []
    for line_number, line in enumerate(text.splitlines(), 1):
        stripped, location = line.strip(), f"{source}, line {line_number}"
        if stripped.startswith("("):
            word, arguments = _parse_command(stripped, location)
            if word == "assert":
                statements.append(parse_statement(word, arguments, location))
        elif stripped and not stripped.startswith(("#", ";")):
            word, _, arguments = stripped.partition(" ")
            statements.append(parse_statement(word, arguments, location))
    return Knowledge(tuple(statements))


def _parse_command(line: str, source: str) -> tuple[str, str]:
    """Return the command of a line of SMT-LIB, and the text of its arguments."""
    tokens = _lisp_tokens(line, source)
    word = tokens[1] if len(tokens) > 1 else ""
    if word != "assert" and word not in SKIPPED_COMMANDS:
        raise CalibrantError(
            f"{source}: unknown command {short_repr(word)}; known: assert, {', '.join(SKIPPED_COMMANDS)}"
        )
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if not depth and index < len(tokens) - 1:
            raise CalibrantError(f"{source}: text after the command; a line holds one command")
    if depth:
        raise CalibrantError(f"{source}: {depth} parentheses are open at its end; a line holds a whole command")
    return word, " ".join(tokens[2:-1])


def _lisp_tokens(text: str, source: str) -> list[str]:
    """Return parentheses, quoted symbols |...| and words; `;` begins a comment."""
    pattern = r"\|[^|]*\||[()]|;.*|[^\s()|;]+|\|"
    tokens = [token for token in re.findall(pattern, text) if not token.startswith(";")]
    if "|" in tokens:
        raise CalibrantError(f"{source}: a symbol |...| is not closed")
    return tokens


def _parse_formula(tokens: Sequence[str], source: str) -> ArcFormula:
    """Parse one formula over arcs, from all of the tokens."""
    stack: list[list[object]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
            if len(stack) > MAX_DEPTH:
                raise CalibrantError(f"{source}: more than {MAX_DEPTH} parentheses inside each other")
        elif token == ")":
            if len(stack) == 1:
                raise CalibrantError(f"{source}: a parenthesis is closed that was not opened")
            inner = stack.pop()
            stack[-1].append(_applied(inner, source))
        else:
            stack[-1].append(token)
    if len(stack) > 1 or len(stack[0]) != 1:
        raise CalibrantError(f"{source}: assert takes one formula, such as (=> |A -> B| |A -> C|)")
    return _as_formula(stack[0][0], source)


def _applied(parts: Sequence[object], source: str) -> ArcFormula:
    """Return an operator applied to formulas. parts: the operator, and its arguments, parsed or as tokens."""
    operator = parts[0] if parts else ""
    if not isinstance(operator, str) or operator not in ARITIES:
        raise CalibrantError(f"{source}: unknown operator {short_repr(str(operator))}; known: {', '.join(ARITIES)}")
    least, largest = ARITIES[operator]
    if not least <= len(parts) - 1 <= (len(parts) if largest is None else largest):
        allowed = f"{least} or more" if largest is None else f"{least}"
        raise CalibrantError(f"{source}: {operator} has {len(parts) - 1} arguments; it takes {allowed}")
    return ArcFormula(operator, tuple(_as_formula(part, source) for part in parts[1:]))


def _as_formula(part: object, source: str) -> ArcFormula:
    if isinstance(part, ArcFormula):
        return part
    text = str(part)
    if text in ("true", "false"):
        return ArcFormula(text)
    parent, arrow, child = text.removeprefix("|").removesuffix("|").partition("->")
    if not text.startswith("|") or not arrow or not parent.strip() or not child.strip():
        raise CalibrantError(f"{source}: {short_repr(text)} is no arc; write |A -> B|, true or false")
    return ArcFormula("arc", arc=(parent.strip(), child.strip()))


def read_knowledge(knowledge: str | Path | Knowledge, source: str) -> Knowledge:
    """Return knowledge read from a file (`Path`) or a text of lines; `Knowledge` is returned unchanged.

    source: name of a text, for messages
    """
    if isinstance(knowledge, Knowledge):
        return knowledge
    if isinstance(knowledge, Path):
        from calibrant.dsl.parse_limits import read_text

        return parse_knowledge(read_text(knowledge), str(knowledge))
    if isinstance(knowledge, str):
        return parse_knowledge(knowledge, source)
    raise CalibrantError(f"{source} is {short_repr(knowledge)}; a text of lines or a pathlib.Path is allowed")


def state_knowledge(
    *,
    require: str | Iterable[str | Arc] = (),
    forbid: str | Iterable[str | Arc] = (),
    tiers: str | Iterable[Iterable[str]] = (),
    order: str | Sequence[str] = (),
    roots: Sequence[str] = (),
    max_parents: int | None = None,
    max_parents_of: Mapping[str, int] | None = None,
) -> Knowledge:
    """Return knowledge stated in Python: texts as in a file, or pairs, lists of names and numbers."""
    statements: list[Statement] = []
    for word, arcs in (("require", require), ("forbid", forbid)):
        for arc in [arcs] if isinstance(arcs, str) else arcs:
            if isinstance(arc, str):
                statements.append(parse_statement(word, arc, f"{word} {arc}"))
            else:
                parent, child = _pair(arc, word)
                statements.append(Statement(word, f"{word} {parent} -> {child}", arcs=((parent, child),)))
    if isinstance(tiers, str):
        statements.append(parse_statement("tiers", tiers, "tiers"))
    elif tiers := [tuple(tier) for tier in tiers]:
        statements.append(Statement("tiers", "tiers", tiers=tuple(tiers)))
    if isinstance(order, str):
        statements.append(parse_statement("order", order, "order"))
    elif order:
        statements.append(Statement("order", "order", names=tuple(order)))
    if roots:
        statements.append(Statement("roots", "roots", names=tuple(roots)))
    if max_parents is not None:
        statements.append(Statement("max-parents", "max_parents", limits=(("", _whole(max_parents, "max_parents")),)))
    if not isinstance(max_parents_of, Mapping | None):
        raise CalibrantError(f"max_parents_of is {short_repr(max_parents_of)}; a mapping such as {{'B': 1}} is allowed")
    for name, limit in (max_parents_of or {}).items():
        source = f"max_parents_of {name}"
        statements.append(Statement("max-parents-of", source, limits=((name, _whole(limit, source)),)))
    return Knowledge(tuple(statements))


def _pair(arc: object, word: str) -> Arc:
    if not isinstance(arc, tuple | list) or len(arc) != 2 or not all(isinstance(name, str) for name in arc):
        raise CalibrantError(f"{word} has {short_repr(arc)}; an arc is a text 'A -> B' or a pair of names")
    return arc[0], arc[1]


def _whole(value: object, source: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CalibrantError(f"{source} is {short_repr(value)}; a whole number from 0 is allowed")
    return value


def _split(tokens: Sequence[str], separator: str, source: str) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            groups.append([])
        else:
            groups[-1].append(token)
    if not all(groups):
        raise CalibrantError(f"{source}: a name is missing beside {short_repr(separator)}")
    return groups


def _arc(tokens: Sequence[str], source: str) -> Arc:
    if len(tokens) != 3 or tokens[1] != "->":
        raise CalibrantError(f"{source}: {short_repr(' '.join(tokens))} is not of the form A -> B")
    return _name(tokens[:1], source), _name(tokens[2:], source)


def _name(tokens: Sequence[str], source: str) -> str:
    if len(tokens) != 1 or tokens[0] in ("->", "<", ","):
        raise CalibrantError(f"{source}: {short_repr(' '.join(tokens))} is no name; quote names with , < or -> in them")
    name = tokens[0]
    return name[1:-1].replace('""', '"') if name.startswith('"') and name.endswith('"') and len(name) > 1 else name


def _limit(tokens: Sequence[str], source: str) -> int:
    if len(tokens) != 1 or not tokens[0].isascii() or not tokens[0].isdigit():
        raise CalibrantError(f"{source}: {short_repr(' '.join(tokens))} is no number of parents; a whole number from 0")
    return int(tokens[0])


class _Checker:
    """Check of statements against each other and the columns; collects the fields of `CheckedKnowledge`."""

    def __init__(self, columns: Sequence[str], statements: Sequence[Statement], left_out: Mapping[str, str]) -> None:
        self.columns = tuple(columns)
        self.left_out = left_out
        self.statements = statements
        self.index = {name: i for i, name in enumerate(columns)}
        num_columns = len(self.columns)
        self.banned: dict[tuple[int, int], str] = {}
        self.required: dict[tuple[int, int], str] = {}
        self.limits: list[tuple[int, str]] = [(num_columns - 1, "")] * num_columns
        self.earlier = [0] * num_columns
        self.directions = {"increasing": [0] * num_columns, "decreasing": [0] * num_columns}
        self.relations: list[ArcFormula] = []

    def checked(self) -> CheckedKnowledge:
        for statement in self.statements:
            self._read(statement)
        clash = next((arc for arc in self.required if arc in self.banned), None)
        if clash is not None:
            arc = " -> ".join(self.columns[v] for v in clash)
            raise CalibrantError(
                f"{self.required[clash]} requires {arc}, which {self.banned[clash]} forbids; take one of them away"
            )
        self._refuse_cycle()
        num_columns = len(self.columns)
        required = [0] * num_columns
        allowed = [((1 << num_columns) - 1) & ~(1 << v) for v in range(num_columns)]
        for (u, v), source in self.required.items():
            required[v] |= 1 << u
            self.banned.setdefault((v, u), f"its reverse is required by {source}")
        for u, v in self.banned:
            allowed[v] &= ~(1 << u)
        for v, (limit, source) in enumerate(self.limits):
            if required[v].bit_count() > limit:
                last = [text for (_, child), text in self.required.items() if child == v][-1]
                raise CalibrantError(
                    f"{self.columns[v]} has {required[v].bit_count()} required parents ({last}), but {source} allows"
                    f" {limit}; raise it or take a required arc away"
                )
        return CheckedKnowledge(
            columns=self.columns,
            allowed=tuple(allowed),
            required=tuple(required),
            limits=tuple(limit for limit, _ in self.limits),
            earlier=tuple(self.earlier),
            sources=dict(self.banned),
            rising=tuple(self.directions["increasing"]),
            falling=tuple(self.directions["decreasing"]),
            relations=tuple(self.relations),
        )

    def _read(self, statement: Statement) -> None:
        source = statement.source
        for parent, child in statement.arcs:
            arc = self._position(parent, source), self._position(child, source)
            if arc[0] == arc[1]:
                raise CalibrantError(f"{source}: {parent} -> {child} is an arc from a column to itself")
            if statement.word in self.directions:
                self.directions[statement.word][arc[1]] |= 1 << arc[0]
            else:
                (self.required if statement.word == "require" else self.banned).setdefault(arc, source)
        if statement.formula is not None:
            for name in (name for arc in sorted(statement.formula.arcs) for name in arc):
                self._position(name, source)
            self.relations.append(statement.formula)
        elif statement.word == "no-common-parent":
            self.relations.append(self._without_common_parent(statement))
        if statement.word == "tiers":
            self._read_tiers(statement)
        elif statement.word == "order":
            self._put_in_order([[self._position(name, source)] for name in statement.names], source)
        elif statement.word == "roots":
            for name in statement.names:
                root = self._position(name, source)
                for u in range(len(self.columns)):
                    if u != root:
                        self.banned.setdefault((u, root), source)
        for name, limit in statement.limits:
            for v in range(len(self.columns)) if statement.word == "max-parents" else [self._position(name, source)]:
                if limit < self.limits[v][0]:
                    self.limits[v] = limit, source

    def _without_common_parent(self, statement: Statement) -> ArcFormula:
        for name in statement.names:
            self._position(name, statement.source)
        pairs = [
            ArcFormula("not", (ArcFormula("and", (_arc_formula(u, a), _arc_formula(u, b))),))
            for a, b in combinations(statement.names, 2)
            for u in self.columns
            if u not in (a, b)
        ]
        return ArcFormula("and", tuple(pairs))

    def _read_tiers(self, statement: Statement) -> None:
        tiers = [[self._position(name, statement.source) for name in tier] for tier in statement.tiers]
        members = [v for tier in tiers for v in tier]
        missing = [name for v, name in enumerate(self.columns) if v not in members]
        if missing:
            raise CalibrantError(f"{statement.source}: no tier has {', '.join(missing)}; every column is in one tier")
        twice = [self.columns[v] for v in members if members.count(v) > 1]
        if twice:
            raise CalibrantError(f"{statement.source}: {twice[0]} is in two tiers; every column is in one")
        self._put_in_order(tiers, statement.source)

    def _put_in_order(self, groups: Sequence[Sequence[int]], source: str) -> None:
        if len({v for group in groups for v in group}) < sum(map(len, groups)):
            raise CalibrantError(f"{source}: a column is named twice")
        before: list[int] = []
        for group in groups:
            for v in group:
                self.earlier[v] |= sum(1 << u for u in before)
                for u in before:
                    self.banned.setdefault((v, u), source)
            before += group

    def _position(self, name: str, source: str) -> int:
        if name not in self.index:
            no_column = f"{short_repr(name)} is no column; columns: {', '.join(self.columns)}"
            raise CalibrantError(f"{source}: {self.left_out.get(name, no_column)}")
        return self.index[name]

    def _refuse_cycle(self) -> None:
        """Raise `CalibrantError` if required arcs form a cycle; it names two statements of the cycle."""
        children: dict[int, list[int]] = {}
        for parent, child in self.required:
            if (path := _find_path(children, child, parent)) is not None:
                closing = " -> ".join(self.columns[v] for v in (*path, child))
                sources = dict.fromkeys((self.required[parent, child], self.required[path[0], path[1]]))
                stated = f"{' and '.join(sources)} require{'s' if len(sources) == 1 else ''}"
                raise CalibrantError(f"{stated} the cycle {closing}; take one of its arcs away")
            children.setdefault(parent, []).append(child)


def _arc_formula(parent: str, child: str) -> ArcFormula:
    return ArcFormula("arc", arc=(parent, child))


def _find_path(children: Mapping[int, Sequence[int]], start: int, end: int) -> list[int] | None:
    """Return the nodes of a directed path from start to end; None without one."""
    stack = [[start]]
    visited = {start}
    while stack:
        path = stack.pop()
        if path[-1] == end:
            return path
        for v in children.get(path[-1], ()):
            if v not in visited:
                visited.add(v)
                stack.append([*path, v])
    return None
