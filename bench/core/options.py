"""Options of commands that only some benchmarks have.

`bench/<benchmark>/options.py` declares them once: `OPTIONS` maps a command to a Struct, whose fields are the options.
A command takes the union over all benchmarks (`bench.commands.options`), then refuses those that the pool's benchmark
lacks. `KEYWORDS` does so for public functions whose keywords differ from a command's options (`calibrant.options`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from calibrant.bench.core.names import TITLES
from calibrant.bench.toml_file import explain_mismatch
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import known_names

VERIFY_SECONDS = 300.0  # time limit of the check of one certificate; default of `calibrant verify --budget`

ThoughtsOption: TypeAlias = Annotated[
    Literal["strip", "opened", "keep"], msgspec.Meta(description="Which part of a reply is thoughts, and not read.")
]
"""Keyword of `text_episode` that every interactive benchmark has (dsl.answer_text)."""

Against: TypeAlias = Annotated[
    tuple[str, ...],
    msgspec.Meta(
        description="Compare the others with this one; may be repeated.",
        extra={"metavar": "SYSTEM", "panel": "View"},
    ),
]
"""Option of `calibrant report` that several benchmarks have."""

ItemForm: TypeAlias = Annotated[
    Literal["published", "episode", "passive", "network", "experiments", "series"],
    msgspec.Meta(
        description="ReplaySCM: items as published; with a stated class, episodes or passive ones, with noise and more;"
        " or of published networks, network (-o networks=FOLDER). Logic models: experiments, or series, trajectories"
        " of published networks.",
        extra={"panel": "Items"},
    ),
]
"""Option of `calibrant generate`; a benchmark refuses the forms of others by `require_form`."""

NetworkNames: TypeAlias = Annotated[
    Literal["neutral", "real"] | None,
    msgspec.Meta(
        description="Of items of networks: g1, g2, ..., or the published names. [default: neutral]",
        extra={"panel": "Items"},
    ),
]
"""Option of `calibrant generate` for items of published networks."""


class OptionError(CalibrantError):
    """An option that contradicts the others. option: its flag, which the command prints before the reason."""

    def __init__(self, reason: str, option: str) -> None:
        super().__init__(reason)
        self.option = option


def require_form(form: str, forms: Sequence[str]) -> None:
    """Raise `OptionError` for a form of items that is not one of the benchmark's `forms`."""
    if form not in forms:
        raise OptionError(f"{form!r} is none of {', '.join(forms)}, which this benchmark has", "--form")


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a command.

    hint: its type, with ranges; default: value if it is not given; benchmarks: names of those that have it
    extra: keys for the command line: `metavar`; `flags`, unless they follow from the name; `role`, "reads" or "writes"
        for a path; `panel`, its heading in the help
    """

    name: str
    hint: Any
    default: Any
    description: str
    extra: Mapping[str, Any]
    benchmarks: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Its flag on the command line, such as --max-parents."""
        return str(self.extra.get("flags", [f"--{self.name.replace('_', '-')}"])[0])

    @property
    def panel(self) -> str:
        """Its heading in the help: as declared, else Input or Output by its role, else Method."""
        by_role = {"reads": "Input", "writes": "Output"}.get(self.extra.get("role", ""), "Method")
        return str(self.extra.get("panel", by_role))

    @property
    def titles(self) -> str:
        """Titles of the benchmarks that have it, joined by "and"."""
        return " and ".join(TITLES[name] for name in self.benchmarks)


def option_struct(command: str, benchmark: str) -> type[msgspec.Struct]:
    """Return the Struct of a benchmark's options for a command; `NoOptions` if it has none."""
    declared: Mapping[str, type[msgspec.Struct]] = import_module(f"calibrant.bench.{benchmark}.options").OPTIONS
    return declared.get(command, NoOptions)


def keyword_struct(function: str, benchmark: str) -> type[msgspec.Struct]:
    """Return the Struct that checks the keywords of a public function, by default that of the command of the same name.

    A command's Struct may have further fields, for files to read and write.
    """
    declared: Mapping[str, type[msgspec.Struct]] = import_module(f"calibrant.bench.{benchmark}.options").KEYWORDS
    return declared.get(function) or option_struct(function, benchmark)


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a benchmark that has none of its own for a command."""


@cache
def declared_options(command: str) -> Mapping[str, DeclaredOption]:
    """Return the union of all benchmarks' options for a command, by name."""
    return _union({benchmark: option_struct(command, benchmark) for benchmark in TITLES})


def declared_keywords(function: str) -> Mapping[str, DeclaredOption]:
    """Return the union of all benchmarks' keywords for a public function, by name."""
    return _union({benchmark: keyword_struct(function, benchmark) for benchmark in TITLES})


def _union(structs: Mapping[str, type[msgspec.Struct]]) -> dict[str, DeclaredOption]:
    union: dict[str, DeclaredOption] = {}
    for benchmark, struct in structs.items():
        for option in _fields(struct, benchmark):
            first = union.get(option.name)  # the first benchmark's declaration gives type, default and description
            benchmarks = (*first.benchmarks, benchmark) if first else (benchmark,)
            union[option.name] = DeclaredOption(**{**vars(first or option), "benchmarks": benchmarks})
    return union


def _fields(struct: type[msgspec.Struct], benchmark: str) -> list[DeclaredOption]:
    hints = get_type_hints(struct, include_extras=True)
    options = []
    for field in msgspec.structs.fields(struct):
        hint, meta = _split(hints[field.name])
        default = field.default if field.default is not msgspec.NODEFAULT else None
        texts = (meta.description or "", meta.extra or {})
        options.append(DeclaredOption(field.name, hint, default, *texts, (benchmark,)))
    return options


def describe_fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the description of each field, empty where it has none."""
    hints = get_type_hints(struct, include_extras=True)
    return {name: _split(hints[name])[1].description or "" for name in struct.__struct_fields__}


def _split(hint: Any) -> tuple[Any, msgspec.Meta]:
    """Return (type of a field with its range, outermost annotation, which has the description)."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)  # Python flattens nested annotations: the range, then the description
        return (Annotated[(inner, *metadata[:-1])] if metadata[1:] else inner), metadata[-1]
    return hint, msgspec.Meta()


@dataclass(frozen=True)
class GivenOptions:
    """Options of a command that only some benchmarks have, as the user gave them. values: field name -> value."""

    command: str
    values: Mapping[str, Any]

    def convert(self, benchmark: str, source: str = "") -> Any:
        """Return the benchmark's Struct; `CalibrantError` for an option that it lacks, or a value out of range.

        source: the file or item of the benchmark, for the refusal
        """
        self.refuse_foreign([benchmark], source)
        kind = option_struct(self.command, benchmark)
        try:
            return msgspec.convert(dict(self.values), kind)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"{self.command}: {explain_mismatch(kind, error)}") from None

    @property
    def by_flag(self) -> dict[str, Any]:
        """The values by flag: `--means` in place of `means`."""
        return {declared_options(self.command)[name].flag: value for name, value in self.values.items()}

    def refuse_foreign(self, benchmarks: Collection[str], source: str = "") -> None:
        """Raise `CalibrantError` for an unknown option, or for one that none of these benchmarks has."""
        declared = declared_options(self.command)
        for name in self.values:
            option = declared.get(name)
            if option is None:
                allowed = [
                    key for key, each_option in declared.items() if set(benchmarks) & set(each_option.benchmarks)
                ]
                names = known_names(name, allowed) if allowed else "it has none here"
                raise CalibrantError(f"unknown option {short_repr(name)} of `{self.command}`; {names}")
            if not set(benchmarks) & set(option.benchmarks):
                titles = " or ".join(TITLES[benchmark] for benchmark in TITLES if benchmark in benchmarks)
                where = f" ({in_one_line(source)})" if source else ""
                raise CalibrantError(f"{option.flag} applies to {option.titles}, not to {titles}{where}")
