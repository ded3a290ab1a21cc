"""Rows that are not ours: a class in a file of the user's, and what installed packages bring.

A package names its protocols in the entry-point group `calibrant.protocols`. Their code is the user's to trust;
whatever is wrong with it is one line, or a crash of its own row.
"""

from __future__ import annotations

import copyreg
import hashlib
import re
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from calibrant.bench.protocols.base import Protocol
from calibrant.dsl.errors import CalibrantError, short_repr

GROUP = "calibrant.protocols"
RESERVED = ("name", "benchmark", "config", "code", "wall_budget")  # options cannot have these names: records use them
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,59}")
_FORMER_NAMES = ("dsl", "solvers", "audits", "baselines", "bench")  # importable before calibrant was the one name


class Installed(NamedTuple):
    """What installed packages bring: protocols by name, and why the others are none, by their entry point's name."""

    protocols: Mapping[str, type[Protocol]]
    broken: Mapping[str, str]


def installed(ours: Collection[str]) -> Installed:
    """The protocols of installed packages, by name; a name of ours or of an earlier package is taken."""
    protocols: dict[str, type[Protocol]] = {}
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            protocol = _loaded(point)
            usable(protocol, point.value, {*ours, *protocols})
        except CalibrantError as error:
            broken[point.name] = str(error)
        else:
            protocols[protocol.name] = protocol
    return Installed(protocols, broken)


def _loaded(point: EntryPoint) -> type[Protocol]:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
    try:
        protocol: type[Protocol] = point.load()
    except (Exception, SystemExit) as error:
        raise CalibrantError(f"{point.value} of {package} cannot be imported: {_says(error)}") from None
    if _is_protocol(protocol):
        protocol.code = package
    return protocol


def is_file(name: str) -> bool:
    """Return whether a protocol's name is FILE.py or FILE.py:CLASS."""
    return name.partition(".py")[1] != "" and name.rpartition(".py")[2][:1] in ("", ":")


def from_file(name: str, ours: Collection[str]) -> type[Protocol]:
    """The class that FILE.py:CLASS names; without CLASS the only protocol that the file defines."""
    file, _, wanted = name.rpartition(".py")
    path = Path(f"{file}.py")
    source = _source(path)
    module = _module(path.resolve(), source)
    wanted = wanted.removeprefix(":")
    defined = [cls for cls in vars(module).values() if _is_protocol(cls) and cls.__module__ == module.__name__]
    if not wanted:
        if len(defined) != 1:
            found = ", ".join(cls.__name__ for cls in defined) or "no class that subclasses calibrant.Protocol"
            raise CalibrantError(f"{path}: which protocol? give {path}:CLASS; there is {found}")
        wanted = defined[0].__name__
    protocol: type[Protocol] | None = vars(module).get(wanted)
    if protocol is None:
        found = ", ".join(cls.__name__ for cls in defined) or "none"
        raise CalibrantError(f"{path}: no {short_repr(wanted)} there; its protocols: {found}")
    usable(protocol, f"{path}:{wanted}", ours)
    copyreg.pickle(protocol, _Remade(path.resolve(), source, wanted).reduced)
    protocol.code = _digest(source)
    return protocol


def with_code(protocol: type[Protocol]) -> type[Protocol]:
    """A class that is not ours, marked with a digest of its file: edited code is another row, not a finished one."""
    file = getattr(sys.modules.get(protocol.__module__), "__file__", None)
    if not protocol.code and file and protocol.__module__.partition(".")[0] != "calibrant":
        protocol.code = _digest(Path(file).read_bytes())
    return protocol


def usable(protocol: object, where: str, taken: Collection[str]) -> None:
    """`CalibrantError` that says in one line why this is no protocol that can have a row."""
    if not (isinstance(protocol, type) and issubclass(protocol, Protocol)):
        raise CalibrantError(f"{where} is no subclass of calibrant.Protocol")
    name: object = protocol.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "all":
        raise CalibrantError(
            f"{where} has the name {short_repr(name)}; a row needs a short one, such as name = 'my_search'"
        )
    if name in taken:
        raise CalibrantError(f"{where} has the name '{name}', which another protocol has")
    reserved = [field for field in protocol.__struct_fields__ if field in RESERVED]
    if reserved:
        raise CalibrantError(f"{where} has an option '{reserved[0]}'; records use that name themselves")
    if protocol.answer is Protocol.answer:
        raise CalibrantError(f"{where} has no method answer(self, task)")


def _is_protocol(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Protocol) and value is not Protocol


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CalibrantError(f"{path.name}: cannot be read: {error.strerror or error}") from None


@cache
def _module(path: Path, source: bytes) -> ModuleType:
    """The file as a module of a name that no other has; its folder can be imported from, after all others."""
    name = f"own_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}_{_digest(source)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise CalibrantError(f"{path.name}: {_says(error)}") from None
    return module


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:8]


def _says(error: BaseException) -> str:
    name = getattr(error, "name", None) or ""
    if isinstance(error, ModuleNotFoundError) and name.partition(".")[0] in _FORMER_NAMES:
        return f"import calibrant.{name}, not {name}"
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class _Remade(NamedTuple):
    """How a protocol of a file reaches a worker: with the code that was read, in case the file is edited meanwhile."""

    path: Path
    source: bytes
    name: str

    def __call__(self, options: Mapping[str, Any]) -> Protocol:
        protocol: Protocol = vars(_module(self.path, self.source))[self.name](**options)
        return protocol

    def reduced(self, protocol: Protocol) -> tuple[Any, ...]:
        return self, ({field: getattr(protocol, field) for field in protocol.__struct_fields__},)
