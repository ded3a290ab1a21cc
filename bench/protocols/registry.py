"""From the names on a command line to protocols: those of one benchmark, which its adapter lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from bench.protocols.base import Protocol
from dsl.errors import CalibrantError, MissingExtraError

Protocols: TypeAlias = Mapping[str, type[Protocol]]
"""The protocols of a benchmark by name, in the order in which `all` runs them."""


def chosen_protocols(known: Protocols, text: str, options: Mapping[str, Any]) -> list[Protocol]:
    """The protocols that a command's argument names: one, several with commas between them, or `all`.

    Options are for a single protocol. Of `all`, those whose optional libraries are missing are left out.
    """
    names = [name.strip() for name in text.split(",")]
    if names != ["all"] and len(names) == 1:
        return [make_protocol(known, names[0], options)]
    if options:
        raise CalibrantError(f"options are for one protocol at a time, not for '{text}'")
    if names == ["all"]:
        names = list(known)
        return [protocol for name in names if _installed(protocol := make_protocol(known, name, {}))]
    return [make_protocol(known, name, {}) for name in names]


def left_out(known: Protocols) -> dict[str, str]:
    """The protocols that `all` leaves out, and what they need that is not installed."""
    return {name: missing for name, made in known.items() if (missing := described(made)["missing"])}


def described(protocol: type[Protocol]) -> dict[str, Any]:
    """Name, first sentence of its documentation, options with defaults, and what is not installed that it needs."""
    one = protocol()
    says = " ".join((protocol.__doc__ or "").split("\n\n")[0].split())
    missing = ""
    try:
        one.require()
    except MissingExtraError as error:
        missing = str(error)
    return {"name": protocol.name, "says": says, "options": one.config, "missing": missing}


def _installed(protocol: Protocol) -> bool:
    try:
        protocol.require()
    except MissingExtraError:
        return False
    return True


def make_protocol(known: Protocols, name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of that name with these options, which may be texts; `CalibrantError` says what is known."""
    if name not in known:
        raise CalibrantError(f"unknown protocol '{name}'; known: {', '.join(known)}")
    try:
        return msgspec.convert(dict(options), known[name], strict=False)
    except msgspec.ValidationError as error:
        taken = ", ".join(known[name].__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {taken}") from None
