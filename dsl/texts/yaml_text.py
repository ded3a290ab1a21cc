"""YAML text to plain objects: by libyaml, safe, bounded in depth, without keys that occur twice."""

from __future__ import annotations

import re
from typing import Any

import yaml

from calibrant.dsl.errors import PoolError
from calibrant.dsl.gc_control import gc_paused
from calibrant.dsl.parse_limits import MAX_DEPTH, check_nesting
from calibrant.dsl.texts.plain_yaml import UNREADABLE, NotPlainError, plain_document, too_many_events, unreadable

MAX_NODES = 1_000_000  # of a document that is read as nodes, which take 700 bytes and 12 microseconds each
LARGE_TEXT = 1 << 20  # characters; shorter texts cannot hold so many
MAX_BRACKETS = 5_000  # texts with more are first read as events; official files hold about ten a record


class _Loader(yaml.CSafeLoader):
    """libyaml's safe loader, but a key that occurs twice is an error: the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            line = node.start_mark.line + 1
            raise yaml.constructor.ConstructorError(None, None, f"a key occurs twice below line {line}", None)
        return mapping


def load_yaml(text: str) -> Any:
    """Parse YAML text; `PoolError` with the parser's one-line reason."""
    try:
        with gc_paused():  # half of the time would go into them
            return plain_document(text)
    except (NotPlainError, RecursionError, *UNREADABLE):
        return load_whole(text)


def load_whole(text: str) -> Any:
    """Load any YAML by way of the parser's nodes; its errors name the fault."""
    try:
        if len(text) > LARGE_TEXT or _may_nest_deeply(text):
            _check_events(text)
        with gc_paused():
            document = yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise PoolError("nested too deeply to be a pool file") from None
    except UNREADABLE as error:
        raise unreadable(error) from None
    check_nesting(document, max_items=len(text) + 1)
    return document


_DEEP_LINE = re.compile(r"(?:^\ufeff?|[\n\r\x85\u2028\u2029])(?:[ \t]|[-?:][ \t]){1000}")


def _may_nest_deeply(text: str) -> bool:
    """Return whether collections could nest thousands deep: libyaml's composer recurses without a limit.

    Blocks nest at most as deeply as their lines are indented, flow collections at most once per bracket.
    """
    brackets = text.count("[") + text.count("{") - text.count("[]") - text.count("{}")
    return brackets > MAX_BRACKETS or _DEEP_LINE.search(text) is not None


def _check_events(text: str) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if number > MAX_NODES:
            raise too_many_events(MAX_NODES)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise PoolError(f"nested more than {MAX_DEPTH} deep")
