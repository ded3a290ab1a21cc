"""The commands `family` and `network`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from calibrant.bench.commands.guard import READS, WRITES, WRITES_PAGE, Writes
from calibrant.bench.commands.options import AsJson, with_options
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT, METHOD, OUTPUT, VIEW
from calibrant.bench.terminal import json_text

if TYPE_CHECKING:
    from calibrant.bench.terminal import NextCommand
    from calibrant.dsl.networks.network import Comparison
    from calibrant.solvers.networks.network import BooleanNetwork


# --- Command: calibrant family ----------------------------------------------------------------------------------------
@with_options("family")
def family(
    prior: Annotated[Path, typer.Argument(metavar="PKN", help="Prior: SIF, table of edges, or network."), READS],
    data: Annotated[Path, typer.Argument(metavar="MIDAS", help="Measurements, MIDAS; or a CSV file of series."), READS],
    given: GivenOptions,
    next_: Annotated[
        bool, typer.Option("--next", help="Rank the candidates of the next experiment.", rich_help_panel=VIEW)
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="overclaimed|missing|outside",
            help="With --of: exit code 1 if the list is so; may be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write tables, networks and models into this folder.", rich_help_panel=OUTPUT
        ),
        Writes(("*.csv", "*.json", "*.jsonl", "*.bnet", "*.graphml", "*.dot")),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write a page: network, spectrum, predictions.", rich_help_panel=OUTPUT
        ),
        WRITES_PAGE,
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option(
            "--certificates",
            metavar="DIR",
            help="Write certificates, and the item to check them against.",
            rich_help_panel=OUTPUT,
        ),
        Writes(("*.claim.json", "item.jsonl")),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Count the logic models that fit a prior network and perturbation data: the family, exactly, with proof.

    First the class, the proven optimum, how many models are within --fit and --size of it, which edges all of them,
    some or none use, and the next experiment that is expected to leave the fewest. Series in which everything was
    observed (a CSV file with a column `series`) are counted gene by gene. Exit code 1 if the models are too many to
    count, or for --fail-on.
    """
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.pools.capabilities import FAILURES, FAMILIES
    from calibrant.bench.terminal import print_next

    strange = [kind for kind in fail_on or () if kind not in FAILURES]
    if strange:
        raise typer.BadParameter(f"{strange[0]!r} is none of {', '.join(FAILURES)}", param_hint="--fail-on")
    if fail_on and "listed" not in given.values:
        raise typer.BadParameter("it is about another tool's list: give --of", param_hint="--fail-on")
    counted = sole_provider(FAMILIES).count(prior, data, given)
    notes = list(counted.write(out=out, html=html, certificates=certificates))
    if as_json:
        typer.echo(json_text(counted.to_dict()))
    else:
        for line in counted.lines(ranks_candidates=next_):
            typer.echo(line)
    for line in (*notes, *(failures := counted.failures(fail_on or ()))):
        typer.echo(line, err=True)
    print_next([] if as_json or not (out or html or certificates) else _next_commands(out, html, certificates))
    return 0 if counted.is_counted and not failures else 1


def _next_commands(out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[NextCommand]:
    """Yield the commands to suggest after a count."""
    from calibrant.bench.terminal import NextCommand, command_without, unused_path

    if certificates is not None:
        yield NextCommand(("verify", certificates, certificates / "item.jsonl"), "check the certificates")
    elif html is not None:
        yield NextCommand((*command_without(out), "--certificates", unused_path("certificates")), "with proof")
    else:
        yield NextCommand((*command_without(out), "--html", unused_path("family.html")), "as a page")


# --- Command: calibrant network ---------------------------------------------------------------------------------------
MAX_LINES = 20
"""Lines of a list on a terminal; --json has all."""
OUTPUT_ENDINGS = (".bnet", ".xml", ".graphml")
FAILURES = ("declared", "inessential", "differ")
"""Kinds of --fail-on: refuted declared signs, named inputs without effect, two networks that differ."""


def network(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Network: bnet, booleannet, rules, aeon, SBML-qual, GINML. A second: compare."
        ),
        READS,
    ],
    stated_format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="Format of FILE. [default: by its content]", rich_help_panel=INPUT
        ),
    ] = None,
    names: Annotated[
        Literal["id", "name"], typer.Option("--names", help="Names of SBML species.", rich_help_panel=INPUT)
    ] = "id",
    clamp: Annotated[
        str | None,
        typer.Option(
            "--clamp", metavar="A=0,B=1", help="Attractors with nodes held at values.", rich_help_panel=METHOD
        ),
    ] = None,
    attractors: Annotated[
        bool,
        typer.Option("--attractors", help="Also fixed points and attractors, synchronous.", rich_help_panel=VIEW),
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="|".join(FAILURES),
            help="Exit code 1 if there is one; may be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the network as FILE.bnet, .xml (SBML-qual) or .graphml.",
            rich_help_panel=OUTPUT,
        ),
        WRITES,
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Read a published Boolean network: functions, proven signs, and what the file declares otherwise.

    With a second file: whether both are the same network, else the first row in which each common node differs.
    """
    from calibrant.bench.terminal import print_next
    from calibrant.dsl.atomic_write import write_atomically
    from calibrant.solvers.networks.network import read_network

    _check_options(files, out, fail_on or ())
    clamps = _parse_clamps(clamp or "") if attractors or clamp is not None else None
    read = [read_network(path, stated_format if index == 0 else None, names) for index, path in enumerate(files)]
    comparison = read[0].compare(read[1]) if len(read) > 1 else None
    if as_json:
        typer.echo(json_text(_document(read[0], comparison, clamps)))
    else:
        typer.echo("\n".join(_lines(read[0], files, comparison, clamps)))
    if out is not None:
        write_atomically(out, _written(read[0], out))
        typer.echo(f"network written to {out}", err=True)
    elif not as_json and len(files) == 1 and not read[0].unspecified:
        print_next(_next_of_network(files[0], read[0], is_reached=clamps is not None))
    return int(any(_fails(kind, read[0], comparison) for kind in fail_on or ()))


def _next_of_network(file: Path, network: BooleanNetwork, *, is_reached: bool) -> Iterator[NextCommand]:
    """Yield the commands to suggest for a network. is_reached: whether its attractors were printed."""
    from calibrant.bench.terminal import NextCommand, unused_path

    if not is_reached:
        held = ("--clamp", ",".join(f"{name}=1" for name in network.inputs)) if network.inputs else ()
        yield NextCommand(("network", file, "--attractors", *held), "what it reaches")
    ending, purpose = (".xml", "as SBML") if network.format == "bnet" else (".bnet", "as bnet")
    yield NextCommand(("network", file, "--out", unused_path(f"network{ending}")), purpose)


def _fails(kind: str, network: BooleanNetwork, comparison: Comparison | None) -> bool:
    """Return whether a network or a comparison has a failure of this kind (FAILURES)."""
    if kind == "differ":
        return comparison is not None and not comparison.is_equal
    return bool(network.declared if kind == "declared" else network.inessential)


def _check_options(files: Sequence[Path], out: Path | None, fail_on: Sequence[str]) -> None:
    """Raise `CalibrantError` for options that exclude each other."""
    if len(files) > 2:
        raise typer.BadParameter(f"{len(files)} files; one is shown, two are compared", param_hint="FILE")
    if out is not None and out.suffix.lower() not in OUTPUT_ENDINGS:
        raise typer.BadParameter(f"the ending is one of {', '.join(OUTPUT_ENDINGS)}", param_hint="--out")
    strange = next((kind for kind in fail_on if kind not in FAILURES), None)
    if strange is not None:
        raise typer.BadParameter(f"{strange!r} is none of {', '.join(FAILURES)}", param_hint="--fail-on")
    if "differ" in fail_on and len(files) < 2:
        raise typer.BadParameter("differ compares two files: give FILE2", param_hint="--fail-on")


def _parse_clamps(text: str) -> dict[str, int]:
    clamps: dict[str, int] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.rpartition("=")
        if not name.strip() or value.strip() not in ("0", "1"):
            raise typer.BadParameter(f"{part!r} is no clamp; write A=0,B=1", param_hint="--clamp")
        if clamps.setdefault(name.strip(), int(value)) != int(value):
            raise typer.BadParameter(f"{name.strip()!r} is held at 0 and at 1", param_hint="--clamp")
    return clamps


def _written(network: BooleanNetwork, out: Path) -> str:
    """Return the text of the output file, in the format of its suffix."""
    if out.suffix.lower() == ".bnet":
        return network.to_bnet()
    return network.to_sbml() if out.suffix.lower() == ".xml" else network.to_graphml()


def _document(network: BooleanNetwork, comparison: Comparison | None, clamps: Mapping[str, int] | None) -> Any:
    """Return everything, ready for JSON."""
    from calibrant.solvers.outcome import Found

    document = network.to_dict()
    if comparison is not None:
        document["comparison"] = {
            "equal": comparison.is_equal,
            "only_first": list(comparison.only_first),
            "only_second": list(comparison.only_second),
            "differences": [
                {"node": d.node, "row": dict(d.row), "first": d.first, "second": d.second}
                for d in comparison.differences
            ],
        }
    if clamps is not None:
        fixed_points, cycles = network.fixed_points(clamps), network.attractors(clamps)
        document["clamps"] = dict(clamps)
        document["fixed_points"] = (
            {"states": list(fixed_points.value.states), "complete": fixed_points.value.is_complete}
            if isinstance(fixed_points, Found)
            else str(fixed_points)
        )
        document["attractors"] = (
            [attractor._asdict() for attractor in cycles.value] if isinstance(cycles, Found) else str(cycles)
        )
    return document


def _lines(
    network: BooleanNetwork,
    files: Sequence[Path],
    comparison: Comparison | None,
    clamps: Mapping[str, int] | None,
) -> Iterator[str]:
    """Yield the lines of the terminal."""
    from calibrant.dsl.networks.network import edge_list_note, first_names, read_file
    from calibrant.dsl.text import plural

    edges = [*network.edges()]
    signs = ", ".join(f"{sum(e.sign == sign for e in edges):,} {sign}" for sign in ("+", "-", "both"))
    yield f"file         {files[0].name}: {network.format}"
    yield f"network      {plural(len(network.nodes), 'nodes')}, {plural(len(edges), 'edges')} ({signs})"
    for title, listed in (
        ("inputs", network.inputs),
        ("no rule", network.no_rule),
        ("unspecified", network.unspecified),
        ("start", [f"{name} = {value}" for name, value in sorted(network.start.items())]),
        ("notes", [NOTES[word] for word in network.notes]),
        ("note", [note for note in [edge_list_note(read_file(files[0]), files[0], network)] if note]),
    ):
        if listed:
            yield f"{title:<12} {first_names(listed)}"
    yield from _some("check", _marked_names(network))
    yield from _some("inessential", [f"{', '.join(names)} in {node}" for node, names in network.inessential.items()])
    yield from _some(
        "declared", [line for contradiction in network.declared for line in _proof(network, contradiction)]
    )
    if comparison is not None:
        yield from _comparison_lines(comparison, files)
    elif clamps is None:
        yield ""
        yield from _some("", _functions(network))
    if clamps is not None:
        yield from _dynamics_lines(network, clamps)


def _marked_names(network: BooleanNetwork) -> list[str]:
    """Return a line for each name without a rule that is another node's with marks around it, as of another syntax."""
    bare = {name: re.sub(r"^\W+|\W+$", "", name) for name in network.no_rule}
    return [
        f"{name} has no rule and is a node of its own, beside {node}; the marks are no operators of {network.format}"
        for name, node in bare.items()
        if node != name and node in network.nodes
    ]


NOTES: Mapping[str, str] = {
    "true-false": "true and false are constants, since no target has that name",
    "ranks": "ranks are dropped: all nodes are updated together",
    "random-start": "random starts are dropped",
    "case": "some names differ by case only",
    "input-with-function": "functions of nodes that the file calls inputs are dropped",
}
"""Kind of a note of the parser -> line."""


def _some(title: str, listed: Sequence[str]) -> Iterator[str]:
    """Yield the first MAX_LINES lines of a list, and the number of the others."""
    for index, line in enumerate(listed[:MAX_LINES]):
        yield f"{title if index == 0 else '':<12} {line}" if title else line
    if len(listed) > MAX_LINES:
        yield f"{'':<12} ... and {len(listed) - MAX_LINES:,} more; all with --json"


def _functions(network: BooleanNetwork) -> list[str]:
    """Return the functions as lines of bnet, without comments and header."""
    if network.unspecified:
        return []
    lines = network.to_bnet().splitlines()
    return lines[lines.index("targets, factors") + 1 :]


def _proof(network: BooleanNetwork, contradiction: tuple[str, str, str, str]) -> Iterator[str]:
    """Yield lines on a refuted declared sign, with the rows that refute it."""
    source, target, declared, proven = contradiction
    stated = f"is declared {declared}" if declared else "is not declared"
    yield f"{source} of {target} {stated} and is {proven}"
    function = network.functions[target]
    if function.table is None:
        return
    for rows in function.steps(source).values():
        others = ", ".join(f"{name} = {value}" for name, value in rows[0].items() if name != source)
        values = [function.value(row) for row in rows]
        yield f"  {source} = 0: {values[0]}, {source} = 1: {values[1]}" + (f", with {others}" if others else "")


def _comparison_lines(comparison: Comparison, files: Sequence[Path]) -> Iterator[str]:
    from calibrant.dsl.networks.network import first_names

    yield f"compared     {'the same network' if comparison.is_equal else 'different networks'}: {files[1].name}"
    for path, names in zip(files, (comparison.only_first, comparison.only_second), strict=True):
        if names:
            yield f"{'':<12} only in {path.name}: {first_names(names)}"
    lines = []
    for difference in comparison.differences:
        row = ", ".join(f"{name} = {value}" for name, value in difference.row.items()) or "always"
        lines.append(f"{difference.node}: {difference.first} and {difference.second} for {row}")
    yield from _some("differs", lines)


def _dynamics_lines(network: BooleanNetwork, clamps: Mapping[str, int]) -> Iterator[str]:
    from calibrant.dsl.networks.network import first_names
    from calibrant.solvers.outcome import Found

    held = ", ".join(f"{name} = {value}" for name, value in sorted(clamps.items()))
    yield (
        f"dynamics     synchronous{', ' + held if held else ''}; states over {', '.join(network.nodes[:MAX_LINES])}"
        + (", ..." if len(network.nodes) > MAX_LINES else "")
    )
    fixed_points, cycles = network.fixed_points(clamps), network.attractors(clamps)
    if isinstance(fixed_points, Found):
        states, is_complete = fixed_points.value.states, fixed_points.value.is_complete
        yield f"fixed points {len(states):,}{'' if is_complete else ', and there are more'}"
        if not isinstance(cycles, Found):
            yield from _some("", list(states))
    else:
        yield f"fixed points {fixed_points}"
    if not isinstance(cycles, Found):
        yield f"attractors   not counted: {cycles.reached}"
        return
    yield f"attractors   {len(cycles.value):,}: period, basin, least state, nodes that are 1 in it"
    rows = []
    for entry in cycles.value:
        on = first_names([name for name, bit in zip(network.nodes, entry.state, strict=True) if bit == "1"])
        rows.append(f"{entry.period:>8} {entry.basin:>8}  {entry.state}  {on}".rstrip())
    yield from _some("", rows)
