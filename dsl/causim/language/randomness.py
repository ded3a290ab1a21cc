"""Every outcome of a sampler with its exact probability: the sampler is run once for each sequence of random choices.

A continuous number is an interval. A comparison with a threshold inside it is a choice between its two parts, so `r <
0.3` costs one branch however it is written; a threshold is the nearest fraction with a denominator up to a thousand
million, so 0.3 means 3/10. Choices of probability zero are not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import Any, Final, TypeVar

from dsl.causim.values import ModelError

T = TypeVar("T")
MAX_OUTCOMES: Final = 65_536
MAX_OPTIONS: Final = 10_000
_DENOMINATOR: Final = 10**9


class Unsupported(ModelError):  # noqa: N818  # the word that the specification uses
    """A program is outside the language, or leaves its limits; it was not run."""


class Choices:
    """A path through the random choices of a run, and the next path afterwards."""

    __slots__ = ("_at", "_path")

    def __init__(self) -> None:
        self._path: list[tuple[list[tuple[int, Fraction]], int]] = []  # the options still open, and the one taken
        self._at = 0

    def pick(self, probabilities: Sequence[Fraction]) -> int:
        """The option that this run takes; `Unsupported` for more options than MAX_OPTIONS."""
        if self._at == len(self._path):
            if len(probabilities) > MAX_OPTIONS:
                raise Unsupported(f"a random choice between more than {MAX_OPTIONS} options")
            self._path.append(([(i, p) for i, p in enumerate(probabilities) if p], 0))
        options, taken = self._path[self._at]
        self._at += 1
        return options[taken][0]

    def evenly(self, number: int) -> int:
        """One of that many equally likely options."""
        if number < 1:
            raise Unsupported("a random choice from nothing")
        return self.pick([Fraction(1, number)] * min(number, MAX_OPTIONS + 1))

    @property
    def probability(self) -> Fraction:
        """Of the path just run."""
        return prod((options[taken][1] for options, taken in self._path), start=Fraction(1))

    def advance(self) -> bool:
        """Go to the next path; False when all were run."""
        while self._path:
            options, taken = self._path.pop()
            if taken + 1 < len(options):
                self._path.append((options, taken + 1))
                break
        self._at = 0
        return bool(self._path)


def outcomes(run: Callable[[Choices], T]) -> Iterator[tuple[T, Fraction]]:
    """What every path gives, with its probability; the probabilities add up to one."""
    choices = Choices()
    for _ in range(MAX_OUTCOMES):
        yield run(choices), choices.probability
        if not choices.advance():
            return
    raise Unsupported(f"a sampler has more than {MAX_OUTCOMES} sequences of random choices")


class Uniform:
    """A number drawn evenly from 0 to 1 of which only comparisons with numbers may be asked."""

    __slots__ = ("_choices", "_high", "_low")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._low, self._high = Fraction(0), Fraction(1)

    def __repr__(self) -> str:
        return "a continuous random number"

    def _below(self, threshold: object) -> bool:
        number = _number(threshold)
        if abs(number) > 1:
            return number > 0
        cut = Fraction(number).limit_denominator(_DENOMINATOR)
        if cut <= self._low or cut >= self._high:
            return cut >= self._high
        share = (cut - self._low) / (self._high - self._low)
        below = self._choices.pick((share, 1 - share)) == 0
        if below:
            self._high = cut
        else:
            self._low = cut
        return below

    __lt__ = __le__ = _below

    def __gt__(self, other: object) -> bool:
        return not self._below(other)

    __ge__ = __gt__

    def __eq__(self, other: object) -> bool:
        _number(other)
        return False  # of probability one

    def __bool__(self) -> bool:
        raise Unsupported(_ESCAPES)


_ESCAPES: Final = "a continuous random number is used other than in a comparison with a number"


def _number(value: object) -> int | float:
    if isinstance(value, int | float) and value == value:
        return value
    raise Unsupported(_ESCAPES)


# --- the listed functions of the module random, in terms of choices ---------------------------------------------------


def _sequence(population: object) -> Sequence[Any]:
    if isinstance(population, str | list | tuple | range):
        return population
    raise Unsupported(
        f"a random choice from {type(population).__name__}; from a list, tuple, string or range it can be"
    )


def _integer(value: object) -> int:
    if isinstance(value, int):
        return int(value)
    raise Unsupported("an argument of a random function is not an integer")


def _random(choices: Choices) -> Uniform:
    return Uniform(choices)


def _uniform(choices: Choices, a: object, b: object) -> Uniform:
    if type(a) in (int, float) and type(b) in (int, float) and (a, b) == (0, 1):
        return Uniform(choices)
    raise Unsupported("random.uniform is read with the limits 0 and 1 only")


def _choice(choices: Choices, seq: object) -> Any:
    population = _sequence(seq)
    return population[choices.evenly(len(population))]


def _choices(
    choices: Choices, population: object, weights: object = None, *, cum_weights: object = None, k: object = 1
) -> list[Any]:
    pool, number = _sequence(population), _integer(k)
    if not 0 <= number <= 100:
        raise Unsupported("random.choices is asked for more than 100 items")
    if weights is not None and cum_weights is not None:
        raise Unsupported("random.choices is given both weights and cumulative weights")
    shares = _shares(len(pool), weights, cum_weights)
    return [pool[choices.pick(shares)] for _ in range(number)]


def _shares(number: int, weights: object, cum_weights: object) -> list[Fraction]:
    given = weights if weights is not None else cum_weights
    if given is None:
        if not 0 < number <= MAX_OPTIONS:
            raise Unsupported("a random choice from nothing, or from too much")
        return [Fraction(1, number)] * number
    if not isinstance(given, list | tuple) or len(given) != number:
        raise Unsupported("the weights of random.choices are not a list with one number for each item")
    if any(type(weight) not in (int, float) or weight != weight or abs(weight) == float("inf") for weight in given):
        raise Unsupported("a weight of random.choices is not a finite number")
    exact = [Fraction(weight).limit_denominator(_DENOMINATOR) for weight in given]
    if cum_weights is not None:
        exact = [after - before for before, after in zip([Fraction(0), *exact], exact, strict=False)]
    total = sum(exact)
    if min(exact, default=Fraction(-1)) < 0 or not total:
        raise Unsupported("the weights of random.choices are negative or all zero")
    return [weight / total for weight in exact]


def _randrange(choices: Choices, start: object, stop: object = None, step: object = 1) -> int:
    options = range(_integer(start)) if stop is None else range(_integer(start), _integer(stop), _integer(step) or 1)
    if _integer(step) == 0:
        raise Unsupported("random.randrange with a step of zero")
    return options[choices.evenly(len(options))]


def _randint(choices: Choices, a: object, b: object) -> int:
    return _randrange(choices, a, _integer(b) + 1)


def _sample(choices: Choices, population: object, k: object) -> list[Any]:
    sequence, number = _sequence(population), _integer(k)
    if len(sequence) > MAX_OPTIONS:
        raise Unsupported(f"a random choice between more than {MAX_OPTIONS} options")
    pool = list(sequence)
    if not 0 <= number <= min(len(pool), 100):
        raise Unsupported("random.sample is asked for more items than there are")
    return [pool.pop(choices.evenly(len(pool))) for _ in range(number)]


def _getrandbits(choices: Choices, k: object) -> int:
    bits = _integer(k)
    if not 0 <= bits <= 13:
        raise Unsupported("random.getrandbits is read up to 13 bits")
    return choices.evenly(1 << bits)


RANDOM: Final[dict[str, Callable[..., Any]]] = {
    "random": _random,
    "uniform": _uniform,
    "choice": _choice,
    "choices": _choices,
    "randrange": _randrange,
    "randint": _randint,
    "sample": _sample,
    "getrandbits": _getrandbits,
}
RANDOM_KEYWORDS: Final = frozenset(
    {"seq", "population", "weights", "cum_weights", "k", "a", "b", "start", "stop", "step"}
)
