"""Command `calibrant verify`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import AsJson, progress_bar
from calibrant.bench.help import EXECUTION, METHOD
from calibrant.bench.pools.verification_limit import VERIFY_SECONDS

if TYPE_CHECKING:
    from calibrant.audits.claims import Listener
    from calibrant.bench.pools.findings_audit import FileCheck
    from calibrant.bench.runs.jobs import Progress

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")  # suffixes of tables that `fit` reads; others are pools
QUICK_SECONDS = 1.0  # a check that is over by then shows no steps of its own


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
        for number, path in enumerate(certificates):
            progress("certificates", number, len(certificates))
            checks.append(check_file(path, check, budget, _steps(path, progress)))
        progress("certificates", len(certificates), len(certificates))
    return _print(checks, as_json=as_json)


def _list_certificates(path: Path) -> list[Path]:
    """Return a file as it is, the JSON files of a folder by name."""
    from calibrant.dsl.errors import CalibrantError

    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise CalibrantError(f"{path}: no certificate in it: no file ends in .json")
    return files


def _steps(path: Path, progress: Progress) -> Listener:
    """Return a listener that shows the steps of a check once it takes long."""
    started = monotonic()
    last_report = started

    def listen(part: str, done: int, total: int) -> None:
        nonlocal last_report
        now = monotonic()
        if now - started > QUICK_SECONDS and now - last_report > QUICK_SECONDS:
            last_report = now
            progress(f"{path.name}: {part}", done, total)

    return listen


def _print(checks: Sequence[FileCheck], *, as_json: bool) -> int:
    from calibrant.bench.pools.findings_audit import Verdict
    from calibrant.dsl.errors import in_one_line

    if as_json:
        typer.echo(json.dumps([check.to_dict() for check in checks], indent=1))
    else:
        words = {Verdict.VERIFIED: "ok     ", Verdict.REFUSED: "refused", Verdict.OPEN: "open   "}
        for check in checks:
            typer.echo(in_one_line(f"{words[check.verdict]}  {check.certificate}: {check.reason}"))
    return 0 if all(check.verdict is Verdict.VERIFIED for check in checks) else 1
