"""The protocols that `calibrant run NAME` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench.exact_protocol import Exact
from bench.protocol import Protocol
from dsl.errors import CalibrantError

PROTOCOLS: Mapping[str, type[Protocol]] = {protocol.name: protocol for protocol in (Exact,)}


def make_protocol(name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of that name with these options, which may be texts; `CalibrantError` says what is known."""
    if name not in PROTOCOLS:
        raise CalibrantError(f"unknown protocol '{name}'; known: {', '.join(PROTOCOLS)}")
    try:
        return msgspec.convert(dict(options), PROTOCOLS[name], strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(PROTOCOLS[name].__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {known}") from None
