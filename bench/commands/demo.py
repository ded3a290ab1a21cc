"""calibrant demo"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench.commands.guard import Writes
from bench.commands.options import AsJson, execution

PROTOCOLS = {
    "replayscm": ("exact", "posterior"),
    "blickets": ("static", "switch-aware", "quiet"),
    "causalab": ("exact", "greedy", "abstain"),
    "causim": ("exact", "graph_only", "copy"),
}
FOLDER = Path("calibrant-demo")


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help=f"Folder of records and report. [default: a report in {FOLDER}]"),
        Writes(("records.jsonl", "records.lock", "report.html", "report.md", "*.svg"), goes_on=True),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Processes; more than one cost more to start than they save here.")
    ] = 1,
    as_json: AsJson = False,
) -> int:
    """Run a few searches on the bundled pools of every benchmark, print their tables, and write a report with plots.

    The report is report.html, to open in any browser; its plots are SVG files next to it. Without matplotlib it is
    report.md, without plots.
    """
    from bench.benchmarks.registry import benchmark
    from bench.commands.run import run_all
    from bench.commands.table import print_table
    from bench.pools.bundled import bundled_files
    from bench.protocols.registry import make_protocol

    pools = bundled_files()
    crashed = 0
    with tempfile.TemporaryDirectory(prefix="calibrant-demo-") as scratch:
        records = out or Path(scratch)
        for name, known in PROTOCOLS.items():
            chosen = [make_protocol(benchmark(name).protocols, one, {}) for one in known]
            crashed += run_all(chosen, pools[name], records, execution(workers, None))
        print_table([records], as_json=as_json, again=shlex.join(["calibrant", "table", str(out)]) if out else "")
        played = [path for name, files in pools.items() if benchmark(name).transcripts for path in files]
        for line in written_report(records, out or FOLDER, played):
            typer.echo(line, err=True)
    return 1 if crashed else 0


def written_report(records: Path, folder: Path, pools: Sequence[Path] = ()) -> list[str]:
    """Write the report and its plots, or the report alone; lines that say where it is, and what is missing.

    pools: those of which the page has episodes, step by step
    """
    from bench.report.part import ReportContents
    from bench.report.sources import Sources
    from bench.report.writing import HTML, report_text
    from dsl.errors import MissingExtraError
    from dsl.whole_file import write_whole

    sources = Sources([records], pools=pools)
    answers = sources.answers()
    wanted = ReportContents(pools=tuple(pools), transcripts=sources.transcripts())
    try:
        text = report_text(answers, wanted, HTML, plots=folder)
    except MissingExtraError as error:
        write_whole(folder / "report.md", report_text(answers, wanted, "markdown"))
        return [str(error), f"report: {folder / 'report.md'}"]
    write_whole(folder / "report.html", text)
    return [f"report: {folder / 'report.html'}", f"plot:   {folder / 'ladder.svg'}"]
