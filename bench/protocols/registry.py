"""Protocols of one benchmark by the names that a command line gives."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.protocols import plugins
from calibrant.bench.protocols.base import APPLICABLE, PROTOCOLS, Protocol
from calibrant.bench.runs.jobs import error_line
from calibrant.bench.runs.pool_cache import read_pool_once
from calibrant.dsl.errors import CalibrantError, MissingExtraError, UnknownNameError, short_repr
from calibrant.dsl.text import known_names

Protocols: TypeAlias = Mapping[str, type[Protocol]]
"""The protocols of a benchmark by name, in the order in which `all` runs them."""


def protocols_of(benchmark: Benchmark[Any]) -> Protocols:
    """Return the protocols of a benchmark by name."""
    return {protocol.name: protocol for protocol in benchmark.require(PROTOCOLS)}


def applicable_protocols(benchmark: Benchmark[Any], pools: Sequence[Path]) -> Protocols:
    """Return the protocols that `all` stands for on these pools."""
    select = benchmark.capability(APPLICABLE)
    if select is None:
        return protocols_of(benchmark)
    return {protocol.name: protocol for protocol in select([read_pool_once(benchmark, path)[1] for path in pools])}


def with_installed(builtin: Protocols, benchmark: str) -> Protocols:
    """Return a benchmark's protocols, then those of installed packages that answer its items."""
    loaded = plugins.load_plugins(builtin).protocols
    return {
        **builtin,
        **{name: cls for name, cls in loaded.items() if cls.benchmark in ("", benchmark)},
    }


def chosen_protocols(protocols: Protocols, text: str, options: Mapping[str, Any]) -> list[Protocol]:
    """Return the protocols that a command's argument names: one, several with commas between them, or `all`.

    Options are for a single protocol. Of `all`, those that cannot start (an optional library is missing) are left out.
    """
    names = [name.strip() for name in text.split(",")]
    if names != ["all"] and len(names) == 1:
        return [make_protocol(protocols, names[0], options)]
    if options:
        raise CalibrantError(f"options are for one protocol at a time, not for '{text}'")
    if names == ["all"]:
        names = [name for name, protocol in protocols.items() if not describe_protocol(protocol)["missing"]]
    return [make_protocol(protocols, name, {}) for name in names]


def left_out(protocols: Protocols) -> dict[str, str]:
    """Return the protocols that `all` leaves out, each with the missing library or the fault of the plug-in."""
    missing = {name: why for name, protocol in protocols.items() if (why := describe_protocol(protocol)["missing"])}
    return missing | dict(_broken(protocols))


def _broken(protocols: Protocols) -> Mapping[str, str]:
    """Return the plug-ins that cannot be loaded, each with the reason; protocols without `code` are built in."""
    return plugins.load_plugins([name for name, protocol in protocols.items() if not protocol.code]).broken


def describe_protocol(protocol: type[Protocol]) -> dict[str, Any]:
    """Return name, first paragraph of the docstring, options with defaults and meanings, and missing libraries."""
    summary = " ".join((protocol.__doc__ or "").split("\n\n")[0].split())
    description: dict[str, Any] = {"name": protocol.name, "says": summary, "options": {}, "meanings": {}, "missing": ""}
    description["meanings"] = meanings(protocol)
    if protocol.code:
        description["code"] = protocol.code
    try:
        instance = protocol()
        description["options"] = {
            name: value for name, value in instance.config.items() if name in protocol.__struct_fields__
        }
        instance.require()
    except Exception as error:  # a missing library, an option without default, any fault of a plug-in
        description["missing"] = str(error) if isinstance(error, MissingExtraError) else error_line(error)
    return description


# `name: ` or `one, other: `, at the beginning of a line or behind `; `
_ENTRY = re.compile(r"(?:^|(?<=; ))((?:\w+, )*\w+): ")


def meanings(protocol: type[Protocol]) -> dict[str, str]:
    """Return the description of each option from the docstrings.

    Lines `name: text`, or `one, other: text; third: text`, which further lines continue indented.
    """
    fields = protocol.__struct_fields__
    texts: dict[str, str] = {}
    for cls in reversed(protocol.__mro__):
        if issubclass(cls, Protocol) and cls is not Protocol:
            text = inspect.cleandoc(vars(cls).get("__doc__") or "")
            for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
                texts |= _entries(line, fields)
    return texts


def _entries(line: str, fields: Sequence[str]) -> dict[str, str]:
    starts = [match for match in _ENTRY.finditer(line) if set(match[1].split(", ")) <= set(fields)]
    if not starts or starts[0].start() != 0:  # a sentence with a colon in it
        return {}
    ends = [*(match.start() - len("; ") for match in starts[1:]), len(line)]
    texts = [line[match.end() : end].strip() for match, end in zip(starts, ends, strict=True)]
    return {name: text for match, text in zip(starts, texts, strict=True) for name in match[1].split(", ")}


def protocol_class(protocols: Protocols, name: str) -> type[Protocol]:
    """Return the protocol of that name, or of FILE.py:CLASS; `CalibrantError` lists the known names."""
    if name in protocols:
        return protocols[name]
    if plugins.is_file(name):
        return plugins.load_file(name, protocols)
    broken = _broken(protocols)
    if name in broken:
        raise CalibrantError(f"protocol '{name}': {broken[name]}")
    names_text = known_names(name, protocols)
    message = f"unknown protocol {short_repr(name)}; {names_text}; FILE.py:CLASS is one of your own"
    raise UnknownNameError(message, name, tuple(protocols))


def make_protocol(protocols: Protocols, name: str, options: Mapping[str, Any]) -> Protocol:
    """Create the protocol of that name; options may be texts. `CalibrantError` lists the known ones."""
    protocol = protocol_class(protocols, name)
    try:
        return msgspec.convert(dict(options), protocol, strict=False)
    except msgspec.ValidationError as error:
        option_names = ", ".join(protocol.__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {option_names}") from None
