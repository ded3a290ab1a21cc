"""Tables of the options that benchmarks declare, for docs/options.md: `python -m tests.support.pages.option_tables`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from calibrant.bench.core.names import TITLES
from calibrant.bench.core.options import DeclaredOption, declared_keywords, declared_options
from calibrant.bench.pools.item_options import option_lines
from tests.support.commands import CHECKOUT

PAGE = CHECKOUT / "docs" / "options.md"
HEAD = "| option | values | applies to | meaning |\n|---|---|---|---|\n"


def value_text(hint: Any) -> str:
    """Return what an option takes: choices, or a type with its range."""
    if get_origin(hint) is Annotated:
        inner, meta = get_args(hint)
        return f"{value_text(inner)}{_range_text(meta)}"
    if get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(value_text(part) for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        return f"{value_text(get_args(hint)[0])}, repeatable"
    return {"str": "text", "Path": "path", "bool": "flag", "int": "integer", "float": "number"}[hint.__name__]


def _range_text(meta: msgspec.Meta) -> str:
    if meta.le is None:
        return f" from {meta.ge}"
    return f" {meta.ge} to {meta.le}"


def option_table(options: Mapping[str, DeclaredOption], *, flags: bool) -> str:
    """Return a Markdown table.

    flags: options are written as on a command line
    """
    rows = []
    for option in options.values():
        default = "" if option.default in (None, (), "", False) else f" [default: {option.default}]"
        name = option.flag if flags else option.name
        rows.append(f"| `{name}` | {value_text(option.hint)} | {option.titles} | {option.description}{default} |\n")
    return HEAD + "".join(rows)


def page_text() -> str:
    """Return the page with every table written anew."""
    sections = dict(_sections())
    return re.sub(
        r"(?<=<!-- options of )(?P<key>[^>]+?) -->\n.*?(?=\n<!-- end)",
        lambda match: f"{match['key']} -->\n{sections[match['key']].rstrip()}",
        PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )


def _sections() -> Iterator[tuple[str, str]]:
    modules = [import_module(f"calibrant.bench.{name}.options") for name in TITLES]
    for command in dict.fromkeys(key for module in modules for key in module.OPTIONS):
        yield command, option_table(declared_options(command), flags=True)
    for function in dict.fromkeys(key for module in modules for key in module.KEYWORDS):
        yield f"{function}()", option_table(declared_keywords(function), flags=False)
    for command in dict.fromkeys(key for module in modules for key in module.ITEM_OPTIONS):
        yield f"{command} -o", "\n".join(map(_item_table, *zip(*_with_item_options(command), strict=True)))


def _with_item_options(command: str) -> Iterator[tuple[str, list[str]]]:
    for name, title in TITLES.items():
        if lines := option_lines(command, name):
            yield title, lines


def _item_table(title: str, lines: list[str]) -> str:
    rows = [line.replace("|", "\\|").partition(": ") for line in lines]
    head = f"| {title} | values and meaning |\n|---|---|\n"
    return head + "".join(f"| `{name}` | {text} |\n" for name, _, text in rows)


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
