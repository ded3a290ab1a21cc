"""Arguments and options that several commands share, and the options that benchmarks declare.

A command takes the union of these over all benchmarks, each without a default, so that a given one shows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import typer

from calibrant.bench.commands.guard import READS, WRITES, Writes
from calibrant.bench.commands.progress import usable_cores
from calibrant.bench.core.options import DeclaredOption, GivenOptions, declared_options
from calibrant.bench.help_groups import EXECUTION, INPUT, ITEMS, OUTPUT, VIEW

if TYPE_CHECKING:
    from calibrant.bench.runs.jobs import Execution

PoolPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="POOL", help="Pool file: official YAML or native JSONL."), READS
]
PoolPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="POOL...", help="Pool files: official YAML or native JSONL."), READS
]
NewPool: TypeAlias = Annotated[Path, typer.Argument(metavar="OUT", help="Native JSONL file to write."), WRITES]
RunSources: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR...", help="Folders of runs; also files written by `calibrant score --out`."),
    READS,
]
DecidedAt: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--decided-at",
        metavar="POSTERIOR",
        help="With --attribution: posterior from which noisy readings decide: .95, .99 or .999. [default: .99]",
        rich_help_panel=VIEW,
    ),
]
OfBenchmark: TypeAlias = Annotated[
    str, typer.Option("--benchmark", metavar="NAME", help="Of which benchmark.", rich_help_panel=ITEMS)
]
ItemOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--item-option", "-o", metavar="NAME=VALUE", help="Option of the items; may be repeated.", rich_help_panel=ITEMS
    ),
]
Aid: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--aid",
        metavar="members|FILE",
        help="Of CausaLab: add the number of mechanisms that fit, or the configs of a released file that do.",
        rich_help_panel=OUTPUT,
    ),
    READS,
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.", rich_help_panel=OUTPUT)]
NewFolder: TypeAlias = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder to make; it must not be there yet.", rich_help_panel=OUTPUT),
    WRITES,
]
Only: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only this instance; may be repeated.", rich_help_panel=ITEMS)
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Only the first so many instances.", rich_help_panel=ITEMS)
]
Workers: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Processes. [default: one per usable core]", rich_help_panel=EXECUTION)
]
Budget: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0.001, help="Wall seconds per instance; then its process is killed.", rich_help_panel=EXECUTION),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Let the workers of a dask.distributed scheduler do it, tcp://HOST:PORT.",
        rich_help_panel=EXECUTION,
    ),
]
PoolsOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--pool", "--pools", metavar="POOL", help="Pool file of the answers; may be repeated.", rich_help_panel=INPUT
    ),
    READS,
]
IdField: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id-field", metavar="NAME", help="Field of a prediction that names the instance.", rich_help_panel=INPUT
    ),
]
TextField: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--text-field",
        metavar="NAME",
        help="Field that holds the answer; dots lead into objects.",
        rich_help_panel=INPUT,
    ),
]
ModelField: TypeAlias = Annotated[
    str | None, typer.Option("--model-field", metavar="NAME", help="Field that names the model.", rich_help_panel=INPUT)
]


def require_level(level: float | None, *, attribution: bool) -> None:
    """Refuse a posterior that is not one of those offered, and one where nothing is attributed."""
    from calibrant.bench.core.attribution import LEVELS

    if level is None:
        return
    if level not in LEVELS:
        levels = ", ".join(f"{offered:g}" for offered in LEVELS)
        raise typer.BadParameter(f"{level:g} is none of {levels}", param_hint="--decided-at")
    if not attribution:
        raise typer.BadParameter("it says what --attribution counts as decided: give both", param_hint="--decided-at")


def execution(workers: int | None, cluster: str | None, budget: float | None = None) -> Execution:
    """Return the execution that these options request; a process per usable core without any."""
    from calibrant.bench.runs.jobs import Execution

    if cluster is None:
        return Execution(workers or usable_cores(), budget)
    if workers is not None:
        raise typer.BadParameter("a cluster has its own workers: give one of --cluster and --workers")
    return Execution(wall_budget=budget, cluster=cluster)


R = TypeVar("R")
PARAMETER = "given"  # of a command, in which it gets the options of benchmarks


def with_options(name: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options that benchmarks declare for `name`, in the place of its parameter `given`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        declared = declared_options(name)

        def run_with_options(**values: Any) -> R:
            chosen = {key: values.pop(key, None) for key in declared}
            values_by_key = {key: value for key, value in chosen.items() if value is not None and value != []}
            return command(**values, **{PARAMETER: GivenOptions(name, values_by_key)})

        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == PARAMETER:
                parameters += [_parameter(option) for option in declared.values()]
            else:
                parameters.append(parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY))
        run_with_options.__name__, run_with_options.__qualname__ = command.__name__, command.__qualname__
        run_with_options.__module__, run_with_options.__doc__ = command.__module__, command.__doc__
        signature = inspect.Signature(parameters, return_annotation=hints.get("return", inspect.Signature.empty))
        run_with_options.__signature__ = signature  # type: ignore[attr-defined]  # typer and the guard read it
        run_with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {
            "return": hints.get("return")
        }
        return run_with_options

    return decorate


def _parameter(option: DeclaredOption) -> inspect.Parameter:
    plain, meta = _plain(option.hint)
    default_note = (
        []
        if option.default is None or option.default in ((), "") or option.default is False
        else [f"[default: {option.default}]"]
    )
    words = [option.description, f"({option.titles})", *default_note]
    settings: dict[str, Any] = {
        "help": " ".join(words),
        "min": meta.ge,
        "max": meta.le,
        "rich_help_panel": option.panel,
    }
    if "metavar" in option.extra:
        settings["metavar"] = option.extra["metavar"]
    marks = [typer.Option(*option.extra.get("flags", [option.flag]), **settings)]
    if _holds_paths(plain):
        marks += [_role(option)]
    annotation = Annotated[(plain | None, *marks)]  # type: ignore[valid-type]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _role(option: DeclaredOption) -> Any:
    """Return the role for the guard of paths: a `Writes` with names of files where the option is a folder."""
    if option.extra["role"] == "reads":
        return READS
    inside = tuple(option.extra.get("inside", ()))
    return Writes(inside, goes_on=bool(option.extra.get("goes_on"))) if inside else WRITES


def _plain(hint: Any) -> tuple[Any, msgspec.Meta]:
    """Return the type without None and without annotations, a tuple as a list, and its range."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        plain, _ = _plain(inner)
        return plain, next((mark for mark in metadata if isinstance(mark, msgspec.Meta)), msgspec.Meta())
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (part for part in get_args(hint) if part is not type(None))
        return _plain(inner)
    if get_origin(hint) is tuple:
        return list[get_args(hint)[0]], msgspec.Meta()  # type: ignore[misc]
    return hint, msgspec.Meta()


def _holds_paths(hint: Any) -> bool:
    return hint is Path or Path in get_args(hint)


def refuse_options(options: Mapping[str, object], reason: str) -> None:
    """Refuse the first of these options that was given: that is not None, and no switch that is off."""
    for option, value in options.items():
        if value not in (None, False):
            raise typer.BadParameter(reason, param_hint=option)
