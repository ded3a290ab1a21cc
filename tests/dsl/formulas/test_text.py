"""Mechanism texts: the published vectors, and round trips between texts and formulas. Errors: test_text_errors."""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import product
from types import FrameType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas import text as reading
from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.formulas.text import MAX_NESTING, MAX_TEXT, STANDARD, Grammar, infix, parse, parse_infix, render
from tests.support.effort import examples
from tests.support.replayscm.brute_force import Tree
from tests.support.replayscm.strategies import (
    FULL_GRAMMAR,
    SPACES,
    any_formulas,
    formula_of,
    formulas,
    grammars,
    names,
    spellings,
    trees,
)
from tests.support.shared import shared_records


def _grammar(vector: dict[str, Any]) -> Grammar:
    """Return the grammar of a vector.

    The published reader strips the listed operator names. It does not change case, and an empty list allows none.
    """
    return Grammar(tuple(name.strip() for name in vector["allowedOperators"]), vector["allowConstants"])


def _parsed(vector: dict[str, Any]) -> Formula | ParseError:
    allowed = vector["allowedVariables"]
    try:
        return parse(vector["expression"], _grammar(vector), None if allowed is None else frozenset(allowed))
    except ParseError as error:
        return error


def test_legal_vectors_parse_to_what_they_say() -> None:
    legal = [vector for vector in shared_records("dsl_vectors.jsonl") if vector["expect"]["ok"]]
    assert len(legal) == 291
    for vector in legal:
        expect, formula = vector["expect"], _parsed(vector)
        assert isinstance(formula, Formula), (vector["id"], formula)
        assert formula.size == expect["astSize"], vector["id"]
        assert formula.depth == expect["depth"], vector["id"]
        assert list(formula.variables) == expect["variablesNatural"], vector["id"]
        assert formula.operator_counts == expect["operatorCounts"], vector["id"]
        assert render(formula) == expect["sexpr"], vector["id"]


def test_legal_vectors_mean_what_they_say() -> None:
    """Both ways to a truth table: row by row, and on bit columns. The vectors put the first variable first."""
    for vector in shared_records("dsl_vectors.jsonl"):
        formula = _parsed(vector)
        if isinstance(formula, Formula):
            expected = vector["expect"]["truthTableMsbFirst"]
            rows = product((0, 1), repeat=len(formula.variables))
            values = [evaluate(formula, dict(zip(formula.variables, row, strict=True))) for row in rows]
            assert "".join(map(str, values)) == expected, vector["id"]
            assert from_formula(formula, formula.variables[::-1]).bits == int(expected[::-1], 2), vector["id"]


def test_illegal_vectors_are_refused_for_the_published_reason() -> None:
    illegal = [vector for vector in shared_records("dsl_vectors.jsonl") if not vector["expect"]["ok"]]
    assert len(illegal) == 228
    for vector in illegal:
        error, category = _parsed(vector), vector["expect"]["category"]
        assert isinstance(error, ParseError), (vector["id"], error)
        # where the published scorer overflows its stack, any clean refusal will do; ours says why
        assert error.kind == ("too_deep" if category == "crash" else category), vector["id"]
        assert vector["expression"].startswith(error.token, error.position), vector["id"]


@given(any_formulas(max_size=25))
@settings(deadline=None, max_examples=examples(150))
def test_what_is_rendered_parses_back(formula: Formula) -> None:
    text = render(formula)
    assert parse(text, FULL_GRAMMAR, formula.variables) == formula
    assert " ".join(text.replace("(", " ( ").replace(")", " ) ").split()).replace("( ", "(").replace(" )", ")") == text


@given(names().flatmap(lambda over: trees(over, grammar=FULL_GRAMMAR, max_size=10)), st.data())
@settings(deadline=None, max_examples=examples(150))
def test_spacing_and_parenthesised_atoms_do_not_matter(tree: Tree, data: st.DataObject) -> None:
    assert parse(data.draw(spellings(tree)), FULL_GRAMMAR) == formula_of(tree)


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_white_space_separates(space: str) -> None:
    assert parse(f"{space}(and{space}X1{space}X2){space}") == parse("(and X1 X2)")


def test_only_the_standard_operators_are_allowed_unless_others_are_listed() -> None:
    assert STANDARD.operators == ("not", "and", "or", "xor", "iff")
    with pytest.raises(ParseError, match="operator 'if' is not allowed"):
        parse("(if X1 X2 X3)")
    assert parse("(if X1 X2 X3)", Grammar(tuple(OPERATORS))).operator_counts == {"if": 1}
    with pytest.raises(ParseError, match="operator 'not' is not allowed"):
        parse("(not X1)", Grammar(()))


# --- Formulas as people write them, read back by Python's own rules of precedence -------------------------------------


class Bit(SimpleNamespace):
    """A bit under Python's operators: ~ binds tightest, as `not` does in what `infix` writes."""

    value: bool

    def __invert__(self) -> Bit:
        return Bit(value=not self.value)

    def __and__(self, other: Bit) -> Bit:
        return Bit(value=self.value and other.value)

    def __or__(self, other: Bit) -> Bit:
        return Bit(value=self.value or other.value)

    def __xor__(self, other: Bit) -> Bit:
        return Bit(value=self.value != other.value)

    def __lshift__(self, other: Bit) -> Bit:  # iff
        return Bit(value=self.value == other.value)


def _calls(name: str) -> object:
    return lambda *bits: Bit(value=OPERATORS[name].truth([bit.value for bit in bits]))


def read_by_python(text: str, row: dict[str, int]) -> int:
    spelled = f" {text} ".replace("not ", "~").replace(" and ", " & ").replace(" or ", " | ").replace(" xor ", " ^ ")
    names = {name: Bit(value=bool(bit)) for name, bit in row.items()}
    calls = {f"call_{name}": _calls(name) for name in OPERATORS}
    for name in OPERATORS:
        spelled = spelled.replace(f"{name}(", f"call_{name}(")
    return int(eval(spelled.replace(" iff ", " << "), {}, names | calls).value)


@given(formulas(("X1", "X2", "X3", "X4")))
def test_infix_means_the_same(formula: Formula) -> None:
    names = formula.variables[:4]
    for bits in product((0, 1), repeat=len(names)):
        row = dict.fromkeys(formula.variables, 0) | dict(zip(names, bits, strict=True))
        assert read_by_python(infix(formula), row) == evaluate(formula, row)


def test_infix_has_few_parentheses() -> None:
    assert infix(parse("(and X1 (not X2))")) == "X1 and not X2"
    assert infix(parse("(not (or X1 (and X2 X3)))")) == "not (X1 or (X2 and X3))"
    assert infix(parse("(xor X1 X2 X3)")) == "X1 xor X2 xor X3"
    assert infix(parse("(iff X1 (and X2 X3))")) == "X1 iff (X2 and X3)"
    assert infix(parse("(iff X1 X2 X3)")) == "iff(X1, X2, X3)"


@given(formulas(("X1", "X2", "X3", "X4")))
def test_what_is_written_in_infix_is_read_back(formula: Formula) -> None:
    grammar = Grammar(tuple(OPERATORS), allow_constants=True)
    names = ("X1", "X2", "X3", "X4")
    assert parse_infix(infix(formula), grammar, names) == formula
    assert parse_infix(render(formula), grammar, names) == formula


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("x1 & !x2 | x3", "(or (and X1 (not X2)) X3)"),
        ("X1 or X2 and not X3", "(or X1 (and X2 (not X3)))"),
        ("not (X1 xor X2) and X3", "(and (not (xor X1 X2)) X3)"),
        ("(not X1) and X2", "(and (not X1) X2)"),
        ("(X1 and X2) and X3", "(and (and X1 X2) X3)"),
        ("iff(X1, X2, X3) == X1", "(iff (iff X1 X2 X3) X1)"),
    ],
)
def test_infix_binds_as_people_expect(text: str, prefix: str) -> None:
    assert parse_infix(text, variables=("X1", "X2", "X3")) == parse(prefix)


@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        ("X1 xor X2 and X3", "trailing", 10),
        ("X1 or X2 xor X3", "trailing", 9),
        ("X1 iff X2 iff X3", "trailing", 10),
        ("X1 and", "unexpected_end", 6),
        ("X1 and or X2", "invalid_symbol", 7),
        ("X9", "variable_not_allowed", 0),
        ("(X1", "missing_close", 3),
        ("X1 X2", "trailing", 3),
        ("X1  <", "invalid_symbol", 4),
        ("", "empty", 0),
        ("1", "constants_forbidden", 0),
        ("(and X1)", "arity_low", 1),
        ("if(X1, X2, X3)", "operator_not_allowed", 13),
        ("not " * 200 + "X1", "too_deep", 396),
        ("(" * 5_000, "too_long", 4_000),
        ("(" * 500, "too_deep", 100),
    ],
)
def test_what_is_no_infix_formula_is_refused_at_its_place(text: str, kind: str, position: int) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_infix(text, variables=("X1", "X2", "X3"))
    assert (refusal.value.kind, refusal.value.position) == (kind, position)


# --- What is not a mechanism text: kind and place of every error, and hostile input -----------------------------------
MAX_MESSAGE = 400  # characters of one line, whatever the input was


def _check_fields(error: ParseError, text: str) -> None:
    """Check that the position is that of the culprit, a whole token, or the end of the text; one line of message."""
    end = error.position + len(error.token)
    assert text[error.position : end] == error.token
    if not error.token:
        assert error.position == (MAX_TEXT if error.kind == "too_long" else len(text))
    elif error.token not in "()":
        neighbours = text[: error.position][-1:] + text[end:][:1]
        assert not any(character.isspace() for character in error.token)
        assert all(character.isspace() or character in "()" for character in neighbours)
    message = str(error)
    assert message.isprintable()
    assert message.isascii()
    assert len(message) <= MAX_MESSAGE
    assert error.message in message
    assert error.allowed in message


AT = Grammar(("not", "and", "if"))
REFUSED = [  # kind, text, position, token
    ("empty", "", 0, ""),
    ("empty", " \u3000 ", 3, ""),
    ("unexpected_end", "(", 1, ""),
    ("unexpected_close", ") X1", 0, ")"),
    ("missing_close", "(and X1 X2 ", 11, ""),
    ("missing_close", "(and X1 (not X2)", 16, ""),
    ("trailing", "X1 X2", 3, "X2"),
    ("trailing", "(not X1) )", 9, ")"),
    ("empty_list", "(and X1 ())", 8, "("),
    ("too_deep", "(not " * 497 + "X1" + ")" * 497, 5 * 496, "("),
    ("too_long", "X1 " * 333_334, 1_000_000, ""),
    ("unknown_operator", "(nand X1 X2)", 1, "nand"),
    ("unknown_operator", "((X1))", 1, "("),
    ("unknown_operator", "(X1 X2)", 1, "X1"),
    ("operator_not_allowed", "(not (or X1 X2))", 6, "or"),
    ("arity_low", "(and X1 (and\tX2 ))", 9, "and"),
    ("arity_low", "(if X1 X2)", 1, "if"),
    ("arity_high", "(not  X1 X2)", 1, "not"),
    ("arity_high", "(if X1 X2 X1 X2)", 1, "if"),
    ("invalid_symbol", "(and X1, X2)", 5, "X1,"),
    ("invalid_symbol", "(and X1 00)", 8, "00"),
    ("invalid_symbol", "(not \ufeffX1)", 5, "\ufeffX1"),
    ("variable_not_allowed", "(not X3)", 5, "X3"),
    ("variable_not_allowed", "(and and X1)", 5, "and"),
    ("variable_not_allowed", "(not (x1))", 6, "x1"),
    ("constants_forbidden", "(and X1 (0))", 9, "0"),
    ("unknown_operator", "(bad X1 (and X1 X2))", 1, "bad"),
    ("invalid_symbol", "(bad X1 (not ?))", 13, "?"),  # arguments are read before the operator is judged
    ("operator_not_allowed", "(or X1)", 1, "or"),  # and the operator before its arity
]
KINDS = {
    *("empty", "unexpected_end", "unexpected_close", "missing_close", "trailing", "empty_list", "too_deep", "too_long"),
    *("unknown_operator", "operator_not_allowed", "arity_low", "arity_high"),
    *("invalid_symbol", "variable_not_allowed", "constants_forbidden"),
}


@pytest.mark.parametrize(("kind", "text", "position", "token"), REFUSED, ids=lambda part: str(part)[:24])
def test_every_kind_of_error_names_its_culprit(kind: str, text: str, position: int, token: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, AT, {"X1", "X2"})
    error = caught.value
    assert (error.kind, error.position, error.token) == (kind, position, token)
    _check_fields(error, text)


def test_every_documented_kind_is_in_the_list_above() -> None:
    assert {kind for kind, *_ in REFUSED} == KINDS
    documented = (ParseError.__doc__ or "").partition("kind:")[2].partition("position:")[0]
    assert set(documented.replace("|", " ").split()) == KINDS


PIECES = ["(", ")", " ", "(and", "(not", "(if", "iff", "X1", "X2", "X3", "0", "1", "?", "X1,", "\n", "\u200b", "\ud800"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(st.characters(), max_size=20), grammars())
@settings(deadline=None, max_examples=examples(400))
def test_any_text_is_a_formula_or_a_located_error(text: str, grammar: Grammar) -> None:
    try:
        formula = parse(text, grammar, {"X1", "X2"})
    except ParseError as error:
        _check_fields(error, text)
    else:
        assert parse(render(formula), grammar) == formula
        assert set(formula.variables) <= {"X1", "X2"}
        assert set(formula.operator_counts) <= set(grammar.operators)


@given(st.data())
@settings(deadline=None, max_examples=examples(150))
def test_a_damaged_formula_is_refused_at_a_token(data: st.DataObject) -> None:
    """Taking any one parenthesis out of a compound formula leaves no formula."""
    tree = data.draw(trees(("X1", "X2"), max_size=10).filter(lambda tree: isinstance(tree, tuple)))
    text = data.draw(spellings(tree))
    place = data.draw(st.sampled_from([i for i, character in enumerate(text) if character in "()"]))
    damaged = text[:place] + " " + text[place + 1 :]
    with pytest.raises(ParseError) as caught:
        parse(damaged)
    _check_fields(caught.value, damaged)


def _calls_to_parse(text: str) -> int:
    """Return the number of function calls that parsing makes: a measure of work that no busy machine disturbs."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        with suppress(ParseError):
            parse(text)
    finally:
        sys.setprofile(before)
    return calls


def _refusal(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text)
    _check_fields(caught.value, text)
    return caught.value


MANY = 100_000
NESTED = {
    "opening": ("(" * MANY, "too_deep"),
    "empty": ("(" * MANY + ")" * MANY, "too_deep"),
    "around an atom": ("(" * MANY + "X1" + ")" * MANY, "too_deep"),
    "not": ("(not " * MANY + "X1" + ")" * MANY, "too_deep"),
    "left": ("(and" * MANY + " X1" + " X1)" * MANY, "too_deep"),
    "right": ("(and X1" * MANY + " X1" + ")" * MANY, "too_deep"),
    "unclosed": ("(xor X1 (not X1)" * 50_000, "too_deep"),
    "not a head": ("(X1" * MANY, "too_deep"),
    "closing": (")" * MANY, "unexpected_close"),
    "side by side": ("()" * MANY, "empty_list"),
    "atoms side by side": ("(X1)" * MANY, "trailing"),
}


@pytest.mark.parametrize("shape", NESTED)
def test_a_hundred_thousand_parentheses_are_refused_at_once(shape: str) -> None:
    text, kind = NESTED[shape]
    error = _refusal(text)
    assert error.kind == kind
    assert _calls_to_parse(text) <= 5 * (error.position + 100)  # what follows the culprit is not looked at


@pytest.mark.parametrize("unit", ["X1 ", "(", "()", "(not ", "\0", " ", "\ud800", "é"])
def test_ten_megabytes_are_not_even_split(unit: str) -> None:
    text = unit * (10_000_000 // len(unit))
    assert _refusal(text).kind == "too_long"
    assert _calls_to_parse(text) <= 50


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("X1\0", "invalid_symbol"),
        ("(and X1 \0X2)", "invalid_symbol"),
        ("\0", "invalid_symbol"),
        ("(\0 X1)", "unknown_operator"),
        ("\ud800", "invalid_symbol"),
        ("(not \udfff\ud800)", "invalid_symbol"),
        ("(\udc80 X1 X2)", "unknown_operator"),
        ("X1\udc80", "invalid_symbol"),
        ("X" * 999_998 + "é", "invalid_symbol"),
        ("(" + "x" * 900_000 + " X1)", "unknown_operator"),
        ("(and X1 X2) " + "\U0001f600" * 900_000, "trailing"),
    ],
    ids=range(11),
)
def test_hostile_characters_are_refused_in_one_line(text: str, kind: str) -> None:
    assert _refusal(text).kind == kind


def test_work_grows_with_the_number_of_tokens() -> None:
    small, middle, large = (_calls_to_parse("(and" + " (not X1)" * n + ")") for n in (1_000, 2_000, 4_000))
    assert large - middle <= 2 * (middle - small) + 50
    assert large <= 20 * 4_000


def test_the_longest_text_is_read() -> None:
    num_arguments = (MAX_TEXT - len("(xor)")) // len(" X1")
    text = "(xor" + " X1" * num_arguments + ")"
    assert parse(text.ljust(MAX_TEXT)).size == 1 + num_arguments
    assert _refusal(text.ljust(MAX_TEXT + 1)).kind == "too_long"


DEEPEST = 496  # the last that passed the published scorer
CHAINS = {
    "not": ("(not ", "X1", ")"),
    "left": ("(and ", "X1", " X2)"),
    "right": ("(iff X1 X2 ", "X1", ")"),
    "atom in parentheses": ("(not ", "(X1)", ")"),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_how_deep_operators_may_nest(chain: str) -> None:
    opening, atom, closing = CHAINS[chain]
    formula = parse(opening * DEEPEST + atom + closing * DEEPEST)
    assert formula.depth == DEEPEST + 1
    assert parse(render(formula)) == formula
    error = _refusal(opening * (DEEPEST + 1) + atom + closing * (DEEPEST + 1))
    assert (error.kind, error.position) == ("too_deep", len(opening) * DEEPEST)


@pytest.mark.parametrize("character", ["\u200b", "\ufeff", "\u2060", ",", ";", "\0"], ids=ascii)
def test_other_characters_do_not_separate(character: str) -> None:
    assert _refusal(f"(and X1{character}X2 X1)").kind == "invalid_symbol"


# --- The fast reader of ordinary spellings gives what the full parser gives, and refuses what it refuses -------------


VARIABLES = frozenset({"X1", "X2", "X3", "and"})
GRAMMARS = (STANDARD, Grammar(("not", "and", "if"), True), Grammar(("bogus", "or"), False))
TOKENS = [
    "(",
    ")",
    " ",
    "X1",
    "X2",
    "X9",
    "and",
    "or",
    "not",
    "xor",
    "iff",
    "if",
    "0",
    "(and",
    "(not ",
    "(X1)",
    "\t",
    "\u2003",
    "((",
]


def _operator(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(["and", "or", "not", "xor", "iff", "if"])
    return st.builds(lambda name, own: f"({name} {' '.join(own)})", names, st.lists(arguments, min_size=1, max_size=4))


FORMULAS = st.recursive(st.sampled_from(["X1", "X2", "X3", "(X1)", "and"]), _operator, max_leaves=12)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(FORMULAS)
    place = draw(st.integers(0, len(text) - 1))
    return text[:place] + draw(st.sampled_from(["", " ", "(", ")", "X1", "\x00"])) + text[place + 1 :]


def outcome(text: str, grammar: Grammar) -> Formula | tuple[str, str]:
    try:
        return parse(text, grammar, VARIABLES)
    except ParseError as error:
        return str(error), error.kind


@settings(max_examples=examples(600), deadline=None)
@example(text="and", grammar=STANDARD)
@example(text="(and and and)", grammar=STANDARD)
@given(
    text=FORMULAS | damaged() | st.lists(st.sampled_from(TOKENS), max_size=12).map("".join),
    grammar=st.sampled_from(GRAMMARS),
)
def test_both_readers_say_the_same(text: str, grammar: Grammar) -> None:
    either = outcome(text, grammar)
    with patch.object(reading, "_plain", return_value=None):
        assert outcome(text, grammar) == either


@pytest.mark.parametrize("depth", range(MAX_NESTING - 1, MAX_NESTING + 3))
@pytest.mark.parametrize("opening", ["(not ", "(and X1 "])
def test_both_readers_end_at_the_same_depth(depth: int, opening: str) -> None:
    text = opening * depth + "X1" + ")" * depth
    either = outcome(text, STANDARD)
    assert isinstance(either, Formula) == (depth <= MAX_NESTING)
    with patch.object(reading, "_plain", return_value=None):
        assert outcome(text, STANDARD) == either


def test_the_fast_reader_reads_ordinary_spellings() -> None:
    """Otherwise the comparison above would compare the parser with itself."""
    for text in ("X1", "(not X1)", "(and X1 (or X2 X3))", "  (iff X1 X2 X3) "):
        assert reading._plain(text, STANDARD, VARIABLES) is not None
