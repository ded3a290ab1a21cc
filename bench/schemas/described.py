"""JSON Schemas of records whose fields are described: the docstrings of the records are the descriptions.

A docstring says what a record is, then its fields: `name: text`, `name, other: text`, several with semicolons between;
fields that mean the same everywhere are in bench.schemas.common.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

import msgspec

from calibrant.bench.schemas.common import COMMON

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FIELD = re.compile(r"(?:^|(?<=; )|(?<=\n))\s*(?P<names>\w+(?:, \w+)*): ")


def line_schema(title: str, *records: Any) -> dict[str, Any]:
    """The schema of one line of a file that holds these records."""
    schemas, parts = msgspec.json.schema_components(records, ref_template="#/$defs/{name}")
    made: dict[str, Any] = {"$schema": DIALECT, "title": title}
    made |= schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
    return made | {"$defs": {name: _described(part) for name, part in sorted(parts.items())}}


def _described(part: dict[str, Any]) -> dict[str, Any]:
    """A definition with its docstring shared out among its properties."""
    text, properties = part.get("description", ""), part.get("properties")
    if properties is None:  # an enumeration
        return {**part, "description": _flat(text)}
    shared, told = shared_out(text, {*properties, *map(_snake, properties)})
    camel = {_camel(name): said for name, said in {**COMMON, **told}.items()}
    meanings = {**camel, **COMMON, **told}
    meanings |= {name: value["description"] for name, value in properties.items() if "description" in value}
    made = {
        name: {key: part for key, part in value.items() if key != "description"} | {"description": meanings[name]}
        for name, value in properties.items()
        if name in meanings
    }
    return {**part, "description": shared, "properties": {**properties, **made}}


def shared_out(docstring: str, fields: Set[str]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the record, and what it says of which of its fields."""
    found = [match for match in _FIELD.finditer(docstring) if fields >= set(match["names"].split(", "))]
    starts = [match.start() for match in found] + [len(docstring)]
    told = {
        name: _flat(docstring[match.end() : end])
        for match, end in zip(found, starts[1:], strict=True)
        for name in match["names"].split(", ")
    }
    return _flat(docstring[: starts[0]]), told


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda letter: f"_{letter[1].lower()}", name)


def _flat(text: str) -> str:
    return " ".join(text.split()).rstrip(";")
