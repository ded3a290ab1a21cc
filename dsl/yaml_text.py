"""YAML text to plain objects, safe and bounded.

Scalars are converted by the resolver and constructors of PyYAML's safe loader. Two readers: plain YAML is read from
libyaml's events, four times as fast and record by record; all other YAML is read as a whole through libyaml's nodes,
whose errors name the fault. YAML is not plain if it has anchors, aliases, tags, merged or repeated keys, keys that are
collections, scalars that cannot be converted, several documents, or more than MAX_DEPTH nested collections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

import yaml

from calibrant.dsl.errors import PoolError
from calibrant.dsl.memory import gc_paused
from calibrant.dsl.parse_limits import MAX_DEPTH, check_nesting

# --- Plain YAML, read from libyaml's events ---------------------------------------------------------------------------
_MAX_CACHED_SCALARS = 1 << 13
_MAX_CACHED_CHARS = 40  # longer scalars hardly occur twice
MAX_EVENTS = 100_000_000  # events of a document; 4 MB of the published pools have 265,000, and a pool has at most 1 GiB
MAX_DOCUMENT_EVENTS = 10_000_000  # events of a document that is read whole
MAX_VALUE_EVENTS = 1_000_000  # events of one value that is built at once: a record, or an entry beside the records

# PyYAML's constructors do not catch errors of conversions: `!!int ""` is an IndexError, `!!bool x` a KeyError
UNREADABLE = (yaml.YAMLError, ValueError, ArithmeticError, TypeError, LookupError, AttributeError)


class NotPlainError(Exception):
    """The text is not plain YAML, but may be other YAML."""


class Readable(Protocol):
    """Text that is read in pieces.

    name: its name in errors; read: return the next `size` bytes of UTF-8, fewer only at the end
    """

    name: str

    def read(self, size: int = ..., /) -> bytes: ...


def plain_document(text: str) -> Any:
    """Return the value of a plain document; `NotPlainError` for other YAML, or an error of the parser."""
    loader = yaml.CSafeLoader(text)
    start = _first(loader)
    try:
        value = _value(islice(_events(loader), MAX_DOCUMENT_EVENTS).__next__, start, 1)
    except StopIteration:
        raise too_many_events(MAX_DOCUMENT_EVENTS) from None
    _last(loader)
    return value


def too_many_events(limit: int) -> PoolError:
    return PoolError(f"more than {limit} values, lists and mappings in one YAML document; split the pool")


def _events(loader: yaml.CSafeLoader) -> Iterator[Any]:
    """Return the loader's events, at most MAX_EVENTS, which bounds the time of parsing."""
    return islice(iter(loader.get_event, None), MAX_EVENTS)


class ListedRecords:
    """Items of one long list in the outermost mapping of a document, built one at a time; can be iterated once.

    key: key of the list
    rest: the other entries, and [] for the list (its value, if that is no list); complete after the iteration

    The iteration raises `NotPlainError` for YAML that is not plain, `PoolError` for a text that is not YAML.
    """

    def __init__(self, source: Readable, key: str) -> None:
        self.rest: dict[Any, Any] = {}
        self._source, self._key = source, key

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._records(yaml.CSafeLoader(self._source))
        except yaml.YAMLError as error:
            raise unreadable(error) from None

    def _records(self, loader: yaml.CSafeLoader) -> Iterator[Any]:
        try:
            yield from self._entries(_first(loader), _events(loader))
        except RuntimeError as error:  # Python turns a StopIteration inside a generator into one
            if not isinstance(error.__cause__, StopIteration):
                raise
            raise PoolError(f"a record of more than {MAX_VALUE_EVENTS} values, or {MAX_EVENTS} in all") from None
        _last(loader)

    def _entries(self, start: Any, events: Iterator[Any]) -> Iterator[Any]:
        following = events.__next__
        if type(start) is not yaml.MappingStartEvent or start.anchor is not None or start.tag is not None:
            raise NotPlainError
        entries = 0
        while type(event := following()) is not yaml.MappingEndEvent:
            entries += 1
            key = _key(event)
            event = following()
            if key == self._key and type(event) is yaml.SequenceStartEvent:
                if event.anchor is not None or event.tag is not None:
                    raise NotPlainError
                self.rest[key] = []
                while type(event := following()) is not yaml.SequenceEndEvent:
                    yield _value(islice(events, MAX_VALUE_EVENTS).__next__, event, 3)
            else:
                self.rest[key] = _value(islice(events, MAX_VALUE_EVENTS).__next__, event, 2)
        if len(self.rest) != entries:
            raise NotPlainError


def unreadable(error: Exception) -> PoolError:
    """Return the error with the parser's reason in one line."""
    return PoolError(f"not readable YAML: {' '.join(str(error).split())[:200]}")


def _first(loader: yaml.CSafeLoader) -> Any:
    """Return the event that begins the content of the first document."""
    loader.get_event()
    if type(loader.get_event()) is not yaml.DocumentStartEvent:
        raise NotPlainError
    return loader.get_event()


def _last(loader: yaml.CSafeLoader) -> None:
    loader.get_event()
    if type(loader.get_event()) is not yaml.StreamEndEvent:
        raise NotPlainError


def _value(following: Callable[[], Any], event: Any, depth: int) -> Any:
    """Return the value of the node that begins with `event`; consume its events.

    following: return the next event; depth: depth of the node, from 1
    """
    kind = type(event)
    if kind is yaml.AliasEvent or event.anchor is not None or event.tag is not None:
        raise NotPlainError
    if kind is yaml.ScalarEvent:
        text = event.value
        if not event.implicit[0]:  # a quoted or block scalar is a text
            return text
        return _resolved(text) if len(text) <= _MAX_CACHED_CHARS else _resolved_once(text)
    if depth > MAX_DEPTH:
        raise NotPlainError
    if kind is yaml.SequenceStartEvent:
        items = []
        while type(event := following()) is not yaml.SequenceEndEvent:
            items.append(_value(following, event, depth + 1))
        return items
    mapping = {}
    entries = 0
    while type(event := following()) is not yaml.MappingEndEvent:
        entries += 1
        key = _key(event)
        mapping[key] = _value(following, following(), depth + 1)
    if len(mapping) != entries:
        raise NotPlainError
    return mapping


def _key(event: Any) -> Any:
    if type(event) is not yaml.ScalarEvent or event.anchor is not None or event.tag is not None:
        raise NotPlainError
    return _resolved(event.value) if event.implicit[0] else event.value


class _Rules(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)


_RULES: Any = _Rules()
_TEXT = "tag:yaml.org,2002:str"
_CONVERTED = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "timestamp")}


def _resolved_once(text: str) -> Any:
    """Return the value of an unquoted scalar, which is immutable."""
    tag = _RULES.resolve(yaml.ScalarNode, text, (True, False))
    if tag == _TEXT:
        return text
    if tag not in _CONVERTED:
        raise NotPlainError
    try:
        return _RULES.yaml_constructors[tag](_RULES, yaml.ScalarNode(tag, text))
    except UNREADABLE:
        raise NotPlainError from None


_resolved = lru_cache(_MAX_CACHED_SCALARS)(_resolved_once)


# --- YAML text to plain objects: by libyaml, safe, bounded in depth, without keys that occur twice --------------------
MAX_NODES = 1_000_000  # nodes of a document that is read through nodes: 700 bytes and 12 microseconds each
MAX_UNCHECKED_CHARS = 1 << 20  # longer texts are first read as events, to count their nodes
MAX_BRACKETS = 5_000  # texts with more are first read as events too; official files have about ten a record


class _Loader(yaml.CSafeLoader):
    """libyaml's safe loader; a repeated key is an error, because the second value would silently replace the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            line = node.start_mark.line + 1
            raise yaml.constructor.ConstructorError(None, None, f"a key occurs twice below line {line}", None)
        return mapping


def load_yaml(text: str) -> Any:
    """Parse YAML text; `PoolError` with the parser's one-line reason."""
    try:
        with gc_paused():  # collections would take half of the time
            return plain_document(text)
    except (NotPlainError, RecursionError, *UNREADABLE):
        return load_whole(text)


def load_whole(text: str) -> Any:
    """Load any YAML through the parser's nodes; `PoolError` names the fault."""
    try:
        if len(text) > MAX_UNCHECKED_CHARS or _may_nest_deeply(text):
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
    for index, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if index > MAX_NODES:
            raise too_many_events(MAX_NODES)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise PoolError(f"nested more than {MAX_DEPTH} deep")
