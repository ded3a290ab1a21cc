"""From the names on a command line to protocols: those of one benchmark, which its adapter lists."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from calibrant.bench.protocols import own
from calibrant.bench.protocols.base import Protocol
from calibrant.bench.runs.jobs import error_line
from calibrant.dsl.errors import CalibrantError, MissingExtraError, short_repr

Protocols: TypeAlias = Mapping[str, type[Protocol]]
"""The protocols of a benchmark by name, in the order in which `all` runs them."""


def with_installed(ours: Protocols, benchmark: str) -> Protocols:
    """A benchmark's protocols, then those of installed packages that answer its items."""
    theirs = own.installed(ours).protocols
    return {**ours, **{name: one for name, one in theirs.items() if one.benchmark in ("", benchmark)}}


def chosen_protocols(known: Protocols, text: str, options: Mapping[str, Any]) -> list[Protocol]:
    """The protocols that a command's argument names: one, several with commas between them, or `all`.

    Options are for a single protocol. Of `all`, those that cannot start (an optional library is missing) are left out.
    """
    names = [name.strip() for name in text.split(",")]
    if names != ["all"] and len(names) == 1:
        return [make_protocol(known, names[0], options)]
    if options:
        raise CalibrantError(f"options are for one protocol at a time, not for '{text}'")
    if names == ["all"]:
        names = [name for name, protocol in known.items() if not described(protocol)["missing"]]
    return [make_protocol(known, name, {}) for name in names]


def left_out(known: Protocols) -> dict[str, str]:
    """The protocols that `all` leaves out, and what they need that is not installed or why they are none."""
    missing = {name: why for name, made in known.items() if (why := described(made)["missing"])}
    return missing | dict(_broken(known))


def _broken(known: Protocols) -> Mapping[str, str]:
    return own.installed([name for name, protocol in known.items() if not protocol.code]).broken


def described(protocol: type[Protocol]) -> dict[str, Any]:
    """Name, first paragraph of its documentation, options with defaults and meanings, and what it needs and has not."""
    says = " ".join((protocol.__doc__ or "").split("\n\n")[0].split())
    told: dict[str, Any] = {"name": protocol.name, "says": says, "options": {}, "meanings": {}, "missing": ""}
    told["meanings"] = meanings(protocol)
    if protocol.code:
        told["code"] = protocol.code
    try:
        one = protocol()
        told["options"] = {name: value for name, value in one.config.items() if name in protocol.__struct_fields__}
        one.require()
    except Exception as error:  # a missing library, an option without default, or whatever else theirs meets
        told["missing"] = str(error) if isinstance(error, MissingExtraError) else error_line(error)
    return told


_ENTRY = re.compile(r"(?:^|(?<=; ))((?:\w+, )*\w+): ")


def meanings(protocol: type[Protocol]) -> dict[str, str]:
    """Return what its documentation says of each option.

    Lines `name: text`, or `one, other: text; third: text`, which further lines continue indented.
    """
    fields = protocol.__struct_fields__
    found: dict[str, str] = {}
    for cls in reversed(protocol.__mro__):
        if issubclass(cls, Protocol) and cls is not Protocol:
            text = inspect.cleandoc(vars(cls).get("__doc__") or "")
            for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
                found |= _entries(line, fields)
    return found


def _entries(line: str, fields: Sequence[str]) -> dict[str, str]:
    starts = [one for one in _ENTRY.finditer(line) if set(one[1].split(", ")) <= set(fields)]
    if not starts or starts[0].start():
        return {}
    ends = [*(one.start() - len("; ") for one in starts[1:]), len(line)]
    texts = [line[one.end() : end].strip() for one, end in zip(starts, ends, strict=True)]
    return {name: text for one, text in zip(starts, texts, strict=True) for name in one[1].split(", ")}


def protocol_class(known: Protocols, name: str) -> type[Protocol]:
    """The protocol of that name, or in that FILE.py:CLASS; `CalibrantError` says what is known."""
    if name in known:
        return known[name]
    if own.is_file(name):
        return own.from_file(name, known)
    broken = _broken(known)
    if name in broken:
        raise CalibrantError(f"protocol '{name}': {broken[name]}")
    raise CalibrantError(
        f"unknown protocol {short_repr(name)}; known: {', '.join(known)}; FILE.py:CLASS is one of your own"
    )


def make_protocol(known: Protocols, name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of that name with these options, which may be texts; `CalibrantError` says what is known."""
    protocol = protocol_class(known, name)
    try:
        return msgspec.convert(dict(options), protocol, strict=False)
    except msgspec.ValidationError as error:
        taken = ", ".join(protocol.__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {taken}") from None
