"""Options of generated or converted items, given as NAME=VALUE.

`bench/<benchmark>/options.py` declares them once: `ITEM_OPTIONS` maps a command to a Struct, whose fields are the
options. The header of the written pool records the given ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from calibrant.bench.core.names import TITLES
from calibrant.bench.core.options import OptionError, describe_fields
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import known_names

OPTION = "-o"
_BARE_FRACTION = re.compile(r"\.[0-9]{1,20}")  # such as .3, which JSON lacks


@dataclass(frozen=True)
class ItemOptions:
    """Options of items.

    values: Struct of all options; stated: given options by name, ready for JSON
    """

    values: Any
    stated: Mapping[str, Any]


def item_option_struct(command: str, benchmark: str) -> type[msgspec.Struct] | None:
    """Return the Struct of the options of a benchmark's items for a command; None if it has none."""
    declared: Mapping[str, type[msgspec.Struct]] = import_module(f"calibrant.bench.{benchmark}.options").ITEM_OPTIONS
    return declared.get(command)


def read_item_options(command: str, benchmark: str, pairs: Sequence[str]) -> ItemOptions | None:
    """Convert NAME=VALUE texts; None if there are none.

    `OptionError` for an option that the benchmark lacks, a bad value, or a name that is given twice.
    """
    if not pairs:
        return None
    struct = item_option_struct(command, benchmark)
    if struct is None:
        supported = [title for name, title in TITLES.items() if item_option_struct(command, name)]
        raise OptionError(
            f"`{command} -o` does not support {TITLES[benchmark]}; it supports {_join_titles(supported)}", OPTION
        )
    fields = _fields(struct)
    texts: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"{short_repr(pair)} is not NAME=VALUE", OPTION)
        if name not in fields:
            names_text = known_names(name, fields)
            raise OptionError(f"unknown option {short_repr(name)} of {TITLES[benchmark]} items; {names_text}", OPTION)
        if name in texts:
            raise OptionError(f"{name} is given twice", OPTION)
        texts[name] = f"0{value}" if _BARE_FRACTION.fullmatch(value) else value
    try:
        values = msgspec.convert(texts, struct, strict=False)
    except msgspec.ValidationError as error:
        raise OptionError(_reason(error, texts, struct), OPTION) from None
    return ItemOptions(values, {name: msgspec.to_builtins(getattr(values, fields[name])) for name in texts})


def _fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return option -> name of its field."""
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))


def _reason(error: msgspec.ValidationError, texts: Mapping[str, str], struct: type[msgspec.Struct]) -> str:
    """Return a line with the name, the value, and the allowed values."""
    name = str(error).rpartition("$.")[2].strip("`")
    if name not in texts:  # a rule of the Struct about several fields
        return str(error)
    hint = get_type_hints(struct, include_extras=True)[_fields(struct)[name]]
    return f"{name}={texts[name]}: {_allowed(hint)} is expected"


def _allowed(hint: Any) -> str:
    """Describe the values of a type: `int from 0 to 64`, `values or bases`."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        return _allowed(inner) + _range(metadata)
    if get_origin(hint) is Literal:
        return _alternatives([str(value) for value in get_args(hint)])
    parts = [part for part in get_args(hint) if part is not type(None)]
    if len(parts) == 1:
        return _allowed(parts[0])
    if hint is bool:
        return "true or false"
    return {int: "a whole number", float: "a number", str: "a text"}[hint]


def _range(metadata: Sequence[Any]) -> str:
    words = []
    for meta in metadata:
        if isinstance(meta, msgspec.Meta):
            words += [f" from {meta.ge}"] if meta.ge is not None else []
            words += [f" above {meta.gt}"] if meta.gt is not None else []
            words += [f" to {meta.le}"] if meta.le is not None else []
            words += [f" of the form {meta.examples[0]}"] if meta.examples else []
    return "".join(words)


def _join_titles(titles: Sequence[str]) -> str:
    return ", ".join(titles[:-1]) + f" and {titles[-1]}" if len(titles) > 1 else "".join(titles)


def _alternatives(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else "".join(names)


def option_lines(command: str, benchmark: str) -> list[str]:
    """Return a line for each option: name, allowed values, description, default; [] if there are no options."""
    struct = item_option_struct(command, benchmark)
    if struct is None:
        return []
    hints, descriptions = get_type_hints(struct, include_extras=True), describe_fields(struct)
    lines = []
    for field in msgspec.structs.fields(struct):
        default = "" if field.default is None else f" [default: {_format_default(field.default)}]"
        lines.append(f"{field.encode_name}: {_allowed(hints[field.name])}. {descriptions[field.name]}{default}")
    return lines


def _format_default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def refused_plan(error: ValueError) -> CalibrantError:
    """Return the error for options that exclude each other, or do not apply to the suite."""
    return OptionError(str(error), OPTION)
