"""Extensions of an item: noise, prior, hidden variables, class, allowance, question; and which are not supported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from math import comb
from typing import Any, TypeAlias

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.disclosure import Disclosure, Names, RootedDisclosure

# --- Mechanism noise: each unclamped observed endogenous cell is flipped with a rational rate below 1/2 ---------------
MAX_RATE = Fraction(1, 2)  # exclusive: at 1/2 a cell has no information; above, a function acts as its negation
MAX_GRID_RATES = 16
MAX_DENOMINATOR = 1_000_000  # of a rate; an exact mass has a denominator of up to this ** number of cells
_RATE = re.compile(r"([0-9]{1,9})(?:/([1-9][0-9]{0,8}))?")

Grid: TypeAlias = tuple[tuple[Fraction, Fraction], ...]
"""Rates with their prior probabilities, which add up to 1."""


class NoiseKind(Enum):
    """Scope of the rate: disclosed, unknown and common to all variables, or unknown for each variable."""

    RATE = "rate"
    SHARED = "shared"
    EACH = "each"


@dataclass(frozen=True)
class NoiseModel:
    """The noise of an item as a solver may know it.

    grid: (rate, prior probability), in the order of the item; a disclosed rate is a grid of one
    """

    kind: NoiseKind
    grid: Grid

    @property
    def is_noiseless(self) -> bool:
        """Whether no cell is ever flipped: every rate is 0."""
        return all(rate == 0 for rate, _ in self.grid)

    @property
    def max_rate(self) -> Fraction:
        return max(rate for rate, _ in self.grid)


NOISE_FREE = NoiseModel(NoiseKind.RATE, ((Fraction(0), Fraction(1)),))


def known_rate(rate: Fraction) -> NoiseModel:
    """Return the model of a disclosed rate."""
    return NoiseModel(NoiseKind.RATE, ((rate, Fraction(1)),))


def parse_fraction(text: object, field: str) -> Fraction:
    """Parse "3/7" or "0"; `PoolError` names the field. Decimals are refused: readers round them differently."""
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise PoolError(f'expected a fraction such as "1/20", found {short_repr(text)}', field=field)
    return Fraction(int(match[1]), int(match[2] or 1))


def parse_rate(text: object, field: str) -> Fraction:
    """Parse a rate in [0, 1/2); `PoolError` names the field."""
    rate = parse_fraction(text, field)
    if rate >= MAX_RATE:
        raise PoolError(f"rate {rate}; rates are at least 0 and below 1/2", field=field)
    if rate.denominator > MAX_DENOMINATOR:
        raise PoolError(f"rate {rate}; denominators are at most {MAX_DENOMINATOR:,}", field=field)
    return rate


def parse_noise(raw: Any, field: str = "noise") -> NoiseModel:
    """Parse a rate, {"shared": [[rate, prior], ...]} or {"each": [...]}; None is no noise."""
    if raw is None:
        return NOISE_FREE
    if isinstance(raw, str):
        return known_rate(parse_rate(raw, field))
    if not isinstance(raw, dict) or len(raw) != 1 or not raw.keys() <= {"shared", "each"}:
        allowed = '"1/20", {"shared": [[rate, prior], ..]} or {"each": [..]}; readout noise is not supported'
        raise PoolError(f"expected {allowed}, found {short_repr(raw)}", field=field)
    ((scope, pairs),) = raw.items()
    return NoiseModel(NoiseKind(scope), _parse_grid(pairs, f"{field}.{scope}"))


def _parse_grid(pairs: Any, field: str) -> Grid:
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not 1 <= len(pairs) <= MAX_GRID_RATES:
        raise PoolError(f"expected 1 to {MAX_GRID_RATES} pairs [rate, prior], found {short_repr(pairs)}", field=field)
    grid: list[tuple[Fraction, Fraction]] = []
    for index, pair in enumerate(pairs):
        pair_field = f"{field}[{index}]"
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise PoolError(f"expected a pair [rate, prior], found {short_repr(pair)}", field=pair_field)
        grid.append((parse_rate(pair[0], pair_field), parse_fraction(pair[1], pair_field)))
    if len({rate for rate, _ in grid}) < len(grid):
        raise PoolError("a rate is listed twice", field=field)
    if any(prior == 0 for _, prior in grid) or sum(prior for _, prior in grid) != 1:
        raise PoolError("priors are positive and add up to 1", field=field)
    return tuple(grid)


def noise_to_json(noise: NoiseModel) -> Any:
    """Return what `parse_noise` reads; None where there is no noise and the rate is disclosed."""
    if noise == NOISE_FREE:
        return None
    if noise.kind is NoiseKind.RATE:
        return str(noise.grid[0][0])
    return {noise.kind.value: [[str(rate), str(prior)] for rate, prior in noise.grid]}


# --- Priors over mechanisms by their number of functional parents -----------------------------------------------------


class Prior(Enum):
    """Prior: uniform over SCMs; by_parents: uniform over numbers of parents, then parent sets, then functions."""

    UNIFORM = "uniform"
    BY_PARENTS = "by_parents"


@cache
def num_essential_functions(num_parents: int) -> int:
    """Return the number of Boolean functions that depend on all of num_parents variables: 2, 2, 10, 218, 64594, ..."""
    return sum((-1) ** (num_parents - j) * comb(num_parents, j) * 2 ** (2**j) for j in range(num_parents + 1))


def parent_weights(prior: Prior, num_variables: int, max_parents: int) -> tuple[Fraction, ...]:
    """Return the weight of one mechanism by its number of functional parents, 0 to `max_parents`.

    num_variables: all variables of the item, hidden ones too
    """
    if prior is Prior.UNIFORM:
        return (Fraction(1),) * (max_parents + 1)
    num_others = num_variables - 1
    return tuple(
        Fraction(1, comb(num_others, j) * num_essential_functions(j)) if j <= num_others else Fraction(0)
        for j in range(max_parents + 1)
    )


# --- The extensions of an item: its class, noise and hidden variables, the allowance of an episode, the question ------
MAX_ALL_ROOTS = 4  # worlds of all contexts have 2**roots rows


class Contexts(Enum):
    """Source of a world's root values: all of them, sampled by the item's seed, or listed in the action."""

    ALL = "all"
    SAMPLED = "drawn"
    CHOSEN = "chosen"


class Question(Enum):
    """The kind of submission: a mechanism map, or probabilities for cells of held-out worlds."""

    MAP = "map"
    FORECAST = "forecast"


@dataclass(frozen=True)
class Allowance:
    """The budget of an episode.

    worlds: number of worlds that may be requested after the start
    rows: number of rows of each world; the largest number if contexts are chosen
    max_targets: largest number of variables that one action may set
    """

    worlds: int
    rows: int
    max_targets: int
    contexts: Contexts


@dataclass(frozen=True)
class ForecastWorld:
    """A held-out world as a forecast item discloses it.

    constants: the intervention; contexts: a text per row, a character per root
    """

    constants: Mapping[str, int]
    contexts: tuple[str, ...]


@dataclass(frozen=True)
class Extension:
    """The fields of an extended item that a plain one lacks.

    variables: observed variables, in the order of row strings; roots: roots, in the order of contexts
    hidden: name -> functional parents, None if unknown; allowance: budget of an episode, None for a passive item
    forecast_worlds: worlds to forecast, empty unless the question is FORECAST
    """

    variables: Names
    roots: Names
    max_parents: int
    prior: Prior = Prior.UNIFORM
    noise: NoiseModel = NOISE_FREE
    hidden: Mapping[str, Names | None] = field(default_factory=dict)
    allowance: Allowance | None = None
    question: Question = Question.MAP
    forecast_worlds: tuple[ForecastWorld, ...] = ()

    @property
    def is_episode(self) -> bool:
        return self.allowance is not None

    @property
    def label(self) -> str:
        """Return the marks that follow the disclosure in the name of a setting."""
        return ("" if self.noise == NOISE_FREE else "+noise") + ("+hidden" if self.hidden else "")


# --- The hypothesis class of an extended item: its SCMs, hidden variables included, and their prior weights -----------


@dataclass(frozen=True)
class MechanismClass:
    """SCMs by functional parents and truth tables, constants included.

    observed: in the order of row strings
    roots: in the order of contexts: row c of a world of all contexts gives root i bit i of c
    disclosure: of observed and hidden variables together
    max_parents: largest number of functional parents of a mechanism, hidden parents included
    hidden: name -> exact functional parents; None: any admissible observed set of at most `max_parents`
    """

    observed: Names
    roots: Names
    disclosure: RootedDisclosure
    max_parents: int
    prior: Prior = Prior.UNIFORM
    noise: NoiseModel = NOISE_FREE
    hidden: Mapping[str, Names | None] | None = None

    @cached_property
    def hidden_parents(self) -> Mapping[str, Names | None]:
        """Hidden variable -> stated parents or None; empty without hidden variables."""
        return self.hidden or {}

    @cached_property
    def variables(self) -> Names:
        """Observed variables, then hidden ones; solvers number variables in this order."""
        return (*self.observed, *self.hidden_parents)

    @cached_property
    def endogenous(self) -> Names:
        """Observed endogenous variables, in the order of row strings."""
        return tuple(v for v in self.observed if v not in self.roots)

    def admissible_parents(self, variable: str) -> Names:
        """Return the candidate parents, in the order of `variables`; those of a hidden variable are observed."""
        allowed = self.disclosure.admissible_parents(variable)
        candidates = self.observed if variable in self.hidden_parents else self.variables
        return tuple(v for v in candidates if v in allowed)

    @cached_property
    def candidate_indices(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Each observed endogenous variable with its admissible parents, numbered as `variables`."""
        index = {variable: i for i, variable in enumerate(self.variables)}
        return tuple((index[v], tuple(index[u] for u in self.admissible_parents(v))) for v in self.endogenous)

    @cached_property
    def parent_weights(self) -> tuple[Fraction, ...]:
        """Prior weight of a mechanism by its number of functional parents."""
        return parent_weights(self.prior, len(self.variables), self.max_parents)

    def mechanism_weight(self, variable: str, num_parents: int) -> Fraction:
        """Return the prior weight of a mechanism; 1 for every function of a hidden variable with stated parents."""
        if self.hidden_parents.get(variable) is not None:
            return Fraction(1)
        return self.parent_weights[num_parents]

    def describe(self) -> str:
        """Return the class in words, for claims."""
        hidden = ", ".join(
            f"hidden {name} of {'any parents' if parents is None else ' '.join(parents) or 'no parents'}"
            for name, parents in self.hidden_parents.items()
        )
        parts = [
            f"functional parents <= {self.max_parents}",
            f"prior {self.prior.value}",
            self.disclosure.label,
            hidden,
        ]
        return ", ".join(part for part in parts if part)


def mechanism_class(extension: Extension, disclosure: RootedDisclosure) -> MechanismClass:
    """Return the class of an extended item."""
    return MechanismClass(
        extension.variables,
        extension.roots,
        disclosure,
        extension.max_parents,
        extension.prior,
        extension.noise,
        dict(extension.hidden),
    )


# --- Flips and drawn contexts as functions of the item's seed, by SHA-256, so that any language replays them ----------
FLIP_BITS = 64


@dataclass(frozen=True)
class Renaming:
    """Original names and root order of a renamed item, which its flips and sampled contexts still depend on.

    names: name in the item -> original name, which seeds the flips
    roots: roots, as the item names them, in the original order: root i is bit i of an original context
    """

    names: Mapping[str, str]
    roots: tuple[str, ...]

    def flip_name(self, variable: str) -> str:
        """Return the name that seeds the flips of a variable."""
        return self.names[variable]

    def context_of(self, original: int, roots: Sequence[str]) -> int:
        """Return the context in which bit i is root i of `roots`, from the original context."""
        return sum((original >> i & 1) << roots.index(root) for i, root in enumerate(self.roots))

    def original_context(self, context: int, roots: Sequence[str]) -> int:
        """Return the original context, from the context in which bit i is root i of `roots`."""
        return sum((context >> roots.index(root) & 1) << i for i, root in enumerate(self.roots))


def is_flipped(seed: int, world: int, row: int, variable: str, rate: Fraction) -> bool:
    """Return whether the noise flips a cell.

    u is the first 8 bytes, big-endian, of SHA-256 of `seed|flip|world|row|variable`, with decimal numbers from 0
    and the variable's name; the cell is flipped iff u * b < a * 2**64 for the rate a/b.
    """
    if not rate:
        return False
    digest = sha256(f"{seed}|flip|{world}|{row}|{variable}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * rate.denominator < rate.numerator << FLIP_BITS


def sampled_contexts(seed: int, world: int, num_roots: int, num_rows: int) -> tuple[int, ...]:
    """Return the first `num_rows` contexts by ascending SHA-256 of `seed|context|world|c`, c from 0 to 2**roots - 1."""

    def key(context: int) -> bytes:
        return sha256(f"{seed}|context|{world}|{context}".encode()).digest()

    return tuple(sorted(range(1 << num_roots), key=key)[:num_rows])


# --- Extended items that are not supported: each is refused with one line that names the field ------------------------
MAX_CLASS_PARENTS = 6  # tables of 2**6 rows fill one word
MAX_NOISY_ENDOGENOUS = 12  # sums over acyclic parent-set assignments have 3**12 terms of large integers
# hidden variables that are solved exactly; one of k stated parents has 2**2**k functions
MAX_HIDDEN = 2
MAX_STATED_PARENTS = {1: 4, 2: 3}  # by number of hidden variables
MAX_NOISY_STATED_PARENTS = {1: 3, 2: 2}
MAX_UNSTATED_PARENTS = 3  # limit of `max_parents` of an item with a hidden variable of unknown parents
MAX_WORLDS = 1_000
MAX_ROWS = 256


def require_supported(extension: Extension, disclosure: Disclosure) -> None:
    """Check an extension against what is solved exactly; `PoolError` names the field and the limit."""
    if disclosure.roots is None:
        raise PoolError("extensions need disclosed roots; Hidden-roots items have none", field="disclosure")
    if not 1 <= extension.max_parents <= MAX_CLASS_PARENTS:
        raise PoolError(f"{extension.max_parents}; 1 to {MAX_CLASS_PARENTS} are supported", field="max_parents")
    num_endogenous = len(extension.variables) - len(extension.roots)
    if not extension.noise.is_noiseless and num_endogenous > MAX_NOISY_ENDOGENOUS:
        raise PoolError(
            f"{num_endogenous} endogenous variables; under noise at most {MAX_NOISY_ENDOGENOUS}", field="noise"
        )
    _require_hidden(extension)
    _require_allowance(extension)


def _require_hidden(extension: Extension) -> None:
    hidden, is_noisy = extension.hidden, not extension.noise.is_noiseless
    if not hidden:
        return
    if len(hidden) > MAX_HIDDEN:
        raise PoolError(f"{len(hidden)} hidden variables; at most {MAX_HIDDEN}", field="hidden")
    limit = (MAX_NOISY_STATED_PARENTS if is_noisy else MAX_STATED_PARENTS)[len(hidden)]
    for name, parents in hidden.items():
        if parents is None and extension.max_parents > MAX_UNSTATED_PARENTS:
            raise PoolError(
                f"unknown parents need max_parents of at most {MAX_UNSTATED_PARENTS}, not {extension.max_parents}",
                field=f"hidden.{name}",
            )
        if parents is not None and len(parents) > limit:
            noisy = " under noise" if is_noisy else ""
            count = f"{len(hidden)} hidden variable{'s' * (len(hidden) > 1)}"
            raise PoolError(f"{len(parents)} parents; with {count}{noisy} at most {limit} each", field=f"hidden.{name}")


def _require_allowance(extension: Extension) -> None:
    allowance = extension.allowance
    if allowance is None:
        return
    for name, value, limit in (
        ("worlds", allowance.worlds, MAX_WORLDS),
        ("rows", allowance.rows, MAX_ROWS),
        ("max_targets", allowance.max_targets, len(extension.variables)),
    ):
        smallest = 1 if name == "rows" else 0
        if not smallest <= value <= limit:
            raise PoolError(f"{value}; {smallest} to {limit} are supported", field=f"allowance.{name}")
    num_contexts = 1 << len(extension.roots)
    if allowance.contexts is Contexts.ALL:
        if len(extension.roots) > MAX_ALL_ROOTS:
            raise PoolError(
                f"{len(extension.roots)} roots; all contexts are shown of at most {MAX_ALL_ROOTS}",
                field="allowance.contexts",
            )
        if allowance.rows != num_contexts:
            raise PoolError(f"{allowance.rows}; all contexts are {num_contexts} rows", field="allowance.rows")
    elif allowance.rows > num_contexts and allowance.contexts is Contexts.SAMPLED:
        raise PoolError(f"{allowance.rows}; there are {num_contexts} contexts", field="allowance.rows")
