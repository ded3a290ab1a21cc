"""Bodies of f_*, in seven forms drawn evenly; all of them return on every path.

Response selection lets the noise pick which rule on the parents applies. Without it, knowing all values would leave one
counterfactual answer nearly always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from calibrant.dsl.causim.generation.draws import Draws

INDENT: Final = "    "
MAX_TABLE: Final = 64  # combinations of parents that a lookup table may have


@dataclass(frozen=True)
class Input:
    """A parameter and the values it can have, all of one kind."""

    variable: str
    values: Sequence[object]


@dataclass(frozen=True)
class Setting:
    """What a mechanism is made of: parents may be none; outputs are two to four."""

    parents: Sequence[Input]
    noise: Input
    outputs: Sequence[object]


def mechanism(draws: Draws, setting: Setting) -> str:
    """The body of a mechanism in a form drawn evenly among those that suit the number of parents."""
    few = 1
    for parent in setting.parents:
        few *= len(parent.values)
    forms = [form for form in _FORMS if form is not _lookup or few <= MAX_TABLE]
    return "\n".join(draws.choice(forms)(draws, setting))


def indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _some(draws: Draws, values: Sequence[object]) -> tuple[object, ...]:
    """Some of the values, not all if there are several."""
    return tuple(draws.sample(values, 1 + draws.below(max(len(values) - 1, 1))))


def _two(draws: Draws, setting: Setting) -> tuple[object, object]:
    one, other = draws.sample(setting.outputs, 2)
    return one, other


def _test(draws: Draws, given: Input) -> str:
    chosen = _some(draws, given.values)
    return f"{given.variable} == {chosen[0]!r}" if len(chosen) == 1 else f"{given.variable} in {chosen!r}"


def _rule(draws: Draws, setting: Setting) -> list[str]:
    """A few lines on the parents alone that return."""
    one, other = _two(draws, setting)
    if not setting.parents:
        return [f"return {one!r}"]
    if len(setting.parents) == 1 or draws.chance(0.5):
        lines = []
        for parent in draws.sample(setting.parents, len(setting.parents)):
            lines += [f"if {_test(draws, parent)}:", f"{INDENT}return {draws.choice(setting.outputs)!r}"]
        return [*lines, f"return {one!r}"]
    tests = [_test(draws, parent) for parent in setting.parents]
    return [f"if {draws.choice([' and ', ' or ']).join(tests)}:", f"{INDENT}return {one!r}", f"return {other!r}"]


def _membership(draws: Draws, setting: Setting) -> list[str]:
    one, other = _two(draws, setting)
    head = [f"if {setting.noise.variable} in {_some(draws, setting.noise.values)!r}:"]
    if not setting.parents:
        return [*head, f"{INDENT}return {one!r}", f"return {other!r}"]
    return [*head, *indented([f"return {one!r}"]), *_rule(draws, setting)]


def _gates(draws: Draws, setting: Setting) -> list[str]:
    one, other = _two(draws, setting)
    inner = [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}return {one!r}",
        f"return {draws.choice(setting.outputs)!r}",
    ]
    for parent in draws.sample(setting.parents, len(setting.parents)):
        inner = [f"if {_test(draws, parent)}:", *indented(inner), f"return {other!r}"]
    return inner


def _text(draws: Draws, setting: Setting) -> list[str]:
    parts = [
        f"str({given.variable})" for given in draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    ]
    known = "".join(str(value) for given in [*setting.parents, setting.noise] for value in given.values)
    one, other = _two(draws, setting)
    ends = sorted({str(value)[-1] for given in [*setting.parents, setting.noise] for value in given.values})
    return [
        f"t = {' + '.join(parts)}",
        f"if {draws.choice(sorted(set(known)))!r} in t and not t.endswith({draws.choice(ends)!r}):",
        f"{INDENT}return {one!r}",
        f"if len(t) % {2 + draws.below(2)} == 0:",
        f"{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {other!r}",
    ]


def _loop(draws: Draws, setting: Setting) -> list[str]:
    one, other = _two(draws, setting)
    givens = draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    letters = sorted({letter for given in givens for value in given.values for letter in str(value)})
    chosen = draws.sample(letters, min(len(letters), 3))
    return [
        f"for item in [{', '.join(given.variable for given in givens)}]:",
        f"{INDENT}if str(item).startswith({chosen[0]!r}):",
        f"{INDENT}{INDENT}return {one!r}",
        f"{INDENT}if {chosen[-1]!r} in str(item):",
        f"{INDENT}{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {other!r}",
    ]


def _lookup(draws: Draws, setting: Setting) -> list[str]:
    if not setting.parents:
        table = {value: draws.choice(setting.outputs) for value in setting.noise.values}
        return [f"table = {table!r}", f"return table[{setting.noise.variable}]"]
    rows = list(product(*(parent.values for parent in setting.parents)))
    one, other = ({row: draws.choice(setting.outputs) for row in rows} for _ in range(2))
    key = f"({', '.join(parent.variable for parent in setting.parents)},)"
    return [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}table = {one!r}",
        "else:",
        f"{INDENT}table = {other!r}",
        f"return table[{key}]",
    ]


def _counter(draws: Draws, setting: Setting) -> list[str]:
    one, other = _two(draws, setting)
    givens = [*setting.parents, setting.noise]
    lines = ["count = 0"]
    for given in givens:
        lines += [f"if {_test(draws, given)}:", f"{INDENT}count += {1 + draws.below(2)}"]
    threshold = 1 + draws.below(len(givens))
    return [*lines, f"return {one!r} if count > {threshold - 1} else {other!r}"]


def _response(draws: Draws, setting: Setting) -> list[str]:
    groups = draws.sample(setting.noise.values, len(setting.noise.values))
    cut = 1 + draws.below(len(groups) - 1) if len(groups) > 1 else 1
    first = f"{setting.noise.variable} in {tuple(groups[:cut])!r}"
    return [f"if {first}:", *indented(_rule(draws, setting)), *_rule(draws, setting)]


_FORMS: Final[tuple[Callable[[Draws, Setting], list[str]], ...]] = (
    _membership,
    _gates,
    _text,
    _loop,
    _lookup,
    _counter,
    _response,
)
