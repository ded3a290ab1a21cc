"""From an answer to a candidate: the order of checks, stage by stage, and what decides legality (docs/semantics.md)."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.dsl.formulas.text import Grammar, parse, render
from calibrant.dsl.replayscm import _kernels_evaluator, evaluator
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.evaluator import MAX_CANDIDATE_CHARS, MAX_WORD_VARS, Judge, Programs, compile_texts
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.submission import (
    MIN_NEW,
    NOVELTY,
    JudgedMechanism,
    Rejection,
    Submission,
    SubmissionChecker,
    mechanism_stats,
)
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.dsl.text import natural_key
from tests.fuzz.texts import case
from tests.support.effort import effort, examples
from tests.support.replayscm.strategies import answer_of, arbitrary_worlds, legal_maps, problems, scms
from tests.support.replayscm.written import written_problem, written_scm, written_world

GOLD = written_scm("X3 X6", X1="(not X3)", X4="(xor X1 X6)")
ROWS = written_world("train_00", "X1 X3 X4 X6", "1010 0101")
ORDERED = Ordered(("X3", "X6", "X1", "X4"), ("X3", "X6"))
BLOCKS = Blocks((("X1", "X3", "X6"), ("X4",)), ("X3", "X6"))
ONE_BLOCK = Blocks((("X3", "X6"), ("X1", "X4")), ("X3", "X6"))
HIDDEN = HiddenOrder(("X1", "X3", "X4", "X6"), ("X3", "X6"))
ROOTS = HiddenRoots(("X1", "X3", "X4", "X6"), 2)
GOOD = {"X1": "(not X3)", "X4": "(xor X1 X6)"}


def _checker(disclosure: Disclosure, **given: Any) -> SubmissionChecker:
    if isinstance(disclosure, HiddenRoots):
        given["kind"] = TaskKind.ROOTS
    return SubmissionChecker(written_problem(disclosure, GOLD, [ROWS], latent="X3 X6 X1 X4", **given))


def _rejection(disclosure: Disclosure, answer: dict[str, Any], **given: Any) -> Rejection:
    found = _checker(disclosure, **given).mechanisms(answer)
    assert isinstance(found, Rejection)
    assert "\n" not in found.reason
    return found


# --- one stage after the other ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [{}, {"mechanisms": None}, {"mechanisms": []}, {"mechanisms": "{}"}, {"X1": "X3"}])
@pytest.mark.parametrize("disclosure", [ORDERED, BLOCKS, HIDDEN])
def test_mechanisms_have_to_be_an_object(disclosure: Disclosure, answer: dict[str, Any]) -> None:
    assert _rejection(disclosure, answer).stage == "schema"


@pytest.mark.parametrize(
    ("mechanisms", "key", "culprits"),
    [
        (GOOD | {"X9": "X3"}, "unknownMechanismKeys", ["X9"]),
        (GOOD | {"X6": "X3"}, "unknownMechanismKeys", ["X6"]),  # a root counts as unknown
        (GOOD | {"x1": "X3", " X1": "X3"}, "unknownMechanismKeys", [" X1", "x1"]),  # compared as exact strings
        ({"X1": "X3", "X9": "X3"}, "unknownMechanismKeys", ["X9"]),  # unknown before missing
        ({"X4": "X3"}, "missingMechanismKeys", ["X1"]),
        ({}, "missingMechanismKeys", ["X1", "X4"]),
    ],
)
def test_keys_have_to_be_the_endogenous_variables(mechanisms: dict[str, str], key: str, culprits: list[str]) -> None:
    for disclosure in (ORDERED, BLOCKS, HIDDEN):
        rejection = _rejection(disclosure, {"mechanisms": mechanisms})
        assert (rejection.stage, rejection.fields) == ("keys", {key: culprits, "expectedKeys": ["X1", "X4"]})


@pytest.mark.parametrize("text", ["", "  ", "\n", "\t ", None, True, 1, 0.5, ["X3"], {"op": "not"}])
def test_a_mechanism_is_a_text_that_is_not_blank(text: Any) -> None:
    rejection = _rejection(HIDDEN, {"mechanisms": GOOD | {"X4": text}})
    assert (rejection.stage, rejection.fields["variable"]) == ("parse", "X4")


@pytest.mark.parametrize("inside", ["\n", "\r", "\t", "\r\n"])
def test_line_breaks_and_tabs_may_stand_around_a_mechanism_only(inside: str) -> None:
    broken = {"mechanisms": GOOD | {"X1": f"(not{inside}X3)"}}
    assert _rejection(ORDERED, broken).stage == "parse"
    around = {"mechanisms": GOOD | {"X1": f"{inside}(not X3){inside}"}}
    assert isinstance(_checker(ORDERED).mechanisms(around), Submission)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("(not X3", "parse"),
        ("(not X3) X6", "parse"),
        ("(nand X3 X6)", "parse"),
        ("(and X3)", "parse"),
        ("((X3))", "parse"),
        ("(if X3 X6 X3)", "parse"),
        ("1", "parse"),
        ("X7", "parse"),  # not a variable at all
        ("not", "parse"),
        ("X1", "legal"),  # a variable, but not one that X1 may mention
        ("(xor X3 X1 X1)", "legal"),  # even where it has no effect
        ("X4", "legal"),
        ("(not X4", "legal"),  # the first error of the text decides
        ("(frob X4)", "legal"),  # arguments are read before the operator is
        ("(frob X3)", "parse"),
    ],
)
def test_the_stage_of_a_bad_mechanism(text: str, stage: str) -> None:
    rejection = _rejection(ORDERED, {"mechanisms": GOOD | {"X1": text}})
    assert (rejection.stage, rejection.fields["variable"]) == (stage, "X1")
    assert "parseError" in rejection.fields


def test_the_first_bad_mechanism_in_latent_order_is_reported() -> None:
    answer = {"mechanisms": {"X4": "(", "X1": ")"}}
    assert _rejection(HIDDEN, answer).fields["variable"] == "X1"
    gold = written_scm("X3 X6", X4="(not X3)", X1="(xor X4 X6)")
    rejection = SubmissionChecker(written_problem(HIDDEN, gold, [ROWS])).mechanisms(answer)
    assert isinstance(rejection, Rejection)
    assert rejection.fields["variable"] == "X4"


@pytest.mark.parametrize("disclosure", [ONE_BLOCK, HIDDEN])
@pytest.mark.parametrize(
    ("mechanisms", "stage"),
    [
        ({"X1": "X4", "X4": "X1"}, "acyclic"),
        ({"X1": "(and X4 X3)", "X4": "(xor X6 X1 X1)"}, "acyclic"),  # mentions count, not functions
        ({"X1": "(and X4 X3)", "X4": "(or X6 (and X6 X1))"}, "acyclic"),
        ({"X1": "X4", "X4": "(X1"}, "parse"),  # every mechanism is read before circles are looked for
        ({"X1": "X1", "X4": "X1"}, "legal"),  # a self-mention is no circle but illegal
    ],
)
def test_circles_of_mentions_are_the_last_stage(disclosure: Disclosure, mechanisms: Any, stage: str) -> None:
    rejection = _rejection(disclosure, {"mechanisms": mechanisms})
    assert rejection.stage == stage
    if stage == "acyclic":
        assert rejection.fields == {"cycleVariables": ["X1", "X4"]}


def test_if_and_constants_only_where_the_grammar_has_them() -> None:
    answer = {"mechanisms": {"X1": "(if X3 (0) X6)", "X4": "1"}}
    liberal = Grammar(("not", "and", "or", "xor", "iff", "if"), allow_constants=True)
    assert isinstance(_checker(ORDERED, grammar=liberal).mechanisms(answer), Submission)
    for grammar in (Grammar(liberal.operators), Grammar(allow_constants=True), Grammar(("not",))):
        assert _rejection(ORDERED, answer, grammar=grammar).stage == "parse"


# --- Hidden-roots -----------------------------------------------------------------------------------------------------

# one answer for every check, in the published order; each passes the earlier checks
WRONG: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "roots is a list": ({"roots": {"X3": 1}, "mechanisms": None}, "schema", {}),
    "mechanisms is an object": ({"roots": ["X3", "X3", "Q"], "mechanisms": []}, "schema", {}),
    "no duplicate": ({"roots": ["X3", "X3", "Q"], "mechanisms": {}}, "keys", {"predictedRoots": ["X3", "X3", "Q"]}),
    "observed variables": ({"roots": ["X3", "X6", "Q"], "mechanisms": {}}, "keys", {}),
    "right number": ({"roots": ["X3", "X6", "X1"], "mechanisms": {}}, "keys", {}),
    "complement": (
        {"roots": ["X3", "X6"], "mechanisms": {"X3": "X6", "X1": "("}},
        "keys",
        {"unknownMechanismKeys": ["X3"], "missingMechanismKeys": ["X4"]},
    ),
}


@pytest.mark.parametrize("check", WRONG)
def test_the_root_checks_come_in_the_published_order(check: str) -> None:
    answer, stage, fields = WRONG[check]
    found = _checker(ROOTS).roots(answer)
    assert isinstance(found, Rejection)
    assert (found.stage, found.fields) == (stage, fields)
    words = {"no duplicate": "twice", "observed variables": "not observed", "right number": "exactly 2"}
    assert words.get(check, "") in found.reason


@pytest.mark.parametrize(
    "roots",
    [
        *([None, "X3"], [3, "X3"], ["X3 ", "X6"], ["x3", "X6"], [["X3"], "X6"], ["X3"], [], "X3 X6", None),
        *(["X3 X6"], ["X3 X6", ""], ["", "X3 X6"], ["X3", " X6"], ["X3", "X6", ""], ("X3", "X6"), {"X3": 0, "X6": 0}),
    ],
)
def test_these_are_no_roots_whatever_list_was_met_before(roots: Any) -> None:
    met = _checker(ROOTS)
    for _ in range(2):
        assert met.roots({"roots": ["X3", "X6"], "mechanisms": GOOD}) == ("X3", "X6")
    for checker in (met, _checker(ROOTS)):
        assert isinstance(checker.roots({"roots": roots, "mechanisms": GOOD}), Rejection)


# --- drawn ------------------------------------------------------------------------------------------------------------

PROBLEMS = problems(settings=("Ordered", "Block", "Hidden-order", "Hidden-roots"))


def _check(problem: Problem, mechanisms: dict[str, Formula]) -> Submission | Rejection:
    checker, answer = SubmissionChecker(problem), answer_of(problem, mechanisms)
    if problem.task.kind is TaskKind.SCM:
        return checker.mechanisms(answer)
    named = checker.roots(answer)
    return named if isinstance(named, Rejection) else checker.given_roots(named, answer["mechanisms"])


@given(PROBLEMS, st.data())
@settings(deadline=None, max_examples=examples(80))
def test_a_legal_map_is_replayed_in_the_smallest_order(problem: Problem, data: st.DataObject) -> None:
    """Smallest of all topological orders by block, then latent position; for Ordered the order itself."""
    mechanisms = data.draw(legal_maps(problem.task.disclosure, problem.sealed.latent_order))
    found = _check(problem, mechanisms)
    assert isinstance(found, Submission)
    assert found.candidate.mechanisms == mechanisms
    disclosure, latent = problem.task.disclosure, problem.sealed.latent_order
    blocks = disclosure.blocks if isinstance(disclosure, Blocks) else (latent,)

    def key(variable: str) -> tuple[int, int]:
        return [variable in block for block in blocks].index(True), latent.index(variable)

    orders = [
        order
        for order in permutations(mechanisms)
        if all(mechanisms[v].mentioned.isdisjoint(order[i:]) for i, v in enumerate(order))
    ]
    if isinstance(disclosure, Ordered):
        orders = [tuple(v for v in disclosure.order if v in mechanisms)]
    assert found.candidate.order == min(orders, key=lambda order: [key(v) for v in order])


# --- Programs from mechanism texts in compiled code: those that the parser's formulas come to, and the parser's errors
LOAD, STORE = 6, 8


def program(text: str, names: tuple[str, ...] = ("X1", "X2", "X10"), grammar: Grammar | None = None) -> list[int]:
    found = compile_texts([text], names, names[-1:], grammar or Grammar())
    *code, stored = found.code.tolist()
    assert stored == (len(names) - 1) << 4 | STORE
    return list(code)


def test_operations_follow_their_arguments() -> None:
    """Written down from the grammar: X2 is variable 1, an n-ary `xor` is one instruction of arity n."""
    load = [0 << 4 | LOAD, 1 << 4 | LOAD, 2 << 4 | LOAD]
    assert program("X2") == [load[1]]
    assert program("  (xor X1 X10   X2)") == [load[0], load[2], load[1], 3 << 4 | OPERATORS["xor"].code]
    inner = [load[0], 1 << 4 | OPERATORS["not"].code, load[1]]
    assert program("(and(not X1)X2)") == [*inner, 2 << 4 | OPERATORS["and"].code]


def test_unusual_spellings_mean_the_same() -> None:
    """White space of every kind, parentheses around atoms, more nesting than the kernel has room for, long names."""
    plain = program("(or X1 X2)")
    assert program("( or\u2003(X1) \tX2\n)") == plain
    assert program(f"{'(not ' * 100}X1{')' * 100}").count(1 << 4 | OPERATORS["not"].code) == 100
    assert program("(or X12345678 X1234567)", ("X1234567", "X12345678", "Y")) == [
        1 << 4 | LOAD,
        0 << 4 | LOAD,
        2 << 4 | OPERATORS["or"].code,
    ]
    assert program("(and and or)", ("and", "or", "Y"))[:2] == [LOAD, 1 << 4 | LOAD]


def test_numbers_are_those_of_the_kernels() -> None:
    """The evaluator imports its kernels on use, and has some of their numbers itself."""
    for name in ("LOAD", "CONSTANT", "STORE", "OPERATOR", "MAX_HEIGHT", "RIGHT", "OTHER"):
        assert getattr(_kernels_evaluator, name) == getattr(evaluator, name)
    assert (_kernels_evaluator.FACTS, int(_kernels_evaluator.SPREAD)) == (evaluator.NUM_FACTS, evaluator.HASH_FACTOR)
    assert [OPERATORS[name].code for name in ("not", "and", "or", "xor", "iff", "if")] == [*range(6)]


def test_parents_are_those_of_each_mechanism() -> None:
    parents = {"X2": frozenset({"X1"}), "X10": frozenset({"X2"})}

    def compiled(texts: list[str]) -> Programs:
        return compile_texts(texts, ("X1", "X2", "X10"), ("X2", "X10"), parents=parents)

    assert len(compiled(["X1", "X2"] * 3)) == 3
    with pytest.raises(ParseError, match="'X1' is not allowed here"):
        compiled(["X1", "X2", "X1", "X1"])
    with pytest.raises(ValueError, match="3 texts; each candidate has 2"):
        compiled(["X1", "X2", "X1"])
    assert len(compiled([])) == 0


@pytest.mark.soak
def test_texts_and_formulas_come_to_the_same_programs_and_errors() -> None:
    """The fuzzer's cases: names that begin with each other, operators that are not allowed, damaged texts."""
    outcomes = {case(random.Random(f"texts {number}")) for number in range(effort(400, 20_000))}
    assert {"programs", "refused, missing_close", "refused, variable_not_allowed"} <= outcomes


# --- Candidates judged from their texts in compiled code: the same as the parser, the statistics and replay say -------
GRAMMAR = Grammar(tuple(OPERATORS))


def _judge(model: Scm, panel: Panel) -> tuple[Judge, tuple[str, ...], tuple[str, ...]]:
    """For its own endogenous variables, in any order that is not told; variables as bits, and the order of places."""
    variables = tuple(sorted(model.variables, key=natural_key))
    order = tuple(sorted(model.mechanisms, key=natural_key, reverse=True))
    parents = {variable: frozenset(variables) - {variable} for variable in order}
    return Judge(variables, order, GRAMMAR, parents, panel), variables, order


def _checked(model: Scm, worlds: tuple[World, ...]) -> None:
    panel = Panel(model.variables, worlds)
    judge, variables, order = _judge(model, panel)
    verdict = judge.judge([f" {render(model.mechanisms[variable])}" for variable in order])
    assert verdict is not None
    wrong = verdict.wrong or [0] * len(order)
    evaluated = [order[place] for place in verdict.order or range(len(order))]
    assert [v for v in evaluated if model.mechanisms[v].mentioned & set(evaluated[evaluated.index(v) :])] == []
    found = dict.fromkeys(order, 0)
    for world, start in zip(worlds, panel.starts, strict=False):
        for cell in replay_world(model, world, evaluated):
            found[cell.variable] |= (cell.predicted != cell.expected) << start + cell.row
    assert dict(zip(order, wrong, strict=True)) == found
    for place, variable in enumerate(order):
        formula, own = model.mechanisms[variable], judge.facts()[place]
        names = tuple(name for index, name in enumerate(variables) if own[2] >> index & 1)
        made = JudgedMechanism(render(formula), GRAMMAR, 0, names, own, found[variable])
        plain = mechanism_stats(formula)
        assert (made.stats.size, made.stats.depth, made.variables) == (plain.size, plain.depth, plain.variables)
        assert list(made.stats.operators.by_name.items()) == list(plain.operators.by_name.items())
        assert made.formula == formula
        _same_table(made, formula)


def _same_table(made: JudgedMechanism, formula: Formula) -> None:
    number = len(made.variables)
    if number > MAX_WORD_VARS:
        assert made.table is None
        return
    assert made.table is not None
    bits = {name: projection(index, number).bits for index, name in enumerate(made.variables)}
    assert made.table & full_mask(number) == formula.evaluate(bits.__getitem__, full_mask(number))


@given(st.data())
def test_all_of_a_verdict_is_what_the_reference_says(data: st.DataObject) -> None:
    model = data.draw(scms(operators=tuple(OPERATORS), max_roots=5, max_endogenous=4))
    _checked(model, data.draw(arbitrary_worlds(model)))


def test_mechanisms_of_many_variables_and_arguments_have_no_table_but_all_the_rest() -> None:
    names = [f"X{number}" for number in range(1, 9)]
    texts = {"Y": f"(iff {' '.join(names * 3)})", "Z": "(if Y (xor X1 X2 X8) (not X3))"}
    model = scm(names, {variable: parse(text, GRAMMAR) for variable, text in texts.items()})
    rows = " ".join(f"{number * 37 % 1024:010b}" for number in range(70))
    _checked(model, (written_world("w", " ".join([*names, "Y", "Z"]), rows),))


@pytest.mark.parametrize(
    "texts",
    [
        *(["C", "D"], ["(and A B", "A"], ["A\nB", "A"], ["A", "0"], ["D", "C"], ["(A)", "A"], ["", "A"], ["A"], []),
        *(["\u00a0A", "A"], ["(nand A B)", "A"], ["E", "A"], [f"(and {' '.join('A' * MAX_CANDIDATE_CHARS)})", "A"]),
        *(["(or " * 65 + "A" + " B)" * 65, "A"], [f"(and {' '.join('A' * 129)})", "A"], ["A\n", "A"], ["A", "A", "A"]),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(texts: list[str]) -> None:
    model = written_scm("A B", C="A", D="B")
    judge, _, order = _judge(model, Panel(("A", "B", "C", "D"), ()))
    assert order == ("D", "C")
    assert judge.judge(texts) is None


def test_too_many_variables_are_left_to_the_parser() -> None:
    names = [f"X{number}" for number in range(70)]
    model = written_scm(" ".join(names), Y="X1")
    assert _judge(model, Panel((*names, "Y"), ()))[0].judge(["X1"]) is None


def test_compiled_code_reads_once_a_share_of_many_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    model = written_scm("A B", C="(or A B)")
    problem = written_problem(HiddenOrder(("A", "B", "C"), ("A", "B")), model, [written_world("w", "A B C", "000 011")])
    few = MIN_NEW - 3
    for new, asked, is_judged in (
        (0, 0, False),
        (MIN_NEW, MIN_NEW, True),
        (few, few, False),
        (MIN_NEW, 5 * MIN_NEW, False),
    ):
        monkeypatch.setattr(NOVELTY, "num_new", new)
        monkeypatch.setattr(NOVELTY, "num_checked", asked)
        score = Evaluator(problem).score_answer({"mechanisms": {"C": "(or B (and A B))"}})
        assert score.submission is not None
        assert isinstance(score.submission.mechanisms["C"], JudgedMechanism) == is_judged
        assert score.submission.candidate.mechanisms["C"] == parse("(or B (and A B))")
