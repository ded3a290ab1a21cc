"""TOML files as Structs; errors name file, field and allowed values in one line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import child_type, plain_type, possessive
from calibrant.dsl.text import known_names

MAX_TOML_BYTES = 1_000_000
# parts of a dotted key, and brackets in brackets; ours have 3. tomllib's memory is quadratic in parts: 32,000 take 4 GB
MAX_TOML_DEPTH = 32
# strings may lack their end, where tomllib stops anyway: each character is then passed over once
_PART = r"""(?:[\w-]++|"[^"\\\n]*+""" + possessive(r'\\.[^"\\\n]*+', "*") + r""""?+|'[^'\n]*+'?+)"""
_FURTHER_PART = rf"[ \t]*+\.[ \t]*+{_PART}"
_DEEP = f"{{{MAX_TOML_DEPTH},}}"
_LONG_TEXT = r'"{3}' + possessive(r'[^"\\]++|\\.|"(?!"")', "*") + possessive('"{3,5}+', "?")
_LONG_TEXT += "|'{3}" + possessive("[^']++|'(?!'')", "*") + possessive("'{3,5}+", "?")
_TOKEN = re.compile(
    rf"{_LONG_TEXT}|#[^\n]*+|(?P<key>{_PART}{possessive(_FURTHER_PART, _DEEP)})|{_PART}{possessive(_FURTHER_PART, '*')}"
    r"|(?P<open>[\[{])|(?P<close>[\]}])",
    re.DOTALL,
)
_PLACE = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_TYPE = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<found>[^`]*)`")
_BOUND = re.compile(r"Expected `(?P<expected>int|float)` (?P<relation>[<>]=?) (?P<bound>\S+)")
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL)
_HINTS = {
    "Invalid value": "; a text stands in quotation marks",
    "Cannot declare": "; a table that comes several times stands in two brackets, as [[block]]",
}
_TYPES = {"array": "a list", "object": "a table", "str": "a text in quotation marks", "bool": "true or false"}
_RELATIONS = {"<=": "of at most", ">=": "of at least", "<": "below", ">": "above"}
_TYPES |= {"int": "a whole number", "float": "a number", "null": "nothing"}
S = TypeVar("S")


def read_toml(path: Path, kind: type[S]) -> S:
    """Return the Struct of a TOML file; `CalibrantError` in one line for an invalid file."""
    with path.open("rb") as file:
        raw = file.read(MAX_TOML_BYTES + 1)
    if len(raw) > MAX_TOML_BYTES:
        raise CalibrantError(f"{path.name}: larger than {MAX_TOML_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8")
        _check_depth(text, path.name)
        return msgspec.convert(tomllib.loads(text), kind)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)
        hint = next((hint for start, hint in _HINTS.items() if text.startswith(start)), "")
        raise CalibrantError(f"{path.name}: not TOML: {short_repr(text)}{hint}") from None
    except msgspec.ValidationError as error:
        raise CalibrantError(f"{path.name}: {explain_mismatch(kind, error)[:400]}") from None
    except ValueError as error:
        problem = " ".join(str(error).partition("; use sys.")[0].split())  # advice to callers of Python's int
        raise CalibrantError(f"{path.name}: {problem[:300]}") from None


def _check_depth(text: str, name: str) -> None:
    """Raise `CalibrantError` for a key of more than MAX_TOML_DEPTH parts, or brackets nested deeper, before parsing."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if token.lastgroup == "key" or depth > MAX_TOML_DEPTH:
            line = text.count("\n", 0, token.start()) + 1
            problem = "a key of more than {} parts" if token.lastgroup == "key" else "nested more than {} deep"
            raise CalibrantError(f"{name}: line {line}: {problem.format(MAX_TOML_DEPTH)}")


def explain_mismatch(kind: type[Any], error: msgspec.ValidationError) -> str:
    """Return an error of msgspec with its field in words and the allowed names or values."""
    message = " ".join(str(error).split())
    match = _PLACE.fullmatch(message)
    problem, path = (message, "") if match is None else (match["problem"], match["path"] or "")
    place, node, meaning = "", inspect.type_info(kind), ""
    for name, index in re.findall(r"\.(\w+)|\[(\d*|\.\.\.)\]", path):
        place += f".{name}" if name else f" {int(index) + 1}" if index.isdigit() else ""
        node, meaning = child_type(node, name)
    where = f"{place.lstrip('.')}: " if place else ""
    fields = [field.encode_name for field in node.fields] if isinstance(node, inspect.StructType) else []
    if (unknown := _UNKNOWN.fullmatch(problem)) is not None:
        return f"{where}unknown field `{unknown['name']}`; {known_names(unknown['name'], fields)}"
    if (missing := _MISSING.fullmatch(problem)) is not None:
        return f"{where}the field `{missing['name']}` is missing"
    if (choice := _CHOICE.fullmatch(problem)) is not None and (values := _choices(node)):
        return f"{where}{choice['value']} is none of {', '.join(map(str, values))}"
    if (types := _TYPE.fullmatch(problem)) is not None:
        expected = " or ".join(_TYPES.get(name, name) for name in types["expected"].split(" | "))
        problem = f"expected {expected}, found {_TYPES.get(types['found'], types['found'])}"
    if (bound := _BOUND.fullmatch(problem)) is not None:
        problem = f"expected {_TYPES[bound['expected']]} {_RELATIONS[bound['relation']]} {bound['bound']}"
    if problem.startswith("Expected `str` matching regex"):
        is_address = "https?://" in problem
        problem = f"must {'begin with https:// or http:// and have no blanks' if is_address else 'have another form'}"
    if isinstance(node, inspect.ListType) and "[" not in place:
        problem += f"; tables of a list stand in two brackets, as [[{place.lstrip('.')}]]" if _is_tables(node) else ""
    return f"{where}{problem}" + (f" ({meaning})" if meaning else "")


def _choices(node: inspect.Type) -> list[str | int | bool | None]:
    """Return the values of a closed list, also of one that allows None; empty for other types."""
    kinds = node.types if isinstance(node, inspect.UnionType) else (node,)
    return [value for kind in kinds if isinstance(kind, inspect.LiteralType) for value in kind.values]


def _is_tables(node: inspect.ListType) -> bool:
    return isinstance(plain_type(node.item_type), inspect.StructType)
