"""Reading fields of untrusted mappings: every wrong type becomes a `PoolError` that names the field."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from calibrant.dsl.errors import PoolError, short_repr

_REQUIRED: Any = object()
_INTEGER_BITS = 64  # what JSON readers hold; hexadecimal YAML can say millions of digits that Python never prints


@contextmanager
def error_location(*, file: str = "", instance: str = "", field: str = "") -> Iterator[None]:
    """Add the location to every `PoolError` raised inside."""
    try:
        yield
    except PoolError as error:
        where = f"{field}.{error.field}" if field and error.field else field or error.field
        raise PoolError(
            error.problem, file=error.file or file, instance=error.instance or instance, field=where
        ) from None


class Fields:
    """A mapping of unknown content, asked field by field."""

    def __init__(self, raw: Any, name: str) -> None:
        if not isinstance(raw, Mapping):
            raise PoolError(f"expected a mapping, found {short_repr(raw)}", field=name)
        self._raw = raw
        self._name = name

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def get(self, key: str, default: Any = None) -> Any:
        return self._raw.get(key, default)

    def only(self, allowed: Collection[str]) -> None:
        """Refuse fields that are not known: they might mean something that would be lost."""
        for key in self._raw:
            if key not in allowed:
                raise PoolError(
                    f"unknown field {short_repr(key)}; known: {', '.join(sorted(allowed))}", field=self._name
                )

    def _typed_field(self, key: str, default: Any, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self._raw.get(key, default)
        if value is _REQUIRED:
            raise PoolError("missing", field=key)
        if value is default or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
            return value
        raise PoolError(f"expected {expected}, found {short_repr(value)}", field=key)

    def text(self, key: str, default: str = _REQUIRED) -> str:
        return self._typed_field(key, default, str, "a text")  # type: ignore[no-any-return]

    def flag(self, key: str, default: bool) -> bool:
        return self._typed_field(key, default, bool, "true or false")  # type: ignore[no-any-return]

    def integer(self, key: str, default: int | None) -> int | None:
        value: int | None = self._typed_field(key, default, int, "an integer")
        if value is not None and value.bit_length() >= _INTEGER_BITS:
            raise PoolError(f"an integer of {value.bit_length()} bits; fewer than {_INTEGER_BITS} are read", field=key)
        return value

    def sequence(self, key: str) -> list[Any]:
        return self._typed_field(key, _REQUIRED, list, "a list")  # type: ignore[no-any-return]

    def name_lists(self, key: str) -> list[list[str]]:
        for item in self.sequence(key):
            if not isinstance(item, list) or not all(isinstance(name, str) for name in item):
                raise PoolError(f"expected lists of names, found {short_repr(item)}", field=key)
        return self.sequence(key)

    def mapping(self, key: str, default: Mapping[str, Any] = _REQUIRED) -> Mapping[str, Any]:
        value = self._raw.get(key, default)
        return (
            default
            if value is None and default is not _REQUIRED
            else self._typed_field(key, default, Mapping, "a mapping")
        )

    def child(self, key: str) -> Fields:
        """Return the fields of a nested mapping; empty where it is absent."""
        value = self._raw.get(key)
        return Fields({} if value is None else value, key)

    def names(self, key: str, default: list[str] = _REQUIRED) -> list[str]:
        value = self._typed_field(key, default, list, "a list of names")
        for name in value:
            if not isinstance(name, str):
                raise PoolError(f"expected names, found {short_repr(name)}", field=key)
        return list(value)

    def integers(self, key: str, default: list[int]) -> list[int]:
        value = self._typed_field(key, default, list, "a list of integers")
        if any(type(item) is not int for item in value):
            raise PoolError(f"expected integers, found {short_repr(value)}", field=key)
        if any(item.bit_length() >= _INTEGER_BITS for item in value):
            raise PoolError(f"an integer of {_INTEGER_BITS} bits or more", field=key)
        return list(value)

    def texts(self, key: str, default: dict[str, str] | None) -> dict[str, str] | None:
        value = self._typed_field(key, default, Mapping, "a mapping of texts")
        if value is not None and not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
            raise PoolError("expected a mapping from names to texts", field=key)
        return None if value is None else dict(value)

    def levels(self, key: str) -> dict[str, float]:
        value: Mapping[Any, Any] = self.mapping(key, {})
        for name, level in value.items():
            if not isinstance(name, str) or type(level) not in (int, float) or not 0 <= level <= 1:
                raise PoolError(
                    f"expected levels from 0 to 1, found {short_repr(name)}: {short_repr(level)}", field=key
                )
        return {name: float(level) for name, level in value.items()}

    def bits(self, key: str) -> dict[str, int]:
        value = self._typed_field(key, {}, Mapping, "a mapping from names to bits")
        for name, bit in value.items():
            if not isinstance(name, str) or type(bit) is not int or bit not in (0, 1):
                raise PoolError(f"expected bits 0 or 1, found {short_repr(name)}: {short_repr(bit)}", field=key)
        return dict(value)
