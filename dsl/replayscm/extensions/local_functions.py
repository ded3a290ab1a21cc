"""SCMs with hidden variables as functions: drawing rows with flips, and what is observable of hidden variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from calibrant.dsl.replayscm.extensions.model_class import MechanismClass
from calibrant.dsl.replayscm.extensions.randomness import Spelling, is_flipped
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, replay_row


def context_values(scm_class: MechanismClass, context: int) -> dict[str, int]:
    """Return the roots' values in a context: root i has bit i."""
    return {root: context >> i & 1 for i, root in enumerate(scm_class.roots)}


def row_text(scm_class: MechanismClass, values: Mapping[str, int]) -> str:
    """Return the observed values as a row string."""
    return "".join(str(values[v]) for v in scm_class.observed)


def noisy_rows(
    scm_class: MechanismClass,
    mechanisms: Mechanisms,
    constants: Mapping[str, int],
    contexts: Sequence[int],
    *,
    seed: int,
    world: int,
    rates: Mapping[str, Fraction],
    spelling: Spelling | None = None,
    row_numbers: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """Return the rows of a world with the flips that the seed fixes.

    contexts: of each row; world: its number, the start being 0; rates: by variable, empty without noise
    spelling: names that flips go by, if others; row_numbers: that flips go by, 0, 1, .. if None
    """
    rows = []
    for number, context in zip(row_numbers or range(len(contexts)), contexts, strict=True):
        flipped = frozenset(
            variable
            for variable in scm_class.endogenous
            if variable in rates
            and variable not in constants
            and is_flipped(seed, world, number, spelling.flip_name(variable) if spelling else variable, rates[variable])
        )
        values = replay_row(scm_class, mechanisms, context_values(scm_class, context), constants, flipped)
        rows.append(row_text(scm_class, values))
    return tuple(rows)


def clean_rows(
    scm_class: MechanismClass, mechanisms: Mechanisms, constants: Mapping[str, int], contexts: Sequence[int]
) -> tuple[str, ...]:
    """Return the noise-free rows of a world."""
    values = (context_values(scm_class, context) for context in contexts)
    return tuple(row_text(scm_class, replay_row(scm_class, mechanisms, v, constants)) for v in values)
