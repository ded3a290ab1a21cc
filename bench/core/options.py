"""The options of commands that some benchmarks have and others lack.

`bench/<benchmark>/options.py` declares them once: `OPTIONS` maps a command to a Struct, whose fields are the options.
A command takes the union over all benchmarks (`bench.commands.options`); what the benchmark at hand lacks is refused.
`KEYWORDS` does so for the public functions that have no command, or other keywords than it (`calibrant.options`).
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
from calibrant.dsl.errors import CalibrantError, in_one_line

VERIFY_SECONDS = 300.0  # of one certificate's check, unless `calibrant verify --budget` has another

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
    """An option that does not fit the others; the command names it before the reason."""

    def __init__(self, reason: str, option: str) -> None:
        super().__init__(reason)
        self.option = option


def require_form(form: str, forms: Sequence[str]) -> None:
    """Refuse a form of items that a benchmark lacks. forms: those that it has."""
    if form not in forms:
        raise OptionError(f"{form!r} is none of {', '.join(forms)}, which this benchmark has", "--form")


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a command.

    hint: its type, with ranges; default: where it is not given; benchmarks: those that have it
    extra: for the command line: `metavar`, `flags` (where the field's name is not the option's), `role`, which is
        `reads` or `writes` for a path, and `panel`, its heading in the help
    """

    name: str
    hint: Any
    default: Any
    description: str
    extra: Mapping[str, Any]
    benchmarks: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Return how it is given on the command line."""
        return str(self.extra.get("flags", [f"--{self.name.replace('_', '-')}"])[0])

    @property
    def panel(self) -> str:
        """Return its heading in the help: as declared, else by what it does with a path, else the method's."""
        by_role = {"reads": "Input", "writes": "Output"}.get(self.extra.get("role", ""), "Method")
        return str(self.extra.get("panel", by_role))

    @property
    def titles(self) -> str:
        """The benchmarks that have it, as people read them."""
        return " and ".join(TITLES[name] for name in self.benchmarks)


def option_struct(command: str, benchmark: str) -> type[msgspec.Struct]:
    """Return the Struct of a benchmark's options for a command; one without fields where it has none."""
    declared: Mapping[str, type[msgspec.Struct]] = import_module(f"calibrant.bench.{benchmark}.options").OPTIONS
    return declared.get(command, NoOptions)


def keyword_struct(function: str, benchmark: str) -> type[msgspec.Struct]:
    """Return the Struct that checks the keywords of a public function; the command's where there is no other.

    A command's Struct may have more fields: files to read and write.
    """
    declared: Mapping[str, type[msgspec.Struct]] = import_module(f"calibrant.bench.{benchmark}.options").KEYWORDS
    return declared.get(function) or option_struct(function, benchmark)


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a benchmark that has none for a command."""


@cache
def declared_options(command: str) -> Mapping[str, DeclaredOption]:
    """Return the union of all benchmarks' options for a command, by name."""
    return _union({benchmark: option_struct(command, benchmark) for benchmark in TITLES})


def declared_keywords(function: str) -> Mapping[str, DeclaredOption]:
    """Return the union of all benchmarks' keywords for a public function that has Structs of its own, by name."""
    return _union({benchmark: keyword_struct(function, benchmark) for benchmark in TITLES})


def _union(structs: Mapping[str, type[msgspec.Struct]]) -> dict[str, DeclaredOption]:
    union: dict[str, DeclaredOption] = {}
    for benchmark, struct in structs.items():
        for option in _fields(struct, benchmark):
            earlier = union.get(option.name)
            having = (*earlier.benchmarks, benchmark) if earlier else (benchmark,)
            union[option.name] = DeclaredOption(**{**vars(earlier or option), "benchmarks": having})
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
    """Return the type of a field with its range, and the annotation around all of it, which describes it."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)  # nested annotations come as one: the range, then the description
        return (Annotated[(inner, *metadata[:-1])] if metadata[1:] else inner), metadata[-1]
    return hint, msgspec.Meta()


@dataclass(frozen=True)
class GivenOptions:
    """The options of a command that are not common to all benchmarks, as far as they were given."""

    command: str
    values: Mapping[str, Any]

    def convert(self, benchmark: str, source: str = "") -> Any:
        """Return the benchmark's Struct; `CalibrantError` for an option that it lacks, or a value out of range.

        source: what belongs to the benchmark, as the refusal names it
        """
        self.refuse_foreign([benchmark], source)
        kind = option_struct(self.command, benchmark)
        try:
            return msgspec.convert(dict(self.values), kind)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"{self.command}: {explain_mismatch(kind, error)}") from None

    @property
    def by_flag(self) -> dict[str, Any]:
        """The values as people give them: `--means` in place of `means`."""
        return {declared_options(self.command)[name].flag: value for name, value in self.values.items()}

    def refuse_foreign(self, benchmarks: Collection[str], source: str = "") -> None:
        """Refuse a given option that none of these benchmarks has."""
        for name in self.values:
            option = declared_options(self.command)[name]
            if not set(benchmarks) & set(option.benchmarks):
                titles = " or ".join(TITLES[benchmark] for benchmark in TITLES if benchmark in benchmarks)
                where = f" ({in_one_line(source)})" if source else ""
                raise CalibrantError(f"{option.flag} applies to {option.titles}, not to {titles}{where}")
