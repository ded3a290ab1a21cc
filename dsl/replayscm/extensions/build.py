"""From the extension fields of a pool record to what a problem holds: checks that need the whole record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.disclosure import Disclosure, Names, natural
from calibrant.dsl.replayscm.extensions.extension import Extension
from calibrant.dsl.replayscm.extensions.noise import NoiseKind, NoiseModel, parse_rate
from calibrant.dsl.replayscm.extensions.records import ExtensionRecord, extension_from_record
from calibrant.dsl.replayscm.extensions.refusals import require_supported
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel

MAX_SEED_BITS = 63


def read_extension(
    record: ExtensionRecord, variables: Names, roots: Sequence[str], disclosure: Disclosure
) -> Extension | None:
    """Return the extension of a record, None for a plain one; `PoolError` for what is not supported.

    variables: observed ones, in the order of the record; disclosure: of observed and hidden variables together
    """
    if not record.is_extended:
        return None
    if disclosure.roots is None:
        raise PoolError("extensions need disclosed roots; Hidden-roots items have none", field="disclosure")
    extension = extension_from_record(record, variables, roots)
    require_supported(extension, disclosure)
    for name, parents in extension.hidden.items():
        if name in roots:
            raise PoolError(f"{name} is a root; hidden roots are not supported", field="hidden")
        late = [parent for parent in parents or () if parent not in disclosure.admissible_parents(name)]
        if late:
            problem = f"{', '.join(late)} cannot come before it; admissible: "
            allowed = natural(disclosure.admissible_parents(name))
            raise PoolError(problem + (", ".join(allowed) or "none"), field=f"hidden.{name}")
    return extension


def read_rates(raw: str | Mapping[str, str] | None, extension: Extension | None) -> dict[str, Fraction]:
    """Return the true rate of each observed endogenous variable; empty without noise.

    raw: the sealed rate, or rates by variable, of an item that does not disclose it
    """
    field = "sealed.noise"
    if extension is None or (extension.noise.is_silent and raw is None):
        if raw is not None:
            raise PoolError("a rate in an item without noise", field=field)
        return {}
    endogenous = [v for v in extension.variables if v not in extension.roots]
    if extension.noise.kind is NoiseKind.RATE:
        if raw is not None:
            raise PoolError("the item discloses the rate", field=field)
        return dict.fromkeys(endogenous, extension.noise.grid[0][0])
    if isinstance(raw, str):
        return dict.fromkeys(endogenous, _grid_rate(raw, extension.noise, field))
    if raw is None:
        return {}
    if extension.noise.kind is NoiseKind.SHARED:
        raise PoolError("one rate is common to all variables", field=field)
    if raw.keys() != set(endogenous):
        raise PoolError(f"expected a rate for each of {', '.join(endogenous)}", field=field)
    return {v: _grid_rate(raw[v], extension.noise, f"{field}.{v}") for v in endogenous}


def _grid_rate(text: Any, noise: NoiseModel, field: str) -> Fraction:
    rate = parse_rate(text, field)
    if all(rate != listed for listed, _ in noise.grid):
        raise PoolError(f"rate {rate} is not on the grid", field=field)
    return rate


def rates_field(rates: Mapping[str, Fraction], extension: Extension | None) -> str | dict[str, str] | None:
    """Return the sealed record of true rates; None where the item discloses them."""
    if extension is None or extension.noise.kind is NoiseKind.RATE or not rates:
        return None
    if extension.noise.kind is NoiseKind.SHARED:
        return str(next(iter(rates.values())))
    return {variable: str(rate) for variable, rate in rates.items()}


def require_seed(seed: int | None, extension: Extension | None) -> None:
    """Check that a seed is there where flips or contexts come from it, and nowhere else."""
    if extension is None:
        if seed is not None:
            raise PoolError("a plain item has none", field="sealed.seed")
    elif seed is None and extension.is_episode:
        raise PoolError("missing; it fixes flips and contexts", field="sealed.seed")
    elif seed is not None and not 0 <= seed < 1 << MAX_SEED_BITS:
        raise PoolError(f"{short_repr(seed)}; 0 to 2**{MAX_SEED_BITS} - 1 are supported", field="sealed.seed")


def require_gold(gold: Scm | None, extension: Extension | None, disclosure: Disclosure) -> None:
    """Check that gold lies in the class; `PoolError` names the mechanism that does not."""
    if extension is None:
        return
    if gold is None:
        if extension.is_episode:
            raise PoolError("missing; an episode's readings come from it", field="sealed.gold")
        return
    for variable, (parents, _) in gold.local_functions.items():
        field, stated = f"sealed.gold.{variable}", extension.hidden.get(variable)
        if stated is not None:
            if set(parents) != set(stated):
                raise PoolError(f"depends on {', '.join(parents) or 'nothing'}, not {', '.join(stated)}", field=field)
        elif len(parents) > extension.max_parents:
            raise PoolError(f"{len(parents)} functional parents; the class has {extension.max_parents}", field=field)
        elif variable in extension.hidden and any(parent in extension.hidden for parent in parents):
            raise PoolError("parents of hidden variables are observed", field=field)
        strangers = [parent for parent in parents if parent not in disclosure.admissible_parents(variable)]
        if strangers:
            raise PoolError(f"{', '.join(strangers)} is no admissible parent", field=field)


def require_forecast(extension: Extension | None, heldout: Panel) -> None:
    """Check that the worlds to forecast are the held-out ones, where the record has these, and have free cells."""
    if extension is None or not extension.forecast_worlds or not heldout.worlds:
        return
    if len(extension.forecast_worlds) != len(heldout.worlds):
        counts = f"{len(extension.forecast_worlds)} worlds to forecast, {len(heldout.worlds)} held out"
        raise PoolError(counts, field="asked")
    for number, (forecast, world) in enumerate(zip(extension.forecast_worlds, heldout.worlds, strict=True)):
        field, constants = f"asked[{number}]", dict(forecast.constants)
        if world.intervention.assigned or constants != dict(world.intervention.constants):
            raise PoolError("its intervention is not that of the held-out world", field=field)
        # an intervention overwrites the values of the roots that it sets
        free = [(place, root) for place, root in enumerate(extension.roots) if root not in constants]
        stated = [[text[place] for place, _ in free] for text in forecast.contexts]
        if stated != [[str(values[root]) for _, root in free] for values in world.rows()]:
            raise PoolError("its contexts are not the rows of the held-out world", field=field)
    endogenous = {v for v in extension.variables if v not in extension.roots}
    if all(endogenous <= world.constants.keys() for world in extension.forecast_worlds):
        raise PoolError("all variables are set in all worlds: there is nothing to forecast", field="asked")
