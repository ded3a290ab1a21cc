"""calibrant audit"""

from __future__ import annotations

import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from calibrant.bench.commands.guard import Writes
from calibrant.bench.commands.options import AsJson, Cluster, Limit, Only, PoolPath, Workers, execution, with_options
from calibrant.bench.commands.progress import progress_bar
from calibrant.bench.core.options import GivenOptions
from calibrant.dsl.errors import in_one_line

if TYPE_CHECKING:
    from calibrant.audits.replayscm.instance import AuditOptions
    from calibrant.bench.replayscm.audit.calibration import Calibration
    from calibrant.bench.replayscm.audit.run import AuditedPool
    from calibrant.bench.replayscm.options import AuditOptions as AuditArguments
    from calibrant.bench.runs.jobs import Execution
    from calibrant.bench.runs.runner import Selection
    from calibrant.dsl.replayscm.problem import Problem

FailOn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ambiguous[:CLASS]|KIND",
        help="Exit 1 unless one SCM of the class fits each instance: none is as bad as two. CLASS is kN or parents<=N; "
        "without it the class of each verdict. Of other benchmarks: exit 1 if a finding of that kind is proved.",
    ),
]


@with_options("audit")
def audit(
    pool: PoolPath,
    given: GivenOptions,
    certificates: Annotated[
        Path | None,
        typer.Option("--certificates", metavar="DIR", help="Write a certificate of every count."),
        Writes(("*.json",)),
    ] = None,
    fail_on: FailOn = None,
    only: Only = None,
    limit: Limit = None,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> int:
    """Count the SCMs that each instance's training worlds leave open, and show what bounded searches missed.

    Counts are exact, for classes of at most k functional parents. Every audited instance is appended to
    DIR/audits.jsonl at once; the same command goes on where an earlier one stopped. Reads what is sealed. Of other
    benchmarks: what can be proved about each item.
    """
    from calibrant.bench.core.registry import DEFAULT, benchmark_of
    from calibrant.bench.runs.runner import Selection

    selection = Selection(frozenset(only or ()), limit)
    of = benchmark_of(pool)
    asked = given.convert(of.name, pool.name)
    if of.name != DEFAULT:
        by = execution(workers or (None if cluster else 1), cluster)  # an item takes milliseconds
        return _claims(pool, selection, by, certificates, fail_on, as_json=as_json)
    return _counts(pool, asked, selection, execution(workers, cluster, asked.budget), certificates, fail_on, as_json)


def _counts(
    pool: Path,
    asked: AuditArguments,
    selection: Selection,
    by: Execution,
    certificates: Path | None,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """The audit of a pool of ReplaySCM."""
    from calibrant.audits.replayscm.ambiguity import PARENTS
    from calibrant.audits.replayscm.instance import AuditOptions
    from calibrant.bench.replayscm.audit.calibration import calibration
    from calibrant.bench.replayscm.audit.text import gate_class
    from calibrant.bench.runs.records import folder_records

    for folder in asked.runs:
        folder_records(folder)  # a folder without records is said before the work, not after it
    _check_cap(asked.max_parents, asked.max_size, certificates)
    gate = None if fail_on is None else gate_class(fail_on)
    classes = tuple(sorted({*PARENTS, *([gate] if gate else [])}))
    options = AuditOptions(asked.max_parents, classes, asked.nested_roots)
    audited = _audited(pool, asked.out, options, selection, by)
    calibrated = calibration(audited.records, asked.runs)
    if asked.html:
        _write_page(audited, calibrated, asked.html)
    if certificates:
        _certify(audited, certificates, options, asked.max_size)
    _print(audited, calibrated, pool, details=asked.details, as_json=as_json)
    return _exit_code(audited, gated=fail_on is not None, gate=gate)


def _write_page(audited: AuditedPool, calibrated: Calibration, file: Path) -> None:
    from calibrant.bench.replayscm.audit.html import report
    from calibrant.dsl.atomic_write import write_atomically

    write_atomically(file, report(audited, calibrated))
    typer.echo(f"report written to {file}", err=True)


def _claims(
    pool: Path,
    selection: Selection,
    by: Execution,
    certificates: Path | None,
    fail_on: str | None,
    *,
    as_json: bool,
) -> int:
    """The findings of a pool of another benchmark."""
    from calibrant.bench.claims.findings import fails, finding_record, findings_lines, pool_findings, write_certificates
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pages.json_stream import list_pieces
    from calibrant.bench.terminal import stated_width

    of = benchmark_of(pool)
    found = pool_findings(of, pool, selection, by)
    failed = fail_on is not None and fails(found, fail_on)
    if certificates:
        typer.echo(f"{write_certificates(found, certificates)} certificates written to {certificates}", err=True)
    if as_json:
        for piece in list_pieces(map(finding_record, found)):
            typer.echo(piece, nl=False)
        typer.echo()
    else:
        for line in findings_lines(found, stated_width(sys.stdout)):
            typer.echo(line)
    return 1 if failed else 0


def _audited(pool: Path, out: Path | None, options: AuditOptions, selection: Selection, by: Execution) -> AuditedPool:
    """The audits of a pool; their records are kept if there is a folder for them."""
    from calibrant.bench.replayscm.audit.run import audit_pool

    with tempfile.TemporaryDirectory(prefix="calibrant-audit-") as scratch, progress_bar() as progress:
        made = audit_pool(pool, out or Path(scratch), options, selection, execution=by, progress=progress)
    if out:
        new = len(made.records) - made.skipped
        typer.echo(f"{new} instances audited, {made.skipped} had a record already", err=True)
    return made


def _check_cap(max_parents: int | None, max_size: int | None, certificates: Path | None) -> None:
    from calibrant.audits.replayscm.ambiguity import MIN_PARENTS
    from calibrant.audits.replayscm.certificates.plain_sizes import MAX_CAP

    if max_size is None:
        return
    if certificates is None:
        reason = "it is the cap of the certificates' class: give --certificates too"
        raise typer.BadParameter(reason, param_hint="--max-size")
    parents = max_parents or MIN_PARENTS
    most = MAX_CAP.get(parents, 0)
    if max_size > most:
        reason = f"with {parents} parents, `calibrant verify` recounts sizes up to {most}"
        raise typer.BadParameter(reason if most else f"{reason}: none", param_hint="--max-size")


def _certify(audited: AuditedPool, folder: Path, options: AuditOptions, max_size: int | None) -> None:
    from calibrant.audits.replayscm.ambiguity import restrict_to_grammar
    from calibrant.audits.replayscm.certificates.plain_sizes import MAX_CAP
    from calibrant.bench.replayscm.audit.certificates import write_certificates
    from calibrant.solvers.replayscm.version_space import ModelClass

    def class_of(problem: Problem) -> ModelClass:
        parents = options.headline(problem)
        asked = ModelClass(parents, max_size, options.nested_roots)
        counted = restrict_to_grammar(asked, problem.task.grammar)
        return counted if (counted.max_size or 0) <= MAX_CAP.get(parents, 0) else asked

    for line in write_certificates(audited.pool.problems, folder, class_of):
        typer.echo(in_one_line(line), err=True)


def _print_details(audited: AuditedPool) -> None:
    from calibrant.bench.replayscm.audit.details import details_text

    for record in audited.records:
        typer.echo(details_text(record) + "\n")


def _print(audited: AuditedPool, calibrated: Calibration, file: Path, *, details: bool, as_json: bool) -> None:
    from calibrant.bench.pages.json_stream import object_pieces
    from calibrant.bench.replayscm.audit.text import audits_table, calibration_text, summary_lines
    from calibrant.bench.report.rate_rows import SHORT_DIGEST
    from calibrant.bench.terminal import stated_width

    if as_json:
        instances = (record.to_dict() for record in audited.records)
        for piece in object_pieces({"instances": instances}, {"calibration": calibrated.to_dict()}):
            typer.echo(piece, nl=False)
        typer.echo()
    else:
        if details:
            _print_details(audited)
        which = in_one_line(f"{audited.pool.name} ({file.name}, sha256 {audited.digest[:SHORT_DIGEST]})")
        table = audits_table(audited.records, stated_width(sys.stdout))
        for line in chain([which, table.text], summary_lines(audited.records)):
            typer.echo(line)
        if calibration := calibration_text(calibrated):
            typer.echo(calibration)
        if table.left_out:
            typer.echo(f"left out to fit the width: {', '.join(table.left_out)}; --json has all", err=True)


def _exit_code(audited: AuditedPool, *, gated: bool, gate: int | None) -> int:
    """1 if an instance has no findings or, where that is asked for, not exactly one member. gate: in which class."""
    from calibrant.bench.replayscm.audit.text import summary, verdict

    unfinished = 0
    for record in audited.records:
        if record.findings is None:
            typer.echo(in_one_line(f"{record.instance}: {record.error}"), err=True)
            unfinished += 1
    if not gated:
        return 1 if unfinished else 0
    for line in summary(audited.records, gate).splitlines():
        typer.echo(f"--fail-on: {line}", err=True)
    return 0 if all(verdict(record, gate) == "unique" for record in audited.records) else 1
