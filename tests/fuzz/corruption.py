"""Ways to damage texts and parsed values. Each takes the generator that decides, and leaves its argument alone."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

TextDamage = Callable[[random.Random, str], str]

CHARACTERS = "()[]{}\"'\\,:;.-+*&!|>%@`#?~ \t\n\r\0\v\x85\u00a0\u2028\u200b\ufeffXx019eE_\u0661\u00e9\u4e2d\U0001f600"
LONGEST = 200_000  # characters; damage that multiplies stops there


def delete(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + _length(rng) :]


def insert(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + "".join(rng.choices(CHARACTERS, k=_length(rng))) + text[start:]


def replace(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(CHARACTERS) + text[start + 1 :]


def flip(rng: random.Random, text: str) -> str:
    """One bit of one character."""
    if not text:
        return text
    start = rng.randrange(len(text))
    return text[:start] + chr(ord(text[start]) ^ 1 << rng.randrange(7)) + text[start + 1 :]


def other_bit(rng: random.Random, text: str) -> str:
    """Change a 0 to 1, or the other way round."""
    start = rng.randrange(len(text) + 1)
    place = min((p for p in (text.find("0", start), text.find("1", start)) if p >= 0), default=-1)
    return text[:place] + str(1 - int(text[place])) + text[place + 1 :] if place >= 0 else text


def truncate(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] if rng.random() < 0.5 else text[start:]


def splice(rng: random.Random, text: str) -> str:
    """Insert a piece of the text somewhere else."""
    start, end = sorted(rng.choices(range(len(text) + 1), k=2))
    target = rng.randrange(len(text) + 1)
    return text[:target] + text[start:end] + text[target:] if len(text) + end - start <= LONGEST else text


def multiply(rng: random.Random, text: str) -> str:
    """Repeat a short piece many times."""
    start = rng.randrange(len(text) + 1)
    piece = text[start : start + _length(rng)]
    times = rng.choice([2, 3, 10, 1_000])
    return text[:start] + piece * times + text[start:] if len(text) + times * len(piece) <= LONGEST else text


def swap_lines(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    i, j = (rng.randrange(len(lines)) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines)


def drop_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def repeat_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "\n".join(lines)


def indent_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    lines[i] = " " * rng.randrange(4) + lines[i].removeprefix(" " * rng.randrange(4))
    return "\n".join(lines)


CHARACTER_DAMAGE: tuple[TextDamage, ...] = (delete, insert, replace, flip, other_bit, truncate, splice, multiply)
LINE_DAMAGE: tuple[TextDamage, ...] = (swap_lines, drop_line, repeat_line, indent_line)


def _length(rng: random.Random) -> int:
    return rng.choice([1, 1, 1, 2, 3, 8, 40])


# --- parsed values -----------------------------------------------------------------------------------------------

HUGE = 10**400
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, HUGE, float("nan"), float("inf"), "", " ", "0", "1", "X1", "X99", "train_00",
    "\n", "\0", "\u2028", "'", '"', "&a", "*a", "null", [], {}, [[]], [None], ["X1", "X1"], {"": ""}, {"X1": 1},
    "0" * 10, "x" * 3_000,
)  # fmt: skip


def damaged(rng: random.Random, value: Any) -> Any:
    """Return a copy of nested lists and mappings with one place changed."""
    made = copy.deepcopy(value)
    places = list(_places(made))
    if not places:
        return made
    container, key = rng.choice(places)
    match rng.randrange(7):
        case 0:
            del container[key]
        case 1:
            container[key] = copy.deepcopy(rng.choice(JUNK))
        case 2:
            other, other_key = rng.choice(places)
            container[key] = copy.deepcopy(other[other_key])
        case 3:
            container[key] = _altered(rng, container[key])
        case 4 if isinstance(container, list):
            container.insert(rng.randrange(len(container) + 1), copy.deepcopy(container[key]))
        case 5 if isinstance(container, dict):
            container[rng.choice([f"{key}_", "", "X1", "rows", key.swapcase()])] = container.pop(key)
        case _:
            container[key] = {"nested": container[key]} if rng.random() < 0.5 else [container[key]]
    return made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    stack = [value]
    while stack:
        container = stack.pop()
        keys: Any = container if isinstance(container, dict) else range(len(container))
        for key in keys:
            yield container, key
            if isinstance(container[key], (dict, list)):
                stack.append(container[key])


def _altered(rng: random.Random, value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, HUGE])
    if isinstance(value, str):
        return rng.choice(CHARACTER_DAMAGE)(rng, value)
    if isinstance(value, list):
        return rng.sample(value, len(value))
    return value
