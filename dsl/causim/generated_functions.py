"""Functions of generated programs: names, values, samplers U_* and mechanisms f_*, drawn by a key.

Response selection lets the noise pick which rule on the parents applies. Without it, knowing all values would leave one
counterfactual answer nearly always.
"""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeAlias, TypeVar

# --- Random choices that depend on a key alone, whatever the version of Python or of a library ------------------------
T = TypeVar("T")
_WORD = 8  # bytes


class Draws:
    """A stream of SHA-256 blocks under a key; the same key gives the same stream for ever."""

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode()
        self._words = self._stream()

    def _stream(self) -> Iterator[int]:
        block = 0
        while True:
            digest = hashlib.sha256(self._key + b"\x1e" + str(block).encode()).digest()
            for start in range(0, len(digest), _WORD):
                yield int.from_bytes(digest[start : start + _WORD], "big")
            block += 1

    def below(self, number: int) -> int:
        """0 to number - 1, evenly up to 2**-40 for numbers below 2**24."""
        return next(self._words) % number

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with that probability, to within a millionth."""
        return self.below(1_000_000) < round(probability * 1_000_000)

    def sample(self, options: Sequence[T], number: int) -> list[T]:
        """Sample that many distinct positions of the options, in random order."""
        remaining = list(options)
        return [remaining.pop(self.below(len(remaining))) for _ in range(number)]

    def shuffle(self, values: MutableSequence[T]) -> None:
        values[:] = self.sample(list(values), len(values))


# --- Names and values of generated programs ---------------------------------------------------------------------------
Vocabulary: TypeAlias = Literal["nonsense", "medical"]
_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"

NOISE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("bo", "cek", "da", "fi", "gul", "ho", "jat", "ki", "lu", "mep", "no", "pir", "qua", "rus", "so"),
    "medical": (
        "acute", "benign", "chronic", "delayed", "early", "focal", "gradual", "latent", "marked", "occult", "patchy",
        "recurrent", "stable", "transient", "unstable", "viral",
    ),
}  # fmt: skip
VALUE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("BEX", "COD", "FAP", "GIM", "HUR", "JOL", "KET", "LIS", "MAV", "NUB", "POZ", "RIK", "SEF", "TAG"),
    "medical": (
        "absent", "mild", "moderate", "severe", "normal", "raised", "low", "high", "present", "resolved", "worse",
        "improved", "pending", "excluded", "confirmed",
    ),
}  # fmt: skip


def new_name(draws: Draws, used: Iterable[str]) -> str:
    """Return a name of consonants and vowels in turn that is no keyword and not used in any case."""
    used_names = {name.lower() for name in used}
    while True:
        name = "".join(draws.choice(_CONSONANTS) + draws.choice(_VOWELS) for _ in range(2))
        if name not in used_names and not keyword.iskeyword(name) and not keyword.issoftkeyword(name):
            return name.capitalize()


def outcomes(draws: Draws, vocabulary: Vocabulary, number: int) -> list[object]:
    """Draw the values of a node: words, whole numbers or truth values.

    They are of one kind so that none equals another in Python.
    """
    kind = draws.below(6)
    if kind == 0:
        return list(range(number))
    if kind == 1 and number == 2:
        return [False, True]
    return list(draws.sample(VALUE_WORDS[vocabulary], number))


# --- Bodies of U_*: even and weighted choices, thresholds, and choices with an optional suffix; two to six values -----


def sampler(draws: Draws, vocabulary: Vocabulary) -> str:
    """Return the body of a sampler."""
    words = list(draws.sample(NOISE_WORDS[vocabulary], 6))
    kind = draws.below(5)
    if kind == 0:
        return f"return random.choice({words[: 2 + draws.below(5)]!r})"
    if kind == 1:
        chosen = words[: 2 + draws.below(4)]
        weights = [1 + draws.below(5) for _ in chosen]
        return f"return random.choices({chosen!r}, weights={weights!r})[0]"
    if kind == 2:
        pool, suffix = words[: 2 + draws.below(2)], draws.choice(["x", "k", "v"])
        share = (1 + draws.below(9)) / 10
        lines = [f"pick = random.choice({pool!r})", f"if random.random() < {share}:", "    return pick"]
        return "\n".join([*lines, f"return pick + {suffix!r}"])
    if kind == 3:
        low = 1 + draws.below(5)
        lines = ["r = random.random()", f"if r < {low / 10}:", f"    return {words[0]!r}"]
        lines += [f"elif r < {(low + 1 + draws.below(9 - low)) / 10}:", f"    return {words[1]!r}"]
        return "\n".join([*lines, f"return {words[2]!r}"])
    return f"if random.choice([True, False]):\n    return {words[0]!r}\nreturn random.choice({words[1:4]!r})"


# --- Bodies of f_*, in seven forms drawn evenly; all of them return on every path -------------------------------------
INDENT: Final = "    "
MAX_TABLE: Final = 64  # combinations of parents that a lookup table may have


@dataclass(frozen=True)
class Input:
    """A parameter and the values it can have, all of one kind."""

    variable: str
    values: Sequence[object]


@dataclass(frozen=True)
class Setting:
    """The inputs and outputs of a mechanism: parents may be none; outputs are two to four."""

    parents: Sequence[Input]
    noise: Input
    outputs: Sequence[object]


def mechanism(draws: Draws, setting: Setting) -> str:
    """Return the body of a mechanism in a form drawn evenly among those that suit the number of parents."""
    few = 1
    for parent in setting.parents:
        few *= len(parent.values)
    forms = [form for form in _FORMS if form is not _lookup or few <= MAX_TABLE]
    return "\n".join(draws.choice(forms)(draws, setting))


def indent_lines(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _sample_some(draws: Draws, values: Sequence[object]) -> tuple[object, ...]:
    """Sample some of the values, a proper subset if there are several."""
    return tuple(draws.sample(values, 1 + draws.below(max(len(values) - 1, 1))))


def _two(draws: Draws, setting: Setting) -> tuple[object, object]:
    first, second = draws.sample(setting.outputs, 2)
    return first, second


def _test(draws: Draws, argument: Input) -> str:
    chosen = _sample_some(draws, argument.values)
    return f"{argument.variable} == {chosen[0]!r}" if len(chosen) == 1 else f"{argument.variable} in {chosen!r}"


def _rule(draws: Draws, setting: Setting) -> list[str]:
    """Return a few lines on the parents alone that end in a return."""
    first, second = _two(draws, setting)
    if not setting.parents:
        return [f"return {first!r}"]
    if len(setting.parents) == 1 or draws.chance(0.5):
        lines = []
        for parent in draws.sample(setting.parents, len(setting.parents)):
            lines += [f"if {_test(draws, parent)}:", f"{INDENT}return {draws.choice(setting.outputs)!r}"]
        return [*lines, f"return {first!r}"]
    tests = [_test(draws, parent) for parent in setting.parents]
    return [f"if {draws.choice([' and ', ' or ']).join(tests)}:", f"{INDENT}return {first!r}", f"return {second!r}"]


def _membership(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    head = [f"if {setting.noise.variable} in {_sample_some(draws, setting.noise.values)!r}:"]
    if not setting.parents:
        return [*head, f"{INDENT}return {first!r}", f"return {second!r}"]
    return [*head, *indent_lines([f"return {first!r}"]), *_rule(draws, setting)]


def _gates(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    inner = [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}return {first!r}",
        f"return {draws.choice(setting.outputs)!r}",
    ]
    for parent in draws.sample(setting.parents, len(setting.parents)):
        inner = [f"if {_test(draws, parent)}:", *indent_lines(inner), f"return {second!r}"]
    return inner


def _text(draws: Draws, setting: Setting) -> list[str]:
    parts = [
        f"str({argument.variable})"
        for argument in draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    ]
    characters = "".join(str(value) for argument in [*setting.parents, setting.noise] for value in argument.values)
    first, second = _two(draws, setting)
    ends = sorted({str(value)[-1] for argument in [*setting.parents, setting.noise] for value in argument.values})
    return [
        f"t = {' + '.join(parts)}",
        f"if {draws.choice(sorted(set(characters)))!r} in t and not t.endswith({draws.choice(ends)!r}):",
        f"{INDENT}return {first!r}",
        f"if len(t) % {2 + draws.below(2)} == 0:",
        f"{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {second!r}",
    ]


def _loop(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    givens = draws.sample([*setting.parents, setting.noise], len(setting.parents) + 1)
    letters = sorted({letter for argument in givens for value in argument.values for letter in str(value)})
    chosen = draws.sample(letters, min(len(letters), 3))
    return [
        f"for item in [{', '.join(argument.variable for argument in givens)}]:",
        f"{INDENT}if str(item).startswith({chosen[0]!r}):",
        f"{INDENT}{INDENT}return {first!r}",
        f"{INDENT}if {chosen[-1]!r} in str(item):",
        f"{INDENT}{INDENT}return {draws.choice(setting.outputs)!r}",
        f"return {second!r}",
    ]


def _lookup(draws: Draws, setting: Setting) -> list[str]:
    if not setting.parents:
        table = {value: draws.choice(setting.outputs) for value in setting.noise.values}
        return [f"table = {table!r}", f"return table[{setting.noise.variable}]"]
    rows = list(product(*(parent.values for parent in setting.parents)))
    first, second = ({row: draws.choice(setting.outputs) for row in rows} for _ in range(2))
    key = f"({', '.join(parent.variable for parent in setting.parents)},)"
    return [
        f"if {_test(draws, setting.noise)}:",
        f"{INDENT}table = {first!r}",
        "else:",
        f"{INDENT}table = {second!r}",
        f"return table[{key}]",
    ]


def _counter(draws: Draws, setting: Setting) -> list[str]:
    first, second = _two(draws, setting)
    givens = [*setting.parents, setting.noise]
    lines = ["count = 0"]
    for argument in givens:
        lines += [f"if {_test(draws, argument)}:", f"{INDENT}count += {1 + draws.below(2)}"]
    threshold = 1 + draws.below(len(givens))
    return [*lines, f"return {first!r} if count > {threshold - 1} else {second!r}"]


def _response(draws: Draws, setting: Setting) -> list[str]:
    groups = draws.sample(setting.noise.values, len(setting.noise.values))
    cut = 1 + draws.below(len(groups) - 1) if len(groups) > 1 else 1
    first = f"{setting.noise.variable} in {tuple(groups[:cut])!r}"
    return [f"if {first}:", *indent_lines(_rule(draws, setting)), *_rule(draws, setting)]


_FORMS: Final[tuple[Callable[[Draws, Setting], list[str]], ...]] = (
    _membership,
    _gates,
    _text,
    _loop,
    _lookup,
    _counter,
    _response,
)
