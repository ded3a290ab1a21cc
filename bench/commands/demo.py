"""Command `calibrant demo`."""

from __future__ import annotations

import hashlib
import inspect
import re
import shutil
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import calibrant.dsl.networks
from calibrant.bench.commands.guard import Writes
from calibrant.bench.commands.options import AsJson, execution, refuse_options
from calibrant.bench.core.names import FIRST
from calibrant.bench.help import EXECUTION, OUTPUT
from calibrant.bench.terminal import width_of
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.pages.page import Lesson
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.terminal import NextCommand

FOLDER = Path("calibrant-demo")
REPORT_FILES = ("report.html", "ladder.svg")
CLASS_PAGE = "class.html"
BOARD = "board"
NETWORKS = "networks"
DATA = Path(__file__).resolve().parents[1] / "suites" / "data"
SUITE_FILE, CLASS_FILE = DATA / "calibrant_mini.toml", DATA / "class.toml"
TOY_NETWORKS = Path(calibrant.dsl.networks.__path__[0]) / "data"  # five files, in as many formats
INTRODUCTION = (
    "Methods answered every item of each benchmark. An item is decided if all that explains what the method was shown,"
    " or found by its moves, gives one answer; else even a right answer is luck. Shares of all items, together 100 %: "
)
MEANINGS = {
    "earned": "decided and right",
    "lucky": "undecided and right",
    "missed": "decided, wrong",
    "short": "undecided, wrong",
    "uncounted": "several answers are right, or too much to count",
    "invalid": "refused",
    "no_answer": "none given",
}
RIGHT_IS = "Right: Earned, Lucky, and what of Uncounted is right."
SIGNATURES = ".calibrant-demo"  # file with digests of the files that the last demo wrote


Force: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Overwrite a report in the folder that demo did not write.", rich_help_panel=OUTPUT),
]
Opened: TypeAlias = Annotated[
    bool, typer.Option("--open", help="Open the report in a browser, where there is one.", rich_help_panel=OUTPUT)
]
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
    force: Force = False,
    for_class: ForClass = False,
    opened: Opened = False,
    as_json: AsJson = False,
) -> int:
    """Run two or three methods on the bundled items of every benchmark, and say what there is to see.

    A table for each benchmark is printed; its columns are explained first. The report is report.html, to open in any
    browser. Plots are SVG files next to it. The board, in board/, is of the suite calibrant-mini: bundled pools,
    answered by those methods and scored again. In networks/ are five toy networks in as many formats, for `calibrant
    network` and for items of networks. With --json the rows are those of `calibrant table`. With --class nothing is
    run: one page has six items to project, each step by step, with a vote before the answer.
    """
    from calibrant.bench.commands.table import print_table
    from calibrant.bench.core.registry import benchmark, bundled_files
    from calibrant.bench.terminal import print_next, print_written

    if for_class:
        refuse_options({"--json": as_json}, "--class writes a page")
        _write_class(out or FOLDER, force=force)
        if opened:
            _open_page((out or FOLDER) / CLASS_PAGE)
        return 0
    _require_own_report(out or FOLDER, force=force)
    pools = bundled_files()
    with tempfile.TemporaryDirectory(prefix="calibrant-demo-") as scratch:
        records = out or Path(scratch)
        crashed = _run_methods(pools, records, workers)
        if as_json:
            print_table([records], as_json=True)
        answers = _read_answers(records, pools)
        if not as_json:
            _print_tables(answers)
        played = [path for name, files in pools.items() for path in files if _is_played(benchmark(name), path)]
        written = written_report(records, out or FOLDER, played, answers)
        written["board"] = _write_board(out or FOLDER, Path(scratch), records)
        written["toy networks"] = _write_networks(out or FOLDER)
        _sign(out or FOLDER, (*REPORT_FILES, BOARD))
    for kind, file in written.items():
        if kind != "plot":  # plots are in the report too
            print_written(file, kind)
    if not as_json:
        names = [name for name, files in pools.items() if not {*files}.isdisjoint(played)]
        print_next(_next_commands(pools[FIRST][0], names[:1], out, (out or FOLDER) / NETWORKS))
    if opened:
        _open_page(written["report"])
    return 1 if crashed else 0


def _run_methods(pools: Mapping[str, Sequence[Path]], records: Path, workers: int) -> int:
    """Run the methods of every benchmark; return how many items crashed."""
    from calibrant.bench.core.registry import benchmarks
    from calibrant.bench.protocols import make_protocol, protocols_of
    from calibrant.bench.runs.runner import run

    crashed, listed = 0, benchmarks()
    number = plural(sum(len(of.demo_protocols) for of in listed), "methods")
    typer.echo(
        f"running {number} on {plural(len(listed), 'benchmarks')}: half a minute, twice that the first time", err=True
    )
    for of in listed:
        for name in of.demo_protocols:
            protocol = make_protocol(protocols_of(of), name, {})
            crashed += run(protocol, pools[of.name], records, execution=execution(workers, None)).crashed
    return crashed


def _read_answers(records: Path, pools: Mapping[str, Sequence[Path]]) -> dict[str, list[Answer]]:
    """Return benchmark -> its answers, with attributions."""
    from calibrant.bench.report.pool_attribution import add_attributions
    from calibrant.bench.report.sources import Sources

    files = [path for paths in pools.values() for path in paths]
    answers = Sources([records], pools=files).answers()
    return {name: [*add_attributions(listed, pools[name])] for name, listed in answers.items()}


def _print_tables(answers: Mapping[str, Sequence[Answer]]) -> None:
    """Print for each benchmark the question of its items, a sentence on luck, and the classes of answers by method."""
    from calibrant.bench.core.attribution import SHARES, share_words, shown_shares
    from calibrant.bench.core.registry import benchmark
    from calibrant.bench.pages.terminal_tables import aligned
    from calibrant.bench.protocols import protocols_of
    from calibrant.bench.report.overview.page import benchmark_results
    from calibrant.bench.report.overview.sentences import count_text, luck_sentence, percents

    width = width_of(sys.stdout)
    all_results = {name: benchmark_results(name, listed) for name, listed in answers.items()}
    tables = {
        name: {system.name: percents(system) for system in results.systems} for name, results in all_results.items()
    }
    present = {key for table in tables.values() for shares in table.values() for key in SHARES if shares[key] != "0 %"}
    titles = {key: share_words(key).capitalize() for key in shown_shares(present)}
    meanings = "; ".join(f"{title}: {MEANINGS[key]}" for key, title in titles.items())
    _print_wrapped(f"{INTRODUCTION}{meanings}. {RIGHT_IS}", width)
    for name, results in all_results.items():
        bench = benchmark(name)
        typer.echo(f"\n{bench.title}: {results.guide.words.task}.")
        _print_wrapped(luck_sentence(results), width)
        rows = [
            [
                system.name,
                count_text(system.num_items),
                *(tables[name][system.name][key] for key in ("right", *titles)),
            ]
            for system in results.systems
        ]
        typer.echo(aligned(["Method", "Items", "Right", *titles.values()], rows))
        about = ((method, inspect.getdoc(protocols_of(bench)[method]) or "") for method in bench.demo_protocols)
        _print_wrapped("; ".join(f"{method}: {re.split(r'[;.:]', text)[0]}" for method, text in about) + ".", width)


def _print_wrapped(text: str, width: int) -> None:
    for line in textwrap.wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), width):
        typer.echo(line.replace("\N{NO-BREAK SPACE}", " "))


def _open_page(page: Path) -> None:
    """Open a page in a browser; print how to open it if there is no graphical browser."""
    import webbrowser

    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        in_terminal = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
            browser, webbrowser.BackgroundBrowser
        )
        if not in_terminal and browser.open(page.resolve().as_uri()):
            return
    typer.echo(f"no browser to open it: the report is {page.resolve()}", err=True)


def _next_commands(pool: Path, names: Sequence[str], out: Path | None, networks: Path) -> Iterator[NextCommand]:
    """Yield the commands to suggest after the demo.

    pool: a bundled pool; names: benchmarks to generate items for; networks: folder of toy networks
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
    """Write the page of lessons for a class."""
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
    """Return the lesson on an item after the moves listed in the file."""
    from calibrant.bench.core.items import item_of
    from calibrant.bench.core.registry import benchmark_of, bundled_sample
    from calibrant.bench.pages.capabilities import EXPLANATIONS

    pool = DATA / entry["file"] if "file" in entry else bundled_sample(entry["pool"])
    bench = benchmark_of(pool)
    item, explanations = item_of(bench.items.read_pool(pool), entry["id"]), bench.require(EXPLANATIONS)
    steps: Sequence[Any] = ()
    if "moves" in entry:
        episode = bench.play.open(item)
        for move in entry["moves"]:
            episode.act(move)
        steps = episode.steps
    lesson = explanations.lesson(item, explanations.explain(item, steps))
    return replace(lesson, item=entry.get("name", item.id))


def _is_played(bench: Benchmark[Any], path: Path) -> bool:
    """Return whether a pool has episodes."""
    from calibrant.bench.core.capabilities import PLAY

    return bench.has(PLAY) and any(map(bench.play.is_played, bench.items.read_pool(path).items))


def _require_own_report(folder: Path, *, force: bool) -> None:
    """Ask before overwriting a report that demo did not write, or that was changed; without a terminal, raise."""
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
    """Ask before overwriting a file that demo did not write; raise `CalibrantError` without a terminal."""
    from calibrant.dsl.errors import CalibrantError

    if not sys.stdin.isatty():
        raise CalibrantError(f"{file}: not written by demo; give another --out, or --force to overwrite it")
    typer.confirm(f"{file} was not written by demo. Overwrite it?", abort=True, err=True)


def _board_sums(folder: Path) -> Path | None:
    """Return the list of digests of the board in a folder; None without one."""
    from calibrant.bench.suites.manifest import SUMS

    return next(iter(sorted((folder / BOARD).glob(f"*/{SUMS}"))), None)


def _is_own_board(sums: Path | None, digests: frozenset[str]) -> bool:
    """Return whether demo wrote a board that was not changed since."""
    from calibrant.bench.suites.manifest import differences

    return sums is not None and _digest(sums) in digests and not differences(sums.parent)


def _write_board(folder: Path, scratch: Path, records: Path) -> Path:
    """Write the board of the bundled suite with the methods of the records; return its index page."""
    from calibrant.bench.runs.records import folder_records
    from calibrant.bench.suites.board import build_board
    from calibrant.bench.suites.release import draft_release

    suite, submissions, board = scratch / "suite", scratch / "submissions", scratch / BOARD
    submissions.mkdir()
    draft_release(SUITE_FILE, suite, {record.key: record for record in folder_records(records)})
    summary = build_board(suite, submissions, board)
    target = folder / BOARD
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(board, target)
    return target / summary.page.relative_to(board)


def _write_networks(folder: Path) -> Path:
    """Copy the toy networks; return their folder."""
    from calibrant.dsl.atomic_write import write_atomically

    for file in sorted(TOY_NETWORKS.iterdir()):
        write_atomically(folder / NETWORKS / file.name, file.read_text(encoding="utf-8"))
    return folder / NETWORKS


def _sign(folder: Path, names: Sequence[str]) -> None:
    """Store the digests of written files, beside earlier ones, so that a later demo recognises its own files."""
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


def written_report(
    records: Path, folder: Path, pools: Sequence[Path] = (), answers: Mapping[str, Sequence[Answer]] | None = None
) -> dict[str, Path]:
    """Write the report and plots; return kind of file -> path.

    pools: pools whose episodes the page shows step by step; answers: None to read them from the records
    """
    from calibrant.bench.report.sections import ReportContents
    from calibrant.bench.report.sources import Sources
    from calibrant.bench.report.writing import HTML, report_text
    from calibrant.dsl.atomic_write import write_atomically

    sources = Sources([records], pools=pools)
    answers = sources.answers() if answers is None else answers
    again = sources.transcripts()
    contents = ReportContents(
        with_paper=False, pools=tuple(pools), transcripts=again, runs=(records,), predictions=again
    )
    report, plot = (folder / name for name in REPORT_FILES)
    write_atomically(report, report_text(answers, contents, HTML, plots=folder))
    return {"report": report, "plot": plot}
