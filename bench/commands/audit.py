"""The commands `audit` and `verify`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES_PAGE, Writes
from calibrant.bench.commands.options import (
    AsJson,
    Budget,
    Cluster,
    Limit,
    Only,
    PoolPath,
    Workers,
    execution,
    progress_bar,
    with_options,
)
from calibrant.bench.core.options import VERIFY_SECONDS, GivenOptions
from calibrant.bench.help import EXECUTION, METHOD, OUTPUT
from calibrant.bench.terminal import json_text
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.audits.claims import Listener
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.pools.findings_audit import FileCheck, FindingsReport
    from calibrant.bench.runs.audits import AuditedPool, AuditWork
    from calibrant.bench.runs.executors import Execution, Progress
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import NextCommand


# --- Command `calibrant audit` ----------------------------------------------------------------------------------------
FailOn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ambiguous[:CLASS]|KIND",
        help="Exit 1 unless one SCM of the class fits each instance: none is as bad as two. CLASS is kN or parents<=N; "
        "without it the class of each verdict. Of other benchmarks: exit 1 if a finding of that kind is proved.",
        rich_help_panel=METHOD,
    ),
]
Records: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder of the records; an earlier audit resumes.", rich_help_panel=OUTPUT
    ),
    Writes(("audits.jsonl", "audits.replaced.jsonl", "audits.lock"), is_resumable=True),
]


@with_options("audit")
def audit(
    pool: PoolPath,
    given: GivenOptions,
    out: Records = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page: why each item is open, and what the audit shows.",
            rich_help_panel=OUTPUT,
        ),
        WRITES_PAGE,
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option(
            "--certificates", metavar="DIR", help="Write a certificate of every count.", rich_help_panel=OUTPUT
        ),
        Writes(("*.json",)),
    ] = None,
    fail_on: FailOn = None,
    only: Only = None,
    limit: Limit = None,
    workers: Workers = None,
    cluster: Cluster = None,
    budget: Budget = None,
    as_json: AsJson = False,
) -> int:
    """Count the answers that the evidence of each item leaves open, say why, and show what limited searches missed.

    Counts are exact, for classes of at most k functional parents. Every audited instance is appended to
    DIR/audits.jsonl at once; the same command goes on where an earlier one stopped. Reads what is sealed. Of other
    benchmarks: what can be proved about each item.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.findings_audit import AUDIT
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import print_next

    bench = benchmark_of(pool)
    auditor = bench.require(AUDIT)
    options = given.convert(bench.name, pool.name)
    work = auditor.work(options, fail_on, certify=certificates is not None)
    by = execution(workers or (None if cluster else auditor.workers), cluster, budget)
    audited = _audit_pool(bench, pool, out, work, Selection(frozenset(only or ()), limit), by)
    report = auditor.report(audited, work, options, fail_on)
    failed, reasons = report.failures()
    if html:
        _write_page(bench, audited, report, pool, html, by)
    if certificates:
        for line in report.write_certificates(certificates):
            typer.echo(line, err=True)
    _print(report, pool, as_json=as_json)
    for line in reasons:
        typer.echo(line, err=True)
    if not as_json:
        print_next(_next_commands(bench, pool, [record.instance for record in audited.records], html, certificates))
    return 1 if failed else 0


def _next_commands(
    bench: Benchmark[Any], pool: Path, instances: list[str], html: Path | None, certificates: Path | None
) -> Iterator[NextCommand]:
    """Yield the commands to suggest after an audit of these instances."""
    from calibrant.bench.pages.capabilities import EXPLANATIONS
    from calibrant.bench.pools.findings_audit import VERIFY
    from calibrant.bench.terminal import NextCommand, unused_path

    if instances and bench.has(EXPLANATIONS):
        why = unused_path("why.html")
        yield NextCommand(("show", pool, instances[0], "--html", why), "one reason, drawn")
    if html is None:
        yield NextCommand(("list", pool, "--why"), "the reasons")
    written = sorted(certificates.glob("*.json"))[:1] if certificates is not None else []
    if written and bench.has(VERIFY):
        yield NextCommand(("verify", *written, pool), "check a certificate")


def _audit_pool(
    bench: Benchmark[Any], pool: Path, out: Path | None, work: AuditWork[Any], selection: Selection, by: Execution
) -> AuditedPool[Any]:
    """Audit a pool; records are stored in `out`, or in a temporary folder if it is None."""
    from calibrant.bench.runs.audits import audit_items

    with tempfile.TemporaryDirectory(prefix="calibrant-audit-") as scratch, progress_bar() as progress:
        audited = audit_items(bench, pool, out or Path(scratch), work, selection, execution=by, progress=progress)
    if out:
        new = len(audited.records) - audited.skipped
        typer.echo(f"{plural(new, 'instances')} audited, {audited.skipped} had a record already", err=True)
    return audited


def _write_page(
    bench: Benchmark[Any], audited: AuditedPool[Any], report: FindingsReport[Any], pool: Path, file: Path, by: Execution
) -> None:
    from calibrant.bench.pages.why import page_bodies, with_pool
    from calibrant.bench.terminal import print_written
    from calibrant.dsl.atomic_write import write_atomically

    bodies = page_bodies(bench.name, audited.items, (record.index for record in audited.records), by)
    write_atomically(file, report.page(pool, {place: with_pool(body, pool) for place, body in bodies.items()}))
    print_written(file)


def _print(report: FindingsReport[Any], pool: Path, *, as_json: bool) -> None:
    from calibrant.bench.terminal import width_of

    if as_json:
        for piece in report.json_pieces():
            typer.echo(piece, nl=False)
        typer.echo()
        return
    printed = report.text(pool, width_of(sys.stdout))
    for line in printed.lines:
        typer.echo(line)
    for note in printed.notes:
        typer.echo(note, err=True)


# --- Command `calibrant verify` ---------------------------------------------------------------------------------------
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")  # suffixes of tables that `fit` reads; others are pools
QUICK_SECONDS = 1.0  # after it a check shows the progress of its steps


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="CERT... POOL",
            help="Certificates, or folders of them; then the pool file, or the table that `fit` read.",
        ),
        READS,
    ],
    budget: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Seconds per certificate; then it is neither verified nor refuted.",
            rich_help_panel=EXECUTION,
        ),
    ] = VERIFY_SECONDS,
    engine: Annotated[
        Literal["sat", "smt"] | None,
        typer.Option(
            help="Prove counts by search from the evidence alone, up to 20 members one by one. [default: recount]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check certificates against a pool by plain counting, sharing no code with the engines; 1 unless all hold.

    A certificate that takes longer than the budget is reported as open, with what was recounted of it until then.
    With --engine SAT or SMT search examines the count in an encoding of its own. Where it is false, an SCM is printed
    that it leaves out, or the number that there is.
    """
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import benchmark_of, sole_provider
    from calibrant.bench.pools.findings_audit import VERIFY, check_file

    if len(paths) < 2:
        raise typer.BadParameter("give at least one certificate, and the pool, or the table, as the last argument")
    *places, pool = paths
    certificates = [certificate for path in places for certificate in _list_certificates(path)]
    if pool.suffix.lower() in TABLES:
        if engine is not None:
            raise typer.BadParameter("certificates about a table have no encoding for it", param_hint="--engine")
        check = sole_provider(FITTING).check_against(pool)
    else:
        check = benchmark_of(pool).require(VERIFY).check_against(pool, engine)
    with progress_bar("verifying ") as progress:
        checks = []
        for index, path in enumerate(certificates):
            progress("certificates", index, len(certificates))
            checks.append(check_file(path, check, budget, _steps(path, progress)))
        progress("certificates", len(certificates), len(certificates))
    return _print_checks(checks, as_json=as_json)


def _list_certificates(path: Path) -> list[Path]:
    """Return the JSON files of a folder, sorted by name; of a file, the file."""
    from calibrant.dsl.errors import CalibrantError

    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise CalibrantError(f"{path}: no certificate in it: no file ends in .json")
    return files


def _steps(path: Path, progress: Progress) -> Listener:
    """Return a listener that shows the steps of a check once it takes longer than QUICK_SECONDS."""
    started = monotonic()
    last_report = started

    def listen(part: str, done: int, total: int) -> None:
        nonlocal last_report
        now = monotonic()
        if now - started > QUICK_SECONDS and now - last_report > QUICK_SECONDS:
            last_report = now
            progress(f"{path.name}: {part}", done, total)

    return listen


def _print_checks(checks: Sequence[FileCheck], *, as_json: bool) -> int:
    from calibrant.bench.pools.findings_audit import Verdict
    from calibrant.dsl.errors import in_one_line

    if as_json:
        typer.echo(json_text([check.to_dict() for check in checks]))
    else:
        words = {Verdict.VERIFIED: "ok     ", Verdict.REFUSED: "refused", Verdict.OPEN: "open   "}
        for check in checks:
            typer.echo(in_one_line(f"{words[check.verdict]}  {check.certificate}: {check.reason}"))
    return 0 if all(check.verdict is Verdict.VERIFIED for check in checks) else 1
