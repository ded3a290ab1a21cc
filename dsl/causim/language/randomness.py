"""Every outcome of a sampler with its exact probability: the sampler is run once for each sequence of random choices.

A continuous random number is represented by an interval. A comparison with a threshold inside the interval is a random
choice between the two parts. A threshold is replaced by the nearest fraction with a denominator up to 10**9, so 0.3
means 3/10. Choices of probability zero are not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

from calibrant.dsl.causim.model import ModelError

T = TypeVar("T")
MAX_OUTCOMES: Final = 65_536  # sequences of random choices of a sampler
MAX_OPTIONS: Final = 10_000  # options of one choice
MAX_DENOMINATOR: Final = 10**9
# costs in steps of the budget, measured: a step is about a microsecond
_FRACTION_STEPS: Final = 40  # of a nearest fraction or a quotient
_COMPARISON_STEPS: Final = 10


class Unsupported(ModelError):  # noqa: N818  # the word that the specification uses
    """A program is outside the language or exceeds its limits; Python never executes it."""


class _Branch:
    """One choice of a path.

    options: those of positive probability; taken: index in `options` of the one that the path takes
    weights: probability of each option, or one number that holds for all
    before, after: probability of the path without and with this choice
    """

    __slots__ = ("after", "before", "options", "taken", "weights")

    def __init__(self, options: Sequence[int], weights: Sequence[Fraction] | Fraction, before: Fraction) -> None:
        self.options = options
        self.weights = weights
        self.before = before
        self.take(0)

    def take(self, index: int) -> None:
        self.taken = index
        self.after = self.before * (self.weights if isinstance(self.weights, Fraction) else self.weights[index])


class Choices:
    """A path through the random choices of a run, and the next path afterwards.

    spend: charges the steps that choices cost
    """

    __slots__ = ("_at", "_path", "spend")

    def __init__(self, spend: Callable[[int], None] = lambda steps: None) -> None:
        self._path: list[_Branch] = []
        self._at = 0
        self.spend = spend

    def pick(self, weigh: Callable[[], Sequence[Fraction]]) -> int:
        """Return the option that this run takes; `Unsupported` for more options than MAX_OPTIONS.

        weigh: returns the probabilities of the options; called when a path reaches this choice for the first time
        """
        if self._at == len(self._path):
            probabilities = weigh()
            _check_options(len(probabilities))
            options = [i for i, p in enumerate(probabilities) if p]
            self._append(options, [probabilities[i] for i in options])
        return self._next()

    def evenly(self, num_options: int) -> int:
        """Return one of `num_options` equally likely options; `Unsupported` unless there are 1 to MAX_OPTIONS."""
        if num_options < 1:
            raise Unsupported("a random choice from nothing")
        if self._at == len(self._path):
            _check_options(num_options)
            self._append(range(num_options), Fraction(1, num_options))
        return self._next()

    def _append(self, options: Sequence[int], weights: Sequence[Fraction] | Fraction) -> None:
        before = self.probability
        self.spend(2 + price_of(before) + (0 if isinstance(weights, Fraction) else len(weights) // 4))
        self._path.append(_Branch(options, weights, before))

    def _next(self) -> int:
        self.spend(2)
        branch = self._path[self._at]
        self._at += 1
        return branch.options[branch.taken]

    @property
    def probability(self) -> Fraction:
        """Return the probability of the path just run."""
        return self._path[-1].after if self._path else Fraction(1)

    def advance(self) -> bool:
        """Advance to the next path; return False after the last one."""
        while self._path:
            last = self._path[-1]
            if last.taken + 1 < len(last.options):
                last.take(last.taken + 1)
                break
            self._path.pop()
        self._at = 0
        return bool(self._path)


def _check_options(num_options: int) -> None:
    if num_options > MAX_OPTIONS:
        raise Unsupported(f"a random choice between more than {MAX_OPTIONS} options")


def price_of(fraction: Fraction) -> int:
    """Return the steps charged for an operation with a fraction: quadratic in the 64-bit words of its denominator."""
    words = fraction.denominator.bit_length() // 64
    return words * words // 4


def outcomes(
    run: Callable[[Choices], T], spend: Callable[[int], None] = lambda steps: None
) -> Iterator[tuple[T, Fraction]]:
    """Yield the result of every path with its probability; the probabilities sum to one.

    spend: charges steps
    """
    choices = Choices(spend)
    for _ in range(MAX_OUTCOMES):
        yield run(choices), choices.probability
        if not choices.advance():
            return
    raise Unsupported(f"a sampler has more than {MAX_OUTCOMES} sequences of random choices")


class Uniform:
    """A uniform random number from 0 to 1, which may only be compared with numbers; `Unsupported` for any other use."""

    __slots__ = ("_choices", "_high", "_low")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._low, self._high = Fraction(0), Fraction(1)

    def __repr__(self) -> str:
        return "a continuous random number"

    def _below(self, threshold: object) -> bool:
        bound = _number(threshold)
        if abs(bound) > 1:
            return bound > 0
        self._choices.spend(_COMPARISON_STEPS)
        cut = _exact(bound)
        if cut <= self._low or cut >= self._high:
            return cut >= self._high
        below = self._choices.pick(lambda: self._parts(cut)) == 0
        if below:
            self._high = cut
        else:
            self._low = cut
        return below

    def _parts(self, cut: Fraction) -> tuple[Fraction, Fraction]:
        self._choices.spend(_FRACTION_STEPS)
        share = (cut - self._low) / (self._high - self._low)
        return share, 1 - share

    __lt__ = __le__ = _below

    def __gt__(self, other: object) -> bool:
        return not self._below(other)

    __ge__ = __gt__

    def __eq__(self, other: object) -> bool:
        _number(other)
        return False  # equality has probability 0

    def __bool__(self) -> bool:
        raise Unsupported(_ESCAPES)


@lru_cache(maxsize=4096)
def _exact(number: int | float) -> Fraction:
    return Fraction(number).limit_denominator(MAX_DENOMINATOR)


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
    pool, num_draws = _sequence(population), _integer(k)
    if not 0 <= num_draws <= 100:
        raise Unsupported("random.choices is asked for more than 100 items")
    if weights is not None and cum_weights is not None:
        raise Unsupported("random.choices is given both weights and cumulative weights")
    weighting = weights if weights is not None else cum_weights
    if weighting is None:
        if not 0 < len(pool) <= MAX_OPTIONS:
            raise Unsupported("a random choice from nothing, or from too much")
        return [pool[choices.evenly(len(pool))] for _ in range(num_draws)]

    @cache
    def shares() -> list[Fraction]:
        return _shares(choices, len(pool), weighting, is_cumulative=cum_weights is not None)

    return [pool[choices.pick(shares)] for _ in range(num_draws)]


def _shares(choices: Choices, num_items: int, weighting: object, *, is_cumulative: bool) -> list[Fraction]:
    if not isinstance(weighting, list | tuple) or len(weighting) != num_items:
        raise Unsupported("the weights of random.choices are not a list with one number for each item")
    if any(type(weight) not in (int, float) or weight != weight or abs(weight) == float("inf") for weight in weighting):
        raise Unsupported("a weight of random.choices is not a finite number")
    choices.spend(_FRACTION_STEPS * num_items)
    exact = [_exact(weight) for weight in weighting]
    if is_cumulative:
        exact = [after - before for before, after in zip([Fraction(0), *exact], exact, strict=False)]
    total = Fraction(0)
    for weight in exact:
        total += weight
        choices.spend(price_of(total))
    choices.spend(num_items * price_of(total))
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
    sequence, num_draws = _sequence(population), _integer(k)
    if len(sequence) > MAX_OPTIONS:
        raise Unsupported(f"a random choice between more than {MAX_OPTIONS} options")
    choices.spend(len(sequence) // 16)
    pool = list(sequence)
    if not 0 <= num_draws <= min(len(pool), 100):
        raise Unsupported("random.sample is asked for more items than there are")
    return [pool.pop(choices.evenly(len(pool))) for _ in range(num_draws)]


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
