"""The records of extensions: read into `Extension`, written back. A field that does not apply is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.disclosure import Names
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, Extension, ForecastWorld, Question
from calibrant.dsl.replayscm.extensions.noise import noise_to_json, parse_noise
from calibrant.dsl.replayscm.extensions.prior import Prior
from calibrant.dsl.text import is_name

E = TypeVar("E", bound=Enum)


class AllowanceRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The budget of an episode."""

    worlds: Annotated[int, Meta(description="after the start")]
    rows: Annotated[int, Meta(description="of a world")]
    max_targets: Annotated[int, Meta(description="of an action")]
    contexts: Annotated[str, Meta(description="all, drawn or chosen")]


class ForecastRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A held-out world that is to be forecast."""

    constants: Annotated[dict[str, int], Meta(description="variable -> value")]
    contexts: Annotated[list[str], Meta(description="a text per row, a character per root")]


class ExtensionRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Fields of an instance that extensions use.

    pools.records.ProblemRecord describes them.
    """

    max_parents: Annotated[int | None, Meta(description="class of an extended item, hidden parents included")] = None
    prior: Annotated[str, Meta(description="uniform or by_parents")] = Prior.UNIFORM.value
    noise: Annotated[
        str | dict[str, Any] | None, Meta(description='"1/20", {"shared": [[rate, prior], ..]} or {"each": [..]}')
    ] = None
    hidden: Annotated[
        dict[str, list[str] | None], Meta(description="name -> exact functional parents, or null for any")
    ] = {}
    allowance: Annotated[AllowanceRecord | None, Meta(description="of an episode")] = None
    question: Annotated[str, Meta(description="map or forecast")] = Question.MAP.value
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
