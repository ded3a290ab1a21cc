"""Command `calibrant demo`."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import calibrant.dsl.networks
from calibrant.bench.commands.guard import Writes
from calibrant.bench.commands.options import AsJson, execution, refuse_options
from calibrant.bench.core.names import FIRST
from calibrant.bench.help import EXECUTION, OUTPUT

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.pages.page import Lesson
    from calibrant.bench.terminal import NextCommand

FOLDER = Path("calibrant-demo")
REPORT_FILES = ("report.html", "ladder.svg")
CLASS_PAGE = "class.html"
BOARD = "board"
NETWORKS = "networks"
DATA = Path(__file__).resolve().parents[1] / "suites" / "data"
SUITE_FILE, CLASS_FILE = DATA / "calibrant_mini.toml", DATA / "class.toml"
TOY_NETWORKS = Path(calibrant.dsl.networks.__path__[0]) / "data"  # five files, in as many formats
SIGNATURES = ".calibrant-demo"  # digests of what the last demo wrote in the folder


ForClass: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--class", help=f"Only a page of six items for a class, with votes: {CLASS_PAGE}.", rich_help_panel=OUTPUT
    ),
]


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help=f"Folder of records and report. [default: a report in {FOLDER}]",
            rich_help_panel=OUTPUT,
        ),
        Writes(
            ("records.jsonl", "records.lock", "report.html", "*.svg", CLASS_PAGE, SIGNATURES, BOARD, NETWORKS),
            is_resumable=True,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            min=1,
            help="Processes; more than one cost more to start than they save here.",
            rich_help_panel=EXECUTION,
        ),
    ] = 1,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Overwrite a report in the folder that demo did not write.", rich_help_panel=OUTPUT
        ),
    ] = False,
    for_class: ForClass = False,
    as_json: AsJson = False,
) -> int:
    """Run a few searches on the bundled pools of every benchmark, print their tables, write a report and a board.

    The report is report.html, to open in any browser. Plots are SVG files next to it. The board, in
    board/, is of the suite calibrant-mini, which is released from bundled pools: audited, certified, answered by rows.
    With --class nothing is run: one page has six items to project, each step by step, with a vote before the answer.
    In networks/ are five toy networks in as many formats, for `calibrant network` and for items of networks.
    """
    from calibrant.bench.commands.run import run_all
    from calibrant.bench.commands.table import print_table
    from calibrant.bench.core.registry import benchmark, benchmarks, bundled_files
    from calibrant.bench.protocols import make_protocol, protocols_of
    from calibrant.bench.terminal import print_next, print_written

    if for_class:
        refuse_options({"--json": as_json}, "--class writes a page")
        _write_class(out or FOLDER, force=force)
        return 0
    _require_own_report(out or FOLDER, force=force)
    pools = bundled_files()
    crashed = 0
    with tempfile.TemporaryDirectory(prefix="calibrant-demo-") as scratch:
        records = out or Path(scratch)
        for of in benchmarks():
            chosen = [make_protocol(protocols_of(of), name, {}) for name in of.demo_protocols]
            crashed += run_all(chosen, pools[of.name], records, execution(workers, None))
        print_table([records], as_json=as_json, again=shlex.join(["calibrant", "table", str(out)]) if out else "")
        typer.echo("Items without an answer are expected: these rows are there to be compared with.", err=True)
        played = [path for name, files in pools.items() for path in files if _is_played(benchmark(name), path)]
        for kind, file in written_report(records, out or FOLDER, played).items():
            print_written(file, kind)
        print_written(_write_board(out or FOLDER, Path(scratch)), "board")
        print_written(_write_networks(out or FOLDER), "toy networks")
        _sign(out or FOLDER, (*REPORT_FILES, BOARD))
    if not as_json:
        names = [name for name, files in pools.items() if not {*files}.isdisjoint(played)]
        print_next(_next_commands(pools[FIRST][0], names[:1], out, (out or FOLDER) / NETWORKS))
    return 1 if crashed else 0


def _next_commands(pool: Path, names: Sequence[str], out: Path | None, networks: Path) -> Iterator[NextCommand]:
    """Yield what can be tried after the demo.

    pool: a bundled one; names: benchmarks to make items of; networks: folder of toy networks
    """
    from calibrant.bench.terminal import NextCommand, unused_path

    yield NextCommand(("list", pool, "--why"), "why items are open")
    if out is not None:
        yield NextCommand(("table", out, "--by", "stratum"), "rows by stratum")
    for name in names:
        options = ("--benchmark", name, "--seed", 1, "--per-stratum", 1, "--out", unused_path(f"{name}.jsonl"))
        yield NextCommand(("generate", *options), "items of your own")
    sources = ("--form", "network", "-o", f"networks={networks}", "--seed", 1)
    strata = ("--strata", "network_n8_k2", "--per-stratum", 2, "--out", unused_path("items.jsonl"))
    yield NextCommand(("generate", *sources, *strata), "items of networks")


def _write_class(folder: Path, *, force: bool) -> None:
    """Write the page of items for a class."""
    from calibrant.bench.pages.why import steps_page
    from calibrant.bench.terminal import NextCommand, print_next, print_written
    from calibrant.dsl.atomic_write import write_atomically

    page, content = folder / CLASS_PAGE, tomllib.loads(CLASS_FILE.read_text(encoding="utf-8"))
    if page.exists() and _digest(page) not in _read_signatures(folder) and not force:
        _confirm_overwriting(page)
    folder.mkdir(parents=True, exist_ok=True)
    lessons = [_class_lesson(entry) for entry in content["item"]]
    write_atomically(page, steps_page(lessons, "demo", CLASS_PAGE, title=content["title"]))
    _sign(folder, (CLASS_PAGE,))
    print_written(page)
    again = ("fit", "table.csv", "--target", "COLUMN", "--html", "page.html", "--steps")
    print_next([NextCommand(again, "such a page of a table of your own")])


def _class_lesson(entry: Mapping[str, Any]) -> Lesson:
    """Return an item of the page for a class, after the moves that the file lists."""
    from calibrant.bench.core.items import item_of
    from calibrant.bench.core.registry import benchmark_of, bundled_sample
    from calibrant.bench.pages.capabilities import EXPLANATIONS

    pool = DATA / entry["file"] if "file" in entry else bundled_sample(entry["pool"])
    of = benchmark_of(pool)
    item, explanations = item_of(of.items.read_pool(pool), entry["id"]), of.require(EXPLANATIONS)
    steps: Sequence[Any] = ()
    if "moves" in entry:
        episode = of.play.open(item)
        for move in entry["moves"]:
            episode.act(move)
        steps = episode.steps
    lesson = explanations.lesson(item, explanations.explain(item, steps))
    return replace(lesson, item=entry.get("name", item.id))


def _is_played(of: Benchmark[Any], path: Path) -> bool:
    """Return whether a pool has episodes."""
    from calibrant.bench.core.capabilities import PLAY

    return of.has(PLAY) and any(map(of.play.is_played, of.items.read_pool(path).items))


def _require_own_report(folder: Path, *, force: bool) -> None:
    """Ask before overwriting a report that demo did not write, or that changed since; refuse without a terminal."""
    digests = _read_signatures(folder)
    foreign = [name for name in REPORT_FILES if (folder / name).exists() and _digest(folder / name) not in digests]
    sums = _board_sums(folder)
    if (folder / BOARD).exists() and not _is_own_board(sums, digests):
        foreign.append(BOARD)
    toys = {file: folder / NETWORKS / file.name for file in TOY_NETWORKS.iterdir()}
    foreign += [
        f"{NETWORKS}/{file.name}"
        for file, target in toys.items()
        if target.exists() and _digest(target) != _digest(file)
    ]
    if not foreign or force:
        return
    _confirm_overwriting(folder / foreign[0])


def _confirm_overwriting(file: Path) -> None:
    """Ask before overwriting a file that demo did not write; refuse without a terminal."""
    from calibrant.dsl.errors import CalibrantError

    if not sys.stdin.isatty():
        raise CalibrantError(f"{file}: not written by demo; give another --out, or --force to overwrite it")
    typer.confirm(f"{file} was not written by demo. Overwrite it?", abort=True, err=True)


def _board_sums(folder: Path) -> Path | None:
    """Return the list of digests of the board in a folder; None without one."""
    from calibrant.bench.suites.manifest import SUMS

    return next(iter(sorted((folder / BOARD).glob(f"*/{SUMS}"))), None)


def _is_own_board(sums: Path | None, digests: frozenset[str]) -> bool:
    """Return whether demo wrote a board, and nothing in it has changed since."""
    from calibrant.bench.suites.manifest import differences

    return sums is not None and _digest(sums) in digests and not differences(sums.parent)


def _write_board(folder: Path, scratch: Path) -> Path:
    """Release the bundled suite, and write the board of its rows; return the first page."""
    from calibrant.bench.suites.board import build_board
    from calibrant.bench.suites.release import build_release

    suite, submissions, board = scratch / "suite", scratch / "submissions", scratch / BOARD
    submissions.mkdir()
    build_release(SUITE_FILE, suite)
    summary = build_board(suite, submissions, board)
    target = folder / BOARD
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(board, target)
    return target / summary.page.relative_to(board)


def _write_networks(folder: Path) -> Path:
    """Copy the toy networks; return their folder, in which other files stay."""
    from calibrant.dsl.atomic_write import write_atomically

    for file in sorted(TOY_NETWORKS.iterdir()):
        write_atomically(folder / NETWORKS / file.name, file.read_text(encoding="utf-8"))
    return folder / NETWORKS


def _sign(folder: Path, names: Sequence[str]) -> None:
    """Keep digests of the files just written, by which a later demo tells its own, and those of older ones."""
    from calibrant.dsl.atomic_write import write_atomically

    earlier, sums = _read_signatures(folder), _board_sums(folder)
    files = [*(folder / name for name in (*REPORT_FILES, CLASS_PAGE)), *([] if sums is None else [sums])]
    digests = {file: _digest(file) for file in files if file.is_file()}
    lasting = [
        digest
        for file, digest in digests.items()
        if file.name in names or (file == sums and BOARD in names) or digest in earlier
    ]
    write_atomically(folder / SIGNATURES, "".join(f"{digest}\n" for digest in lasting))


def _read_signatures(folder: Path) -> frozenset[str]:
    file = folder / SIGNATURES
    if not file.is_file():
        return frozenset()
    with file.open("rb") as content:
        return frozenset(content.read(1_000).decode(errors="replace").split())


def _digest(file: Path) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def written_report(records: Path, folder: Path, pools: Sequence[Path] = ()) -> dict[str, Path]:
    """Write the report and plots; return the files by what they are.

    pools: those of which the page has episodes, step by step
    """
    from calibrant.bench.report.sections import ReportContents
    from calibrant.bench.report.sources import Sources
    from calibrant.bench.report.writing import HTML, report_text
    from calibrant.dsl.atomic_write import write_atomically

    sources = Sources([records], pools=pools)
    answers = sources.answers()
    again = sources.transcripts()
    contents = ReportContents(
        with_paper=False, pools=tuple(pools), transcripts=again, runs=(records,), predictions=again
    )
    report, plot = (folder / name for name in REPORT_FILES)
    write_atomically(report, report_text(answers, contents, HTML, plots=folder))
    return {"report": report, "plot": plot}
