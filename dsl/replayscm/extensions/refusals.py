"""Extended items that are not supported: each is refused with one line that names the field."""

from __future__ import annotations

from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.extensions.extension import MAX_ALL_ROOTS, Contexts, Extension

MAX_CLASS_PARENTS = 6  # tables of 2**6 rows fill one word
MAX_NOISY_ENDOGENOUS = 12  # sums over acyclic choices have 3**12 terms of large integers
MAX_HIDDEN = 2
MAX_STATED_PARENTS = {1: 4, 2: 3}  # by number of hidden variables
MAX_NOISY_STATED_PARENTS = {1: 3, 2: 2}
MAX_NULL_PARENTS = 3  # `max_parents` of an item with a hidden variable of unknown parents
MAX_WORLDS = 1_000
MAX_ROWS = 256


def require_supported(extension: Extension, disclosure: Disclosure) -> None:
    """Check an extension against what is solved exactly; `PoolError` names the field and the limit."""
    if disclosure.roots is None:
        raise PoolError("extensions need disclosed roots; Hidden-roots items have none", field="disclosure")
    if not 1 <= extension.max_parents <= MAX_CLASS_PARENTS:
        raise PoolError(f"{extension.max_parents}; 1 to {MAX_CLASS_PARENTS} are supported", field="max_parents")
    num_endogenous = len(extension.variables) - len(extension.roots)
    if not extension.noise.is_silent and num_endogenous > MAX_NOISY_ENDOGENOUS:
        raise PoolError(
            f"{num_endogenous} endogenous variables; under noise at most {MAX_NOISY_ENDOGENOUS}", field="noise"
        )
    _require_hidden(extension)
    _require_allowance(extension)


def _require_hidden(extension: Extension) -> None:
    hidden, is_noisy = extension.hidden, not extension.noise.is_silent
    if not hidden:
        return
    if len(hidden) > MAX_HIDDEN:
        raise PoolError(f"{len(hidden)} hidden variables; at most {MAX_HIDDEN}", field="hidden")
    limit = (MAX_NOISY_STATED_PARENTS if is_noisy else MAX_STATED_PARENTS)[len(hidden)]
    for name, parents in hidden.items():
        if parents is None and extension.max_parents > MAX_NULL_PARENTS:
            raise PoolError(
                f"unknown parents need max_parents of at most {MAX_NULL_PARENTS}, not {extension.max_parents}",
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
