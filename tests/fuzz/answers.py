"""Answers that are wrong in some way, or right in an unusual one: mechanisms, then objects, then texts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.fuzz.corruption import CHARACTER_DAMAGE, LONGEST, damaged

TOKENS = (
    "(", ")", "(", ")", "not", "and", "or", "xor", "iff", "if", "nand", "AND", "0", "1", "X1", "X2", "X3", "X4", "X5",
    "X99", "x1", "X1,", "(X1)", "((X1))", "()", "\u00a0", "\u200b", "\n", "\t", "\v", "\ufeff", '"', "X\u0661", "_",
)  # fmt: skip
OPERATORS = ("and", "or", "xor", "iff")


def formula(rng: random.Random, variables: Sequence[str], budget: int) -> str:
    """Return a well-formed text over the variables."""
    if budget <= 1 or rng.random() < 0.25:
        name = rng.choice(variables)
        return f"({name})" if rng.random() < 0.05 else name
    if rng.random() < 0.2:
        return f"(not {formula(rng, variables, budget - 1)})"
    parts = [formula(rng, variables, budget // 2) for _ in range(rng.choice([2, 2, 2, 3, 6]))]
    return f"({rng.choice(OPERATORS)} {' '.join(parts)})"


def rewritten(rng: random.Random, text: str, variables: Sequence[str]) -> str:
    """Return the same function in other words, mostly; some mention more than they depend on."""
    other = rng.choice(variables)
    return rng.choice(
        [
            f"(not (not {text}))",
            f" {text}\n",
            text.replace(" ", "\u2003"),
            text.replace("(", "( ").replace(")", " )"),
            f"(and {text} {text})",
            f"(or {text} (and {other} (not {other})))",
            f"(xor {text} {other} {other})",
            f"(iff {text} (iff {other} {other}))",
            "(not " * 2 * rng.choice([1, 1, 1, 2, 3, _rarely(rng, 250, 20)]) + text,  # closed below
            f"(and {' '.join([text] * rng.choice([2, 2, 3, 3, 6, _rarely(rng, 300, 20)]))})",
        ]
    )


def _rarely(rng: random.Random, much: int, little: int) -> int:
    return much if rng.random() < 0.05 else rng.randrange(1, little)


def mechanism(rng: random.Random, text: str, variables: Sequence[str]) -> Any:
    """Something in place of a mechanism's text."""
    match rng.randrange(8):
        case 0:
            return formula(rng, variables, rng.choice([2, 5, 12, 40]))
        case 1 | 2:
            other = rewritten(rng, text, variables)
            return other + ")" * (other.count("(") - other.count(")"))
        case 3:
            return " ".join(rng.choices([*TOKENS, *variables], k=rng.choice([1, 3, 6, 12, 40])))
        case 4:
            tokens = text.replace("(", " ( ").replace(")", " ) ").split()
            tokens[rng.randrange(len(tokens))] = rng.choice([*TOKENS, *variables])
            return " ".join(tokens)
        case 5:
            depth = _rarely(rng, rng.choice([495, 496, 497, 5_000]), 8)
            return "(not " * depth + text + ")" * (depth - rng.randrange(2))
        case 6:
            return rng.choice(CHARACTER_DAMAGE)(rng, text)
        case _:
            return damaged(rng, {"": text}).get("", [text])


def answer(rng: random.Random, good: dict[str, Any], variables: Sequence[str]) -> dict[str, Any]:
    """Return a good answer with some mechanisms changed, and sometimes its shape."""
    made: dict[str, Any] = json.loads(json.dumps(good))
    mechanisms = made["alternative"]["mechanisms"] if "alternative" in made else made["mechanisms"]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        name = rng.choice(list(mechanisms))
        text = mechanisms[name]
        mechanisms[name] = mechanism(rng, text, variables) if isinstance(text, str) and text.strip() else "X1"
    if rng.random() < 0.1:
        names = list(mechanisms)
        one, other = rng.choice(names), rng.choice(names)
        mechanisms[one], mechanisms[other] = mechanisms[other], mechanisms[one]
    if rng.random() < 0.15 and "roots" in made:
        roots = rng.sample(list(variables), len(made["roots"]))
        made["roots"] = roots
        keys = [v for v in variables if v not in roots]
        earlier = [*roots, *keys]
        made["mechanisms"] = {v: formula(rng, earlier[: len(roots) + i], 6) for i, v in enumerate(keys)}
    while rng.random() < 0.25:
        made = damaged(rng, made)
    return made


def response(rng: random.Random, answers: Sequence[Any]) -> str:
    """Return a text that holds the answers, somewhere, in some state."""
    texts = [json.dumps(a, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 2])) for a in answers]
    text = rng.choice(["", "Answer: ", "```json\n", "{", "[", "\ufeff"]) + rng.choice([" ", "\n", "} {"]).join(texts)
    text += rng.choice(["", "", "\n", "\n```", "}", "]", " {", '{"mechanisms": {}}'])
    if rng.random() < 0.1:
        text = json.dumps({"answer": text} if rng.random() < 0.5 else {"answer": answers[0]})
    if rng.random() < 0.02:
        text = rng.choice('{["') * rng.choice([100, 2_000]) + text
    while rng.random() < 0.35 and len(text) <= LONGEST:
        text = rng.choice(CHARACTER_DAMAGE)(rng, text)
    return text
