"""The commands `protocols`, `schema` and `bench`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from calibrant.bench.commands.guard import guard_paths
from calibrant.bench.commands.options import AsJson, OfBenchmark
from calibrant.bench.core.names import FIRST
from calibrant.bench.help import ITEMS, METHOD, GroupedOptions, epilog
from calibrant.bench.terminal import json_text

if TYPE_CHECKING:
    from calibrant.bench.protocols import Protocols


# --- Command `calibrant protocols` ------------------------------------------------------------------------------------
def protocols(
    protocol: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROTOCOL]",
            help="Only these, as for `calibrant run`: names with commas between them, FILE.py or FILE.py:CLASS.",
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark", metavar="NAME", help="Only the protocols of this benchmark.", rich_help_panel=ITEMS
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the solvers that `calibrant run` knows, by benchmark, with their options: defaults and meanings.

    Those of installed packages (entry points of the group calibrant.protocols) say which package they are of.
    """
    from calibrant.bench.core.registry import benchmark as named
    from calibrant.bench.core.registry import benchmarks
    from calibrant.bench.protocols import left_out, protocols_of, with_installed

    chosen = benchmarks() if benchmark is None else [named(benchmark)]
    by_benchmark = {declared.title: with_installed(protocols_of(declared), declared.name) for declared in chosen}
    of_name = {declared.title: declared.name for declared in chosen}
    names = [name.strip() for name in (protocol or "all").split(",")]
    protocol_by_name = {name: row for listed in reversed(by_benchmark.values()) for name, row in listed.items()}
    listed = _describe_chosen(names, by_benchmark, of_name)
    if as_json:
        typer.echo(json_text(listed))
        return
    title = ""
    for description in listed:
        if description.get("benchmark", title) != title:
            title = description["benchmark"]
            typer.echo(f"[{title}]")
        typer.echo(
            f"{description['name']}: {description['says']}"
            + (f" [{description['code']}]" if "code" in description else "")
        )
        for name, value in description["options"].items():
            meaning = description["meanings"].get(name)
            typer.echo(f"    {name}={json.dumps(value)}" + (f"  {meaning}" if meaning else ""))
        if not description["options"]:
            typer.echo("    no options")
        if description["missing"]:
            typer.echo(f"    {description['missing']}")
    for name, why in left_out(protocol_by_name).items() if names == ["all"] else ():
        if name not in protocol_by_name:
            typer.echo(f"{name}: {why}", err=True)


def _describe_chosen(
    names: Sequence[str], by_title: Mapping[str, Protocols], of_name: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the descriptions of the protocols of these names, by benchmark; those of files last.

    of_name: title of a benchmark -> its name
    """
    from calibrant.bench.protocols import describe_protocol, is_file, load_file, protocol_class

    protocol_by_name = {name: row for rows in by_title.values() for name, row in rows.items()}
    requested = {*protocol_by_name} if names == ["all"] else {*names}
    listed = [
        describe_protocol(row) | {"benchmark": title}
        for title, rows in by_title.items()
        for name, row in rows.items()
        if name in requested
    ]
    for name in dict.fromkeys(names):
        if name in protocol_by_name or names == ["all"]:
            continue
        if not is_file(name):
            protocol_class(protocol_by_name, name)  # raises for an unknown name, listing the known ones
        protocol = load_file(name, ())
        answered = [rows for title, rows in by_title.items() if protocol.benchmark in ("", of_name[title])]
        if answered and all(protocol.name in rows for rows in answered):
            load_file(name, answered[0])  # raises if the name is taken in a benchmark that it could run on
        listed.append(describe_protocol(protocol))
    return listed


# --- Command: calibrant schema ----------------------------------------------------------------------------------------
def schema(
    name: Annotated[
        Literal["records", "verdicts", "audits", "certificates", "pools", "training"],
        typer.Argument(help="Which kind of file."),
    ],
    benchmark: OfBenchmark = FIRST,
) -> None:
    """Print the JSON Schema of a kind of file, every field with its meaning.

    records: what `run` writes; verdicts: what `score` writes; audits and certificates: what `audit` writes; pools:
    native pool files; training: what `training` writes, of CauSim alone. Those of records are the same for every
    benchmark. All but certificates, and findings of audits, are JSON lines, and the schema is of one line.
    """
    from calibrant.bench.schemas import SCHEMAS

    typer.echo(json_text(SCHEMAS[name](benchmark)))


# --- Command `calibrant bench evaluator`: a short measurement on this machine -----------------------------------------
bench_app = typer.Typer(help="Measure speed on this machine.")


@bench_app.callback()
def bench() -> None:
    """Measure speed on this machine."""


@bench_app.command(cls=GroupedOptions, epilog=epilog("bench evaluator"))
@guard_paths
def evaluator(
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Wall seconds to measure, without compiling.", rich_help_panel=METHOD)
    ] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Measure the evaluator of candidate SCMs beside Python integers and NumPy, as a ratio in one process.

    10,000 candidates of a bundled item of ten variables; their mistakes are counted in processor time, in turns. That
    all ways count the same is checked first.
    """
    from calibrant.bench.core.capabilities import EVALUATOR_RATES
    from calibrant.bench.core.registry import sole_provider

    measured = sole_provider(EVALUATOR_RATES)(seconds)
    typer.echo(json_text(measured.to_dict()) if as_json else measured.text())
