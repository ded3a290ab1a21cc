"""Command: calibrant fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

from calibrant.bench.commands.options import AsJson, Steps, refuse_options, refuse_steps_alone
from calibrant.bench.commands.start import table_options
from calibrant.bench.terminal import json_text

if TYPE_CHECKING:
    from calibrant.bench.core.capabilities import FittedNetworks, FittedTable, FormulaQuestion, NetworkQuestion
    from calibrant.bench.terminal import NextCommand
    from calibrant.dsl.knowledge import Knowledge

DEFAULT_PARENTS, MAX_PARENTS, MAX_TARGET_PARENTS = 4, 6, 12
WRITTEN = ("--html", "--svg", "--out", "--certificates", "--export")  # options omitted from suggested commands
FEW_NETWORKS = 5  # networks in the suggested command after one was shown
ARCS_OF_FORMULAS = (
    "calibrant.fit(TABLE).to_networkx() is the graph of formulas, and .to_frame().to_csv(FILE) their table"
)
ABOUT_FORMULAS = "not with --score, which prints networks of all columns; it takes --best, --json, --html, --export"
ABOUT_NETWORKS = "it is about networks: give --score"


def fit(
    table: table_options.TablePath,
    target: table_options.Target = None,
    do: table_options.Do = None,
    do_flags: table_options.DoFlags = None,
    ones: table_options.WordsForOne = None,
    binarize: table_options.Binarize = None,
    drop: table_options.Drop = None,
    missing: table_options.Missing = None,
    gaps: table_options.GapHandling = "complete",
    roots: table_options.Roots = None,
    max_parents: table_options.MaxParents = None,
    operators: table_options.Operators = None,
    errors: table_options.Errors = None,
    ties: table_options.Ties = None,
    rates: table_options.Rates = None,
    consistency: table_options.Consistency = None,
    cases: table_options.Cases = None,
    assume: table_options.AssumptionFile = None,
    score: table_options.ScoreName = None,
    best: table_options.Best = None,
    iss: table_options.SampleSize = None,
    require: table_options.Required = None,
    forbid: table_options.Forbidden = None,
    tiers: table_options.Tiers = None,
    order: table_options.ColumnOrder = None,
    max_parents_of: table_options.ParentLimits = None,
    knowledge: table_options.KnowledgeFile = None,
    graph: table_options.OwnGraph = None,
    effect: table_options.Effect = None,
    prior: table_options.GraphPrior = None,
    seconds: table_options.ProofSeconds = None,
    search: table_options.Search = False,
    fail_on: table_options.FailOn = None,
    export: table_options.Export = None,
    html: table_options.Page = None,
    steps: Steps = False,
    svg: table_options.Picture = None,
    out: table_options.PoolOut = None,
    certificates: table_options.Certificates = None,
    as_json: AsJson = False,
    verbose: table_options.Verbose = False,
) -> int:
    """Explain columns of two values by the smallest formulas, with proof: how many others fit, and what is open.

    Any two values, any names; the first lines state what was read as 1. Exit code 1 if nothing fits. Columns with noise
    are no functions of others: --errors has the least formula of every number of errors, --score learns networks.
    """
    reading: dict[str, Any] = {"do": do or (), "do_flags": do_flags, "one": ones or (), "binarize": binarize or ()}
    reading |= {"drop": drop or (), "missing": missing or ()}
    about_formulas: dict[str, object] = {"target": target, "operators": operators, "errors": errors, "ties": ties}
    about_formulas |= {"rates": rates, "consistency": consistency, "cases": cases, "assume": assume}
    written = (html, steps, svg, out, certificates)
    of_formulas = {**about_formulas, "svg": svg, "out": out, "steps": steps}
    stated = {"require": require, "forbid": forbid, "tiers": tiers, "order": order, "max-parents-of": max_parents_of}
    of_networks = {"best": best, "iss": iss, **stated, "knowledge": knowledge, "effect": effect}
    of_networks |= {"seconds": seconds, "search": search, "export": export}
    of_other_mode = of_networks if score is None else of_formulas
    _refuse(of_other_mode, prior, score, lacks_rates=rates is None, lacks_graph=bool(fail_on and not graph))
    if score is None:
        chosen = {**about_formulas, "roots": roots, "max_parents": max_parents, "prior": prior, "graph": graph}
        formulas = cast("FormulaQuestion", {name: value for name, value in chosen.items() if value is not None})
        code = _print_fit(table, formulas, max_parents, gaps, reading, written, as_json=as_json, verbose=verbose)
        return code if graph is None or fail_on is not None else 0
    stated |= {"roots": roots, "max-parents": None if max_parents is None else str(max_parents)}
    question: NetworkQuestion = {"score": score, "k": best or 1, "graph": graph, "effect": effect, "is_search": search}
    question |= {"knowledge": _knowledge(stated, knowledge), **_options_given(iss, prior, seconds)}
    networks, is_judged = _learn(table, question, gaps, reading), fail_on is not None
    checks = _write_networks(networks, table, html, certificates)
    return _print_networks(networks, best or 1, export, checks, is_judged=is_judged, as_json=as_json, verbose=verbose)


def _options_given(iss: float | None, prior: str | None, seconds: float | None) -> NetworkQuestion:
    """Return the given options; the others have their defaults."""
    question: NetworkQuestion = {}
    if iss is not None:
        question["iss"] = iss
    if prior is not None:
        question["prior"] = "orders" if prior == "orders" else "dags"
    if seconds is not None:
        question["seconds"] = seconds
    return question


def _refuse(
    options: Mapping[str, object], prior: str | None, score: str | None, *, lacks_rates: bool, lacks_graph: bool
) -> None:
    """Raise for options of the other mode, for a prior of it or without rates, and for --fail-on without a graph."""
    is_about_networks = score is not None
    if is_about_networks and options.get("assume") is not None:
        raise typer.BadParameter("it is about SCMs; with --score give the file as --knowledge", param_hint="--assume")
    reason = ABOUT_FORMULAS if is_about_networks else ABOUT_NETWORKS
    if not is_about_networks and options.get("export") is not None:
        raise typer.BadParameter(f"{ABOUT_NETWORKS}; {ARCS_OF_FORMULAS}", param_hint="--export")
    refuse_options({f"--{name}": value for name, value in options.items()}, reason)
    if prior is not None and is_about_networks != (prior in ("dags", "orders")):
        allowed = "dags or orders with --score, uniform or by_parents with --rates"
        raise typer.BadParameter(f"{prior} is of the other kind: {allowed}", param_hint="--prior")
    if prior is not None and not is_about_networks and lacks_rates:
        raise typer.BadParameter("uniform and by_parents are of an unknown rate: give --rates", param_hint="--prior")
    if lacks_graph:
        raise typer.BadParameter("it asks about a network: give --graph", param_hint="--fail-on")


def _print_fit(
    table: Path,
    question: FormulaQuestion,
    max_parents: int | None,
    gaps: Literal["complete", "drop"],
    reading: Mapping[str, Any],
    outputs: tuple[Path | None, bool, Path | None, Path | None, Path | None],
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    """Fit SCMs or formulas, print and write them.

    outputs: page, whether it is in steps, picture, pool, certificates
    """
    from calibrant.bench.commands import options
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.terminal import NextCommand, command_without_option, print_next, unused_path

    limit = MAX_TARGET_PARENTS if question.get("target") else MAX_PARENTS
    if max_parents is not None and not 1 <= max_parents <= limit:
        allowed = f"1 to {limit} are allowed without --score, with --target to {MAX_TARGET_PARENTS}"
        raise typer.BadParameter(allowed, param_hint="--max-parents")
    html, in_steps, svg, out, certificates = outputs
    refuse_steps_alone(html, steps=in_steps)
    if question.get("assume") is not None:
        refuse_options({"--certificates": certificates}, "a certificate states no assumption; take --assume away")
    page, steps = (None, html) if in_steps else (html, None)
    with options.progress_bar("fitting: ", options.QUICK_PACE) as listen:
        fitted = sole_provider(FITTING).fit(table, question, gaps=gaps, reading=reading, progress=listen)
    for note in fitted.write(table.name, html=page, steps=steps, svg=svg, out=out, certificates=certificates):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json_text(fitted.to_dict()))
    else:
        for line in fitted.lines(verbose=verbose):
            typer.echo(line)
        following = [*_checks(certificates, table)]
        # where nothing fits, other options go on without the assumption, which they do not take
        again = command_without_option(*WRITTEN, *(() if fitted.fits else ("--assume",)))
        following += [] if fitted.fits else [*_wider(fitted, max_parents)]
        following += [NextCommand((*again, *added), purpose) for added, purpose in fitted.suggestions]
        if fitted.suggestions and fitted.has_page and html is None:
            following.append(NextCommand((*again, "--html", unused_path("fit.html")), "a page, its rows marked"))
        print_next([*following, *(_next_commands(html, out, certificates) if fitted.fits and not following else ())])
    return 0 if fitted.fits else 1


def _checks(certificates: Path | None, table: Path) -> list[NextCommand]:
    """Return the command that checks the written certificates; [] if none were written."""
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.terminal import NextCommand

    files = [] if certificates is None else sole_provider(FITTING).claim_files(certificates)
    return [NextCommand(("verify", *files, table), "check the certificates")] if files else []


def _wider(fitted: FittedTable, max_parents: int | None) -> Iterator[NextCommand]:
    """Yield the command of the same fit in a wider class, if nothing fits and no rows contradict each other."""
    from calibrant.bench.terminal import NextCommand, command_without_option

    number = fitted.needed_parents or (max_parents or DEFAULT_PARENTS) + 1
    if number <= (MAX_TARGET_PARENTS if fitted.needed_parents else MAX_PARENTS) and fitted.may_fit_wider:
        again = command_without_option("--max-parents", *WRITTEN)
        yield NextCommand((*again, "--max-parents", number), "a wider class")


def _next_commands(html: Path | None, out: Path | None, certificates: Path | None) -> Iterator[NextCommand]:
    """Yield the commands to suggest after a fit."""
    from calibrant.bench.terminal import NextCommand, command_without, unused_path

    again = command_without(out, certificates)
    if html is None:
        yield NextCommand((*again, "--html", unused_path("why.html")), "what is open, drawn")
    if out is None:
        yield NextCommand((*again, "--out", unused_path("table.jsonl")), "as an item")
        return
    yield NextCommand(("audit", out), "count what fits")
    if written := sorted(certificates.glob("*.json"))[:1] if certificates is not None else []:
        yield NextCommand(("verify", *written, out), "check the certificate")


def _knowledge(stated: Mapping[str, Sequence[str] | str | None], file: Path | None) -> Knowledge:
    """Return the knowledge stated by options (name -> texts) and a file; errors name the option or the line."""
    from calibrant.dsl.knowledge import Knowledge, parse_statement, read_knowledge

    lines = [
        (word, text) for word, texts in stated.items() for text in ([texts] if isinstance(texts, str) else texts or ())
    ]
    knowledge = Knowledge(tuple(parse_statement(word, text, f"--{word} {text!r}") for word, text in lines))
    return knowledge if file is None else knowledge + read_knowledge(file, "--knowledge")


def _learn(
    table: Path, question: NetworkQuestion, gaps: Literal["complete", "drop"], reading: Mapping[str, Any]
) -> FittedNetworks:
    from calibrant.bench.commands import options
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import sole_provider

    def report(line: str) -> None:
        typer.echo(line, err=True)

    with options.progress_bar("fitting: ", options.QUICK_PACE) as listen:
        return sole_provider(FITTING).networks(
            table, question, gaps=gaps, reading=reading, progress=listen, report=report
        )


def _write_networks(
    networks: FittedNetworks, table: Path, html: Path | None, certificates: Path | None
) -> list[NextCommand]:
    """Write a page and certificates; return the command that checks these."""
    if html is not None:
        networks.write_page(table.name, html)
        typer.echo(f"page written to {html}", err=True)
    for note in () if certificates is None else networks.write_certificates(certificates):
        typer.echo(note, err=True)
    return _checks(certificates, table)


def _print_networks(
    networks: FittedNetworks,
    best: int,
    export: Path | None,
    checks: Sequence[NextCommand],
    *,
    is_judged: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Export and print networks; return exit code 1 if a graph is judged and others beat it."""
    from calibrant.bench.terminal import NextCommand, command_without_option, print_next

    if export is not None:
        networks.export(export)
    if as_json:
        typer.echo(json_text(networks.to_dict()))
        return int(is_judged and networks.refutes_graph)
    for line in networks.lines(verbose=verbose):
        typer.echo(line)
    again = command_without_option(*WRITTEN)
    more = [NextCommand((*again, "--best", FEW_NETWORKS), "the next best")] if best == 1 else []
    print_next([*checks, *more, NextCommand((*again, "--json"), "all figures")])
    return int(is_judged and networks.refutes_graph)
