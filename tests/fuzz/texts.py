"""Fuzzing of mechanism texts in compiled code: the programs, or the error, that the parser's formulas come to.

Names begin with each other, are as long as a word of the machine or longer, or are operators; texts are right, right in
unusual spellings, or damaged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.evaluator import Candidate, Programs, compile_formulas, compile_texts
from tests.fuzz.submissions import TOKENS, formula, mechanism
from tests.oracles.independent import WrongVerdictError, require

NAMES = ("X1", "X10", "X100", "X", "x1", "X_1", "_", "an", "andy", "notX1", "X1234567", "X12345678", "ifX", "o", "or_")
ITEMS = (
    *TOKENS,
    "(and",
    "(or",
    "(xor",
    "(iff",
    "(not",
    "(if",
    " ",
    "  ",
    "!",
    "\x1c",
    "\r",
    "#",
    ")(",
    "\x00",
    "\ud800",
)


def case(rng: random.Random) -> str:
    """Compile a few candidates' texts; the outcome is whether there is a program, and why not."""
    variables = rng.sample(NAMES, rng.randrange(2, 9))
    if rng.random() < 0.02:
        variables.append(rng.choice(list(OPERATORS)))
    order = rng.sample(variables, rng.randrange(1, min(4, len(variables)) + 1))
    operators = tuple(rng.sample(list(OPERATORS), rng.randrange(1, len(OPERATORS) + 1)))
    grammar = Grammar() if rng.random() < 0.6 else Grammar(operators, allow_constants=rng.random() < 0.5)
    everything = frozenset(variables)
    parents = {name: everything if rng.random() < 0.5 else frozenset(rng.sample(variables, 2)) for name in order}
    damage = rng.choice([0.0, 0.02, 0.3])
    texts = [_text(rng, sorted(parents[name]), damage) for _ in range(rng.choice([1, 1, 2, 8])) for name in order]
    try:
        expected = _expected(texts, variables, order, grammar, parents)
    except ParseError as error:
        try:
            compile_texts(texts, variables, order, grammar, parents)
        except ParseError as found:
            require(str(found) == str(error), f"{found} for {texts!r}, not {error}")
            return f"refused, {error.kind}"
        raise WrongVerdictError(f"a program for {texts!r}: {error}") from None
    made = compile_texts(texts, variables, order, grammar, parents)
    require(made.code.tolist() == expected.code.tolist(), f"another program for {texts!r}")
    require(made.starts.tolist() == expected.starts.tolist(), f"other bounds of programs for {texts!r}")
    require(made.max_stack >= expected.max_stack, f"a stack of {made.max_stack} for {texts!r}")
    return "programs"


def _expected(
    texts: Sequence[str],
    variables: Sequence[str],
    order: Sequence[str],
    grammar: Grammar,
    parents: dict[str, frozenset[str]],
) -> Programs:
    formulas = [parse(text, grammar, parents[order[i % len(order)]]) for i, text in enumerate(texts)]
    starts = range(0, len(texts), len(order))
    maps = [dict(zip(order, formulas[i : i + len(order)], strict=True)) for i in starts]
    return compile_formulas([Candidate(one, tuple(order)) for one in maps], variables)


def _text(rng: random.Random, variables: Sequence[str], damage: float) -> str:
    text = formula(rng, variables, rng.choice([2, 5, 12, 40]))
    if rng.random() >= damage:
        return text
    if rng.random() < 0.4:
        return "".join(rng.choices([*ITEMS, *variables, " "], k=rng.choice([0, 1, 3, 6, 12])))
    other = mechanism(rng, text, variables)
    return other if isinstance(other, str) else text
