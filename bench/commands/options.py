"""Arguments, options and progress shared by several commands, options of benchmarks, and sets of hypotheses.

A command takes the union of the benchmarks' options, all without defaults, so that it sees which ones were given.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TextIO,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import typer

from calibrant.bench.commands.guard import READS, WRITES, Writes
from calibrant.bench.core.options import DeclaredOption, GivenOptions, declared_options
from calibrant.bench.help import EXECUTION, INPUT, ITEMS, METHOD, OUTPUT, VIEW
from calibrant.bench.terminal import drawn_on, is_quiet, json_text, printable, typed_json
from calibrant.dsl.errors import in_one_line

if TYPE_CHECKING:
    from rich.console import Console

    from calibrant.bench.core.responses import Extractor, ReadingOptions
    from calibrant.bench.runs.executors import Execution, Progress
    from calibrant.dsl.answer_text import Thoughts


# --- Cores and progress of commands that work through pools -----------------------------------------------------------
Pace: TypeAlias = tuple[float, float]  # without a terminal: seconds before the first line of progress, between lines
DEFAULT_PACE: Pace = 5.0, 30.0
QUICK_PACE: Pace = 2.0, 5.0  # for work that is usually short
TERMINAL_VARIABLES = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})  # by which rich takes other streams for terminals


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def progress_bar(doing: str = "", pace: Pace | None = None) -> AbstractContextManager[Progress]:
    """Show a bar per pool on standard error if that is a terminal; else lines at a pace, none for short work.

    No thread starts before the first report, so that worker processes can be copies of this one.

    doing: name of the activity, printed before names of pools; pace: DEFAULT_PACE by default
    """
    if is_quiet.get():
        return nullcontext(lambda name, done, total: None)
    if not (drawn_on(sys.stderr).isatty() or TERMINAL_VARIABLES & os.environ.keys()):  # rich takes .05 s to import
        return _lines(doing, pace or DEFAULT_PACE)
    from rich.console import Console

    console = Console(file=drawn_on(sys.stderr))
    return _bars(console, doing) if console.is_terminal else _lines(doing, pace or DEFAULT_PACE)


@contextmanager
def _bars(console: Console, doing: str) -> Iterator[Progress]:
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bars: dict[str, TaskID] = {}
    # results printed to a terminal go above the bar; a piped standard output is left alone
    bar = Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty())
    with ExitStack() as stack:

        def report(name: str, done: int, total: int) -> None:
            if not bars:
                stack.enter_context(bar)
            if name not in bars:
                bars[name] = bar.add_task(escape(_line(doing + name)), total=total or None)
            bar.update(bars[name], completed=done)

        yield report


@contextmanager
def _lines(doing: str, pace: Pace) -> Iterator[Progress]:
    lines, is_done = ProgressLines(doing, pace), Event()
    printer = Thread(target=lines.print_until, args=(is_done.wait, sys.stderr), daemon=True)

    def report(name: str, done: int, total: int) -> None:
        lines.report(name, done, total)
        if printer.ident is None:
            printer.start()

    try:
        yield report
    finally:
        is_done.set()
        if printer.ident is not None:
            printer.join()


class ProgressLines:
    """Lines of progress at a pace. A total of 0 means that it is unknown."""

    def __init__(self, doing: str, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._seconds_to_first, self._interval = pace
        self._clock = clock
        self._started = clock()
        self._latest: tuple[str, int, int] | None = None

    def report(self, name: str, done: int, total: int) -> None:
        self._latest = name, done, total

    def print_until(self, wait_for_end: Callable[[float], bool], out: TextIO) -> None:
        """Write lines until the work ends.

        wait_for_end: waits for the end of the work, at most so many seconds; returns whether the work has ended
        """
        seconds = self._seconds_to_first
        while not wait_for_end(seconds):
            seconds = self._interval
            if line := self.line():
                print(line, file=out, flush=True)

    def line(self) -> str:
        """Return the current line of progress; empty if everything is done."""
        seconds = f"after {self._clock() - self._started:.0f} s"
        if self._latest is None:
            return _line(f"{self._doing}reading, {seconds}")
        name, done, total = self._latest
        if done >= total > 0:
            return ""
        return _line(f"{self._doing}{name}: {f'{done} of {total}' if total else done} done {seconds}")


def _line(text: str) -> str:
    return printable(in_one_line(text))


# --- Arguments and options that several commands share, and the options that benchmarks declare -----------------------
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
Steps: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--steps", help="With --html: for a class, step by step, with a vote before the answer.", rich_help_panel=OUTPUT
    ),
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
    int | None,
    typer.Option(
        min=1, help="Processes. [default: one per usable core; none for few items]", rich_help_panel=EXECUTION
    ),
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
        help="Let the workers of a dask.distributed scheduler do it, such as `tcp://HOST:PORT`.",
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


ExtractorOption: TypeAlias = Annotated[
    Literal["paper", "published", "lenient"],
    typer.Option(
        help="Rule that reads the answer: the paper's, on the text without thoughts; the published one, on the whole"
        " text; or one that also takes JSON with small mistakes, wrappers and lines.",
        rich_help_panel=INPUT,
    ),
]
ThoughtsChoice: TypeAlias = Annotated[
    Literal["strip", "opened", "keep"] | None,
    typer.Option(
        "--thoughts",
        help="What of a text is thoughts, and never an answer: what marks enclose; also what stands before a closing"
        " mark that the prompt opened; nothing. [default: strip]",
        rich_help_panel=INPUT,
    ),
]
ModelName: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model of all lines of the file.", rich_help_panel=INPUT)
]
OnError: TypeAlias = Annotated[
    Literal["stop", "skip"],
    typer.Option("--on-error", help="Stop at a line in error, or leave it out and say so.", rich_help_panel=INPUT),
]
Duplicates: TypeAlias = Annotated[
    Literal["keep", "drop"],
    typer.Option(help="Count lines that are equal as a whole as samples, or once.", rich_help_panel=INPUT),
]


def reading_options(extractor: str, thoughts: str | None) -> ReadingOptions:
    """Return the options of reading responses; raise for --thoughts with the published rule, which ignores it."""
    from calibrant.bench.core.responses import ReadingOptions

    if extractor == "published" and thoughts is not None:
        raise typer.BadParameter("the published rule reads the whole text in its own way", param_hint="--thoughts")
    return ReadingOptions(cast("Extractor", extractor), cast("Thoughts", thoughts or "strip"))


def require_level(level: float | None, *, attribution: bool) -> None:
    """Raise for a posterior that is not in LEVELS, and for any posterior without attributions."""
    from calibrant.bench.core.attribution import LEVELS

    if level is None:
        return
    if level not in LEVELS:
        levels = ", ".join(f"{offered:g}" for offered in LEVELS)
        raise typer.BadParameter(f"{level:g} is none of {levels}", param_hint="--decided-at")
    if not attribution:
        raise typer.BadParameter("it says what --attribution counts as decided: give both", param_hint="--decided-at")


MAX_LOCAL_ITEMS = 8  # items that run in this process: starting another takes 1.3 s, the time of 8 to 30 exact answers


def execution(workers: int | None, cluster: str | None, budget: float | None = None) -> Execution:
    """Return the execution of these options; by default a process per usable core above MAX_LOCAL_ITEMS jobs."""
    from calibrant.bench.runs.executors import Execution

    if cluster is None:
        return Execution(
            workers or usable_cores(), budget, max_local_jobs=0 if workers else MAX_LOCAL_ITEMS, may_copy=True
        )
    if workers is not None:
        raise typer.BadParameter("a cluster has its own workers: give one of --cluster and --workers")
    return Execution(wall_budget=budget, cluster=cluster)


R = TypeVar("R")
PARAMETER = "given"  # name of a command's parameter for the benchmarks' options


def with_options(name: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that replaces a command's parameter `given` by benchmarks' options for the command `name`."""

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
    plain, meta = _split_hint(option.hint)
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
    annotations = [typer.Option(*option.extra.get("flags", [option.flag]), **settings)]
    if _holds_paths(plain):
        annotations += [_role(option)]
    annotation = Annotated[(plain | None, *annotations)]  # type: ignore[valid-type]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _role(option: DeclaredOption) -> Any:
    """Return the role of a path option for the guard: READS, or a `Writes` with the names of files in a folder."""
    if option.extra["role"] == "reads":
        return READS
    inside = tuple(option.extra.get("inside", ()))
    return Writes(inside) if inside else WRITES


def _split_hint(hint: Any) -> tuple[Any, msgspec.Meta]:
    """Return (type without None and annotations, with a list for a tuple; bounds of its values)."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        plain, _ = _split_hint(inner)
        return plain, next((meta for meta in metadata if isinstance(meta, msgspec.Meta)), msgspec.Meta())
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (part for part in get_args(hint) if part is not type(None))
        return _split_hint(inner)
    if get_origin(hint) is tuple:
        return list[get_args(hint)[0]], msgspec.Meta()  # type: ignore[misc]
    return hint, msgspec.Meta()


def _holds_paths(hint: Any) -> bool:
    return hint is Path or Path in get_args(hint)


def refuse_steps_alone(html: Path | None, *, steps: bool) -> None:
    """Raise `typer.BadParameter` for --steps without a page."""
    refuse_options({"--steps": steps and html is None}, "it is a kind of page: give --html FILE")


def refuse_options(options: Mapping[str, object], reason: str) -> None:
    """Raise `typer.BadParameter` for the first given option: one that is neither None nor a switch that is off."""
    for option, value in options.items():
        if value is not None and value is not False:  # 0 is given
            raise typer.BadParameter(reason, param_hint=option)


# --- Sets of hypotheses in `calibrant score --set-size` and `calibrant table` -----------------------------------------
SetSize: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--set-size",
        min=1,
        max=1_000,
        help="Lines hold so many hypotheses each: what do they recover?",
        rich_help_panel=METHOD,
    ),
]


def print_set_scores(
    paths: Sequence[Path], size: int, out: Path | None, options: Mapping[str, object], *, as_json: bool
) -> None:
    """Score a file of predictions that are sets, write and print the verdicts.

    paths: pools, then the file; size: hypotheses per set; out: file of the verdicts, None for no file
    options: options that do not apply to sets; `typer.BadParameter` if one is given
    """
    from calibrant.bench.scoring.sets import score_sets, set_rows
    from calibrant.dsl.atomic_write import write_pieces

    refuse_options({option: bool(value) for option, value in options.items()}, "sets of hypotheses have none of this")
    if len(paths) < 2:
        raise typer.BadParameter("give at least one pool, and the predictions as the last argument")
    lines = [score.to_dict() for score in score_sets(paths[:-1], paths[-1], size)]
    if out is not None:
        write_pieces(out, (f"{typed_json(line)}\n" for line in lines))
    if as_json:
        for line in lines:
            typer.echo(json_text(line, indent=None))
    _print_rows(set_rows(lines), err=as_json)


def print_set_table(paths: Sequence[Path], *, as_json: bool) -> bool:
    """Print the table of files of verdicts on sets; return whether the first is such a file."""
    from calibrant.bench.scoring.sets import is_set_file, read_set_lines, set_rows

    if not paths or not is_set_file(paths[0]):
        return False
    rows = set_rows(read_set_lines(paths))
    if as_json:
        typer.echo(json_text({"sets": rows}))
    else:
        _print_rows(rows, err=False)
    return True


def _print_rows(rows: Sequence[Mapping[str, object]], *, err: bool) -> None:
    from calibrant.bench.scoring.sets import set_table

    for line in set_table(rows):
        typer.echo(line, err=err)
