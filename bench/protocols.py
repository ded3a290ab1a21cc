"""Protocols: named ways to answer an item, with options.

A protocol receives a task or an open episode, never sealed content. To add one, subclass `Protocol` with a name,
options as fields and a method `answer`. List it in `bench/<benchmark>/protocols.py`, or keep it in a file or package of
your own. Runner, records, resuming and tables need nothing else.

Built-in protocols read canonical items: one that breaks ties by the first name, or seeds draws by the task's text, then
gives the same answer up to renaming.

A package names its protocols in the entry-point group `calibrant.protocols`. Installing a package means trusting its
code; a fault in it is reported in one line, or is a crash of that protocol alone.
"""

from __future__ import annotations

import copyreg
import dataclasses
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import Capability
from calibrant.bench.core.items import ItemPool
from calibrant.bench.toml_file import explain_mismatch
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, MissingExtraError, UnknownNameError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.records import file_digest
from calibrant.dsl.text import known_names

if TYPE_CHECKING:
    from calibrant.solvers.outcome import Impossible, OutOfBudget


Outcome: TypeAlias = Literal["found", "impossible", "out_of_budget", "crashed"]


class Ties(msgspec.Struct, frozen=True):
    """Equally good answers, of which a protocol chose one by a tie rule.

    count: number of equally good answers, None if they are not counted
    answers: all of them, with the chosen one; independent uniform draws if the list is shorter than `count`
    note: answers that are not counted, and the reason; empty if all are counted
    """

    count: int | None
    answers: list[dict[str, Any]] = []
    note: str = ""


class ProtocolResult(msgspec.Struct, frozen=True):
    """Result of a protocol on one item.

    answer: answer object of the task's schema; None if there is none, for which the benchmark substitutes its own
    size: total formula size of the answer, None if it has no formulas
    provenance: origin of the answer, ready for JSON and equal in all runs
    ties: equally good answers, whose mean score is the protocol's rate; None for protocols without ties
    """

    outcome: Outcome
    answer: dict[str, Any] | None = None
    size: int | None = None
    provenance: dict[str, Any] = {}
    ties: Ties | None = None

    def __repr__(self) -> str:
        return f"<ProtocolResult: {self.outcome}{'' if self.size is None else f', size {self.size}'}>"


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to answer items. Its fields are its options, which are part of a record's key together with its name.

    benchmark: benchmark whose items a plug-in answers, empty for any; not read for built-in protocols
    code: code of a plug-in, a digest of its file or a package with its version; empty for built-in protocols
    reads_canonical: whether it receives canonical items, and its answers are renamed
    """

    name: ClassVar[str] = ""
    benchmark: ClassVar[str] = ""
    code: ClassVar[str] = ""
    reads_canonical: ClassVar[bool] = False

    @property
    def config(self) -> dict[str, Any]:
        """Return the options, ready for JSON, and for a plug-in its `code`."""
        return dict(msgspec.to_builtins(self)) | ({"code": self.code} if self.code else {})

    if TYPE_CHECKING:  # options differ by class, so a class that is looked up by name accepts any for type checkers

        def __init__(self, *options: Any, **named: Any) -> None: ...

    def require(self) -> None:
        """Raise `MissingExtraError` if an optional dependency is not installed; called before a run starts."""

    def warm_up(self) -> None:
        """Load and compile code that answers need, so that no item's time contains it."""

    def refusal(self, handout: Any, /) -> str:
        """Return the reason why this protocol cannot answer such items, empty if it can; not called for plug-ins.

        handout: task or episode of an item
        """
        return ""

    def class_in_words(self, task: Any, /) -> str:
        """Return an exact learner's class in words if it differs from the class of attributions, else empty."""
        return ""

    def answer(self, given: Any, /) -> ProtocolResult:
        """Return the answer to one item, the same every time.

        given: the item's task or open episode
        """
        raise NotImplementedError


PROTOCOLS: Capability[Sequence[type[Protocol]]] = Capability("`run`", "rows:ROWS")
"""The protocols of a benchmark, in the order in which `all` runs them."""


APPLICABLE: Capability[Callable[[Sequence[ItemPool[Any]]], Sequence[type[Protocol]]]] = Capability("`run all` of some")
"""Returns the protocols that `all` stands for on some pools, for benchmarks where it depends on them."""


def nothing_found(outcome: Impossible | OutOfBudget) -> ProtocolResult:
    """Return the result with the reason why there is no answer."""
    from calibrant.solvers.outcome import BestSoFar, Impossible

    kind: Outcome = "impossible" if isinstance(outcome, Impossible) else "out_of_budget"
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    if isinstance(outcome, BestSoFar):
        del fields["incumbent"]  # protocols that promise the best answer give none that is not proved to be best
    return ProtocolResult(kind, provenance=fields)


# --- Canonical presentations: items as built-in protocols receive them, independent of names and orders ---------------


@dataclass(frozen=True)
class Presentation:
    """A task or an item of an episode in canonical form.

    content: canonical task or item; restore: maps JSON over its names to JSON over the pool's names
    """

    content: Any
    restore: Callable[[Any], Any]

    def restore_step(self, step: Step[Any]) -> Step[Any]:
        """Return a step over the pool's names."""
        action: Mapping[str, Any] = self.restore(step.action)
        return Step(action, self.restore(step.reading), self.restore(step.refused), step.cost)


PRESENT: Capability[Callable[[Any], Presentation]] = Capability("canonical presentation", "rows:present")
"""Returns the canonical form of a task, or of the item of an episode."""


def replace_words(content: Any, word: re.Pattern[str], names: Mapping[str, str]) -> Any:
    """Return JSON in which, in texts and keys, every match of `word` that is a key of `names` is replaced."""
    if isinstance(content, str):
        return word.sub(lambda match: names.get(match[0], match[0]), content)
    if isinstance(content, Mapping):
        return {replace_words(key, word, names): replace_words(value, word, names) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [replace_words(part, word, names) for part in content]
    return content


# --- Pools that a run reads once, although both the meaning of `all` and every protocol need their items --------------
MAX_POOLS = 8  # pools in memory, more than runs usually have; further ones are read again


def read_pool_once(benchmark: Benchmark[Any], path: Path) -> tuple[str, ItemPool[Item[Any, Any]]]:
    """Return the digest and the pool of a file; a pool with this digest is not read again."""
    digest = file_digest(path)
    return digest, _pool(benchmark, path, digest)


@lru_cache(maxsize=MAX_POOLS)
def _pool(benchmark: Benchmark[Any], path: Path, digest: str) -> ItemPool[Item[Any, Any]]:
    return benchmark.items.read_pool(path)  # takes seconds for YAML


# --- Plug-ins: protocols from a file of the user's and from installed packages ----------------------------------------
GROUP = "calibrant.protocols"
RESERVED = ("name", "benchmark", "config", "code", "wall_budget")  # names in records, which no option may have
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,59}")
_FORMER_NAMES = ("dsl", "solvers", "audits", "baselines", "bench")  # importable before calibrant was the one name


class Plugins(NamedTuple):
    """Protocols of installed packages; protocols: name -> class; broken: name of the entry point -> fault."""

    protocols: Mapping[str, type[Protocol]]
    broken: Mapping[str, str]


def load_plugins(reserved: Collection[str]) -> Plugins:
    """Load the protocols of installed packages, and refuse reserved names and names of earlier packages."""
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
    """Return the class that FILE.py:CLASS names, or for FILE.py the only protocol in the file."""
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
    """Return a user's class with a digest of its file as `code`, so that edited code never resumes finished records."""
    file = getattr(sys.modules.get(protocol.__module__), "__file__", None)
    if not protocol.code and file and protocol.__module__.partition(".")[0] != "calibrant":
        protocol.code = _digest(Path(file).read_bytes())
    return protocol


def require_usable(protocol: object, where: str, reserved: Collection[str]) -> None:
    """Raise `CalibrantError` if an object is no protocol that can run.

    where: its origin for the error; reserved: names that it may not have
    """
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
    """Import a file as a module of a unique name, with its folder appended to the import path."""
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
    """Pickle of a file's protocol, with the code that was read in case the file is edited meanwhile."""

    path: Path
    source: bytes
    name: str

    def __call__(self, options: Mapping[str, Any]) -> Protocol:
        protocol: Protocol = vars(_module(self.path, self.source))[self.name](**options)
        return protocol

    def reduce(self, protocol: Protocol) -> tuple[Any, ...]:
        return self, ({field: getattr(protocol, field) for field in protocol.__struct_fields__},)


Protocols: TypeAlias = Mapping[str, type[Protocol]]
"""Name of a protocol -> its class, in the order in which `all` runs them."""


def protocols_of(benchmark: Benchmark[Any]) -> Protocols:
    """Return the protocols of a benchmark with those of installed packages."""
    return {protocol.name: protocol for protocol in benchmark.require(PROTOCOLS)}


def applicable_protocols(benchmark: Benchmark[Any], pools: Sequence[Path]) -> Protocols:
    """Return the protocols that `all` stands for on these pools."""
    select = benchmark.capability(APPLICABLE)
    if select is None:
        return protocols_of(benchmark)
    return {protocol.name: protocol for protocol in select([read_pool_once(benchmark, path)[1] for path in pools])}


def with_installed(builtin: Protocols, benchmark: str) -> Protocols:
    """Return a benchmark's protocols, then those of installed packages that answer its items."""
    loaded = load_plugins(builtin).protocols
    return {
        **builtin,
        **{name: cls for name, cls in loaded.items() if cls.benchmark in ("", benchmark)},
    }


def chosen_protocols(protocols: Protocols, text: str, options: Mapping[str, Any]) -> list[Protocol]:
    """Return the protocols that a command's argument names: one, several separated by commas, or `all`.

    Options are allowed for a single protocol. `all` leaves out protocols that cannot start for a missing library.
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
    """Return protocol -> missing library or fault of the plug-in, for the protocols that `all` leaves out."""
    missing = {name: why for name, protocol in protocols.items() if (why := describe_protocol(protocol)["missing"])}
    return missing | dict(_broken(protocols))


def _broken(protocols: Protocols) -> Mapping[str, str]:
    """Return plug-in -> reason, for plug-ins that cannot be loaded."""
    return load_plugins([name for name, protocol in protocols.items() if not protocol.code]).broken


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
    except Exception as error:  # e.g. a missing library, an option without default or a fault of a plug-in
        from calibrant.bench.runs.executors import error_line  # takes .03 s, which other commands need not

        description["missing"] = str(error) if isinstance(error, MissingExtraError) else error_line(error)
    return description


# `name: ` or `first, second: `, at the beginning of a line or after `; `
_ENTRY = re.compile(r"(?:^|(?<=; ))((?:\w+, )*\w+): ")


def meanings(protocol: type[Protocol]) -> dict[str, str]:
    """Return option -> description from the docstrings of a protocol and its bases.

    Descriptions are lines `name: text` or `first, second: text; third: text`, which indented lines continue.
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
    if not starts or starts[0].start() != 0:  # a sentence with a colon
        return {}
    ends = [*(match.start() - len("; ") for match in starts[1:]), len(line)]
    texts = [line[match.end() : end].strip() for match, end in zip(starts, ends, strict=True)]
    return {name: text for match, text in zip(starts, texts, strict=True) for name in match[1].split(", ")}


def protocol_class(protocols: Protocols, name: str) -> type[Protocol]:
    """Return the protocol of a name or of FILE.py:CLASS; `CalibrantError` with the known names for an unknown one."""
    if name in protocols:
        return protocols[name]
    if is_file(name):
        return load_file(name, protocols)
    broken = _broken(protocols)
    if name in broken:
        raise CalibrantError(f"protocol '{name}': {broken[name]}")
    names_text = known_names(name, protocols)
    message = f"unknown protocol {short_repr(name)}; {names_text}; FILE.py:CLASS is one of your own"
    raise UnknownNameError(message, name, tuple(protocols))


def make_protocol(protocols: Protocols, name: str, options: Mapping[str, Any]) -> Protocol:
    """Create the protocol of a name; options may be texts, lists as JSON. `CalibrantError` lists what is known."""
    protocol = protocol_class(protocols, name)
    try:
        return msgspec.convert(dict(options), protocol, strict=False)
    except msgspec.ValidationError as error:
        with suppress(msgspec.DecodeError):  # a ValidationError is one
            lists = {k: msgspec.json.decode(v) for k, v in options.items() if isinstance(v, str) and v.startswith("[")}
            return msgspec.convert({**options, **lists}, protocol, strict=False)
        problem = explain_mismatch(protocol, error).replace("a text in quotation marks", "a text")
        if "expected a list" in problem:
            problem += """ (a list is JSON, such as '["a", "b"]')"""
        option_names = ", ".join(protocol.__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {problem}; its options: {option_names}") from None
