"""Plug-ins: protocols from a file of the user's and from installed packages.

A package names its protocols in the entry-point group `calibrant.protocols`. The user decides to trust their code; a
fault in it is one line, or a crash of that protocol alone.
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


class Plugins(NamedTuple):
    """Protocols of installed packages by name, and faults by the name of the entry point."""

    protocols: Mapping[str, type[Protocol]]
    broken: Mapping[str, str]


def load_plugins(reserved: Collection[str]) -> Plugins:
    """Load the protocols of installed packages; reserved names and those of earlier packages are refused."""
    protocols: dict[str, type[Protocol]] = {}
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            protocol = _load(point)
            require_usable(protocol, point.value, {*reserved, *protocols})
        except CalibrantError as error:
            broken[point.name] = str(error)
        else:
            protocols[protocol.name] = protocol
    return Plugins(protocols, broken)


def _load(point: EntryPoint) -> type[Protocol]:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
    try:
        protocol: type[Protocol] = point.load()
    except (Exception, SystemExit) as error:
        raise CalibrantError(f"{point.value} of {package} cannot be imported: {_error_text(error)}") from None
    if _is_protocol(protocol):
        protocol.code = package
    return protocol


def is_file(name: str) -> bool:
    """Return whether a protocol's name is FILE.py or FILE.py:CLASS."""
    return name.partition(".py")[1] != "" and name.rpartition(".py")[2][:1] in ("", ":")


def load_file(name: str, reserved: Collection[str]) -> type[Protocol]:
    """Return the class that FILE.py:CLASS names; without CLASS the only protocol that the file defines."""
    file, _, class_name = name.rpartition(".py")
    path = Path(f"{file}.py")
    source = _source(path)
    module = _module(path.resolve(), source)
    class_name = class_name.removeprefix(":")
    defined = [cls for cls in vars(module).values() if _is_protocol(cls) and cls.__module__ == module.__name__]
    if not class_name:
        if len(defined) != 1:
            class_names = ", ".join(cls.__name__ for cls in defined) or "no class that subclasses calibrant.Protocol"
            raise CalibrantError(f"{path}: which protocol? give {path}:CLASS; there is {class_names}")
        class_name = defined[0].__name__
    protocol: type[Protocol] | None = vars(module).get(class_name)
    if protocol is None:
        class_names = ", ".join(cls.__name__ for cls in defined) or "none"
        raise CalibrantError(f"{path}: no {short_repr(class_name)} there; its protocols: {class_names}")
    require_usable(protocol, f"{path}:{class_name}", reserved)
    copyreg.pickle(protocol, _FilePickle(path.resolve(), source, class_name).reduce)
    protocol.code = _digest(source)
    return protocol


def with_code(protocol: type[Protocol]) -> type[Protocol]:
    """Mark a class of the user's with a digest of its file, so that edited code never resumes finished records."""
    file = getattr(sys.modules.get(protocol.__module__), "__file__", None)
    if not protocol.code and file and protocol.__module__.partition(".")[0] != "calibrant":
        protocol.code = _digest(Path(file).read_bytes())
    return protocol


def require_usable(protocol: object, where: str, reserved: Collection[str]) -> None:
    """Raise `CalibrantError`, in one line, if this is no protocol that can run."""
    if not (isinstance(protocol, type) and issubclass(protocol, Protocol)):
        raise CalibrantError(f"{where} is no subclass of calibrant.Protocol")
    name: object = protocol.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "all":
        raise CalibrantError(
            f"{where} has the name {short_repr(name)}; a row needs a short one, such as name = 'my_search'"
        )
    if name in reserved:
        raise CalibrantError(f"{where} has the name '{name}', which another protocol has")
    reserved_fields = [field for field in protocol.__struct_fields__ if field in RESERVED]
    if reserved_fields:
        raise CalibrantError(f"{where} has an option '{reserved_fields[0]}'; records use that name themselves")
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
    """Import the file as a module of a unique name; append its folder to the import path."""
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
        raise CalibrantError(f"{path.name}: {_error_text(error)}") from None
    return module


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:8]


def _error_text(error: BaseException) -> str:
    name = getattr(error, "name", None) or ""
    if isinstance(error, ModuleNotFoundError) and name.partition(".")[0] in _FORMER_NAMES:
        return f"import calibrant.{name}, not {name}"
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class _FilePickle(NamedTuple):
    """Pickle of a file's protocol: it carries the code that was read, in case the file is edited meanwhile."""

    path: Path
    source: bytes
    name: str

    def __call__(self, options: Mapping[str, Any]) -> Protocol:
        protocol: Protocol = vars(_module(self.path, self.source))[self.name](**options)
        return protocol

    def reduce(self, protocol: Protocol) -> tuple[Any, ...]:
        return self, ({field: getattr(protocol, field) for field in protocol.__struct_fields__},)
