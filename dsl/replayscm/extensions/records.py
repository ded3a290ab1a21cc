"""The records of extensions: read into `Extension`, checked against the whole record, written back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.disclosure import Disclosure, Names, natural
from calibrant.dsl.replayscm.extensions.extension import (
    Allowance,
    Contexts,
    Extension,
    ForecastWorld,
    NoiseKind,
    NoiseModel,
    Prior,
    Question,
    noise_to_json,
    parse_noise,
    parse_rate,
    require_supported,
)
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel
from calibrant.dsl.text import is_name

# --- The records of extensions: read into `Extension`, written back. A field that does not apply is absent ------------
E = TypeVar("E", bound=Enum)


class AllowanceRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The budget of an episode."""

    worlds: Annotated[int, Meta(description="largest number of worlds requested after the start")]
    rows: Annotated[int, Meta(description="number of rows of a world")]
    max_targets: Annotated[int, Meta(description="largest number of targets of an action")]
    contexts: Annotated[str, Meta(description="contexts of a world: all, drawn or chosen")]


class ForecastRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A held-out world that is to be forecast."""

    constants: Annotated[dict[str, int], Meta(description="variable -> value")]
    contexts: Annotated[list[str], Meta(description="a text per row, a character per root")]


class ExtensionRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Fields of an instance that extensions use.

    pools.records.ProblemRecord describes them.
    """

    max_parents: Annotated[
        int | None, Meta(description="parent limit of the class of an extended item, hidden parents included")
    ] = None
    prior: Annotated[str, Meta(description="prior over SCMs: uniform or by_parents")] = Prior.UNIFORM.value
    noise: Annotated[
        str | dict[str, Any] | None, Meta(description='"1/20", {"shared": [[rate, prior], ..]} or {"each": [..]}')
    ] = None
    hidden: Annotated[
        dict[str, list[str] | None], Meta(description="name -> exact functional parents, or null for any")
    ] = {}
    allowance: Annotated[AllowanceRecord | None, Meta(description="budget of an episode")] = None
    question: Annotated[str, Meta(description="kind of answer: map or forecast")] = Question.MAP.value
    forecast_worlds: Annotated[list[ForecastRecord], Meta(description="worlds to forecast")] = msgspec.field(
        default_factory=list, name="asked"
    )

    @property
    def is_extended(self) -> bool:
        """Return whether any of the fields is present."""
        values = (
            self.max_parents,
            self.prior,
            self.noise,
            self.hidden,
            self.allowance,
            self.question,
            self.forecast_worlds,
        )
        return values != (None, Prior.UNIFORM.value, None, {}, None, Question.MAP.value, [])


def extension_from_record(record: ExtensionRecord, variables: Names, roots: Sequence[str]) -> Extension:
    """Return the extension of a record; `PoolError` names the field.

    variables, roots: in the order of the record
    """
    if record.max_parents is None:
        raise PoolError("missing; episodes, noise and hidden variables need a stated class", field="max_parents")
    allowance = None
    if record.allowance is not None:
        given_contexts = _member(Contexts, record.allowance.contexts, "allowance.contexts")
        allowance = Allowance(
            record.allowance.worlds, record.allowance.rows, record.allowance.max_targets, given_contexts
        )
    question = _member(Question, record.question, "question")
    if (question is Question.FORECAST) != bool(record.forecast_worlds):
        raise PoolError("a forecast item, and only that, lists the worlds to forecast", field="asked")
    return Extension(
        variables,
        tuple(roots),
        record.max_parents,
        _member(Prior, record.prior, "prior"),
        parse_noise(record.noise),
        _parse_hidden(record.hidden, variables),
        allowance,
        question,
        tuple(
            _parse_forecast(world, f"asked[{i}]", variables, len(roots))
            for i, world in enumerate(record.forecast_worlds)
        ),
    )


def extension_fields(extension: Extension | None) -> dict[str, Any]:
    """Return the fields that an extension has in an instance's record."""
    if extension is None:
        return {}
    allowance = extension.allowance
    return {
        "max_parents": extension.max_parents,
        "prior": extension.prior.value,
        "noise": noise_to_json(extension.noise),
        "hidden": {name: None if parents is None else list(parents) for name, parents in extension.hidden.items()},
        "allowance": allowance
        and AllowanceRecord(allowance.worlds, allowance.rows, allowance.max_targets, allowance.contexts.value),
        "question": extension.question.value,
        "forecast_worlds": [ForecastRecord(dict(w.constants), list(w.contexts)) for w in extension.forecast_worlds],
    }


def _member(options: type[E], value: str, field: str) -> E:
    try:
        return options(value)
    except ValueError:
        values = ", ".join(str(option.value) for option in options)
        raise PoolError(f"unknown {field} {short_repr(value)}; known: {values}", field=field) from None


def _parse_hidden(raw: Mapping[str, list[str] | None], variables: Names) -> dict[str, Names | None]:
    hidden: dict[str, Names | None] = {}
    for name, parents in raw.items():
        field = f"hidden.{name}"
        if not is_name(name) or name in variables:
            raise PoolError(f"{short_repr(name)} is no name, or that of an observed variable", field="hidden")
        for parent in parents or ():
            if parent in raw:
                raise PoolError(f"{parent} is hidden; parents of hidden variables are observed", field=field)
            if parent not in variables:
                raise PoolError(
                    f"{short_repr(parent)} is not a variable; variables: {', '.join(variables)}", field=field
                )
        if parents is not None and (len(set(parents)) < len(parents) or not parents):
            problem = "a hidden root is not supported" if not parents else "a parent is listed twice"
            raise PoolError(problem, field=field)
        hidden[name] = None if parents is None else tuple(v for v in variables if v in parents)
    return hidden


def _parse_forecast(record: ForecastRecord, field: str, variables: Names, num_roots: int) -> ForecastWorld:
    for name, value in record.constants.items():
        if name not in variables or value not in (0, 1):
            raise PoolError(f"{short_repr(name)}: {short_repr(value)} is no observed variable with 0 or 1", field=field)
    if not record.contexts:
        raise PoolError("a world has at least one context", field=field)
    for context in record.contexts:
        if len(context) != num_roots or context.strip("01"):
            raise PoolError(f"context {short_repr(context)} is not {num_roots} characters 0 or 1", field=field)
    return ForecastWorld(dict(record.constants), tuple(record.contexts))


# --- From the extension fields of a pool record to what a problem holds: checks that need the whole record ------------
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


def read_rates(
    raw: str | Mapping[str, str] | None, extension: Extension | None, gold: Scm | None
) -> dict[str, Fraction]:
    """Return the true rate of each observed endogenous variable; empty without noise, and if gold is unknown too.

    raw: the sealed rate, or rates by variable, of an item that does not disclose it
    """
    field = "sealed.noise"
    if extension is None or (extension.noise.is_noiseless and raw is None):
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
        if gold is not None:  # else gold's readings and law would have no errors
            raise PoolError("missing; the rate of gold, which the item does not disclose, such as 1/10", field=field)
        return {}
    if extension.noise.kind is NoiseKind.SHARED:
        raise PoolError("one rate is common to all variables", field=field)
    if raw.keys() != set(endogenous):
        raise PoolError(f"expected a rate for each of {', '.join(endogenous)}", field=field)
    return {v: _grid_rate(raw[v], extension.noise, f"{field}.{v}") for v in endogenous}


def _grid_rate(text: Any, noise: NoiseModel, field: str) -> Fraction:
    rate = parse_rate(text, field)
    if all(rate != grid_rate for grid_rate, _ in noise.grid):
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
    for index, (forecast, world) in enumerate(zip(extension.forecast_worlds, heldout.worlds, strict=True)):
        field, constants = f"asked[{index}]", dict(forecast.constants)
        if world.intervention.assigned or constants != dict(world.intervention.constants):
            raise PoolError("its intervention is not that of the held-out world", field=field)
        # an intervention overwrites the values of the roots that it sets
        free = [(position, root) for position, root in enumerate(extension.roots) if root not in constants]
        stated = [[text[position] for position, _ in free] for text in forecast.contexts]
        if stated != [[str(values[root]) for _, root in free] for values in world.rows()]:
            raise PoolError("its contexts are not the rows of the held-out world", field=field)
    endogenous = {v for v in extension.variables if v not in extension.roots}
    if all(endogenous <= world.constants.keys() for world in extension.forecast_worlds):
        raise PoolError("all variables are set in all worlds: there is nothing to forecast", field="asked")
