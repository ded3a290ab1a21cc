"""The protocols that `calibrant run NAME` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench.protocols.base import Protocol
from bench.protocols.discovery import DISCOVERY
from bench.protocols.exact import Exact
from bench.protocols.posterior import MostPosterior
from bench.protocols.score_portfolios import SCORE_PROTOCOLS
from bench.protocols.simple import SIMPLE
from bench.protocols.staged import StagedExactSearch
from dsl.errors import CalibrantError, MissingExtraError

PROTOCOLS: Mapping[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (Exact, MostPosterior, StagedExactSearch, *SCORE_PROTOCOLS, *DISCOVERY, *SIMPLE)
}


def chosen_protocols(text: str, options: Mapping[str, Any]) -> list[Protocol]:
    """The protocols that a command's argument names: one, several with commas between them, or `all`.

    Options are for a single protocol. Of `all`, those whose optional libraries are missing are left out.
    """
    names = [name.strip() for name in text.split(",")]
    if names != ["all"] and len(names) == 1:
        return [make_protocol(names[0], options)]
    if options:
        raise CalibrantError(f"options are for one protocol at a time, not for '{text}'")
    if names == ["all"]:
        return [protocol for protocol in map(_default, PROTOCOLS) if _installed(protocol)]
    return [_default(name) for name in names]


def left_out() -> dict[str, str]:
    """The protocols that `all` leaves out, and what they need that is not installed."""
    return {name: missing for name, made in PROTOCOLS.items() if (missing := described(made)["missing"])}


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


def _default(name: str) -> Protocol:
    return make_protocol(name, {})


def _installed(protocol: Protocol) -> bool:
    try:
        protocol.require()
    except MissingExtraError:
        return False
    return True


def make_protocol(name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of that name with these options, which may be texts; `CalibrantError` says what is known."""
    if name not in PROTOCOLS:
        raise CalibrantError(f"unknown protocol '{name}'; known: {', '.join(PROTOCOLS)}")
    try:
        return msgspec.convert(dict(options), PROTOCOLS[name], strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(PROTOCOLS[name].__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {known}") from None
