"""Families straight from files: a prior network as SIF and perturbation data as MIDAS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from calibrant.dsl.errors import CalibrantError, PoolError, RefusedError
from calibrant.dsl.logic.files.midas import Dataset, Normalisation, Times, read_midas
from calibrant.dsl.logic.files.networks import check_name
from calibrant.dsl.logic.item import Edge, Options, Task, Tolerance, node_names
from calibrant.dsl.logic.prompt import MAX_LISTED_NAMES
from calibrant.dsl.networks.edge_tables import SIGNS_ARE_STATED, StatedSign, is_edge_table, parse_edges
from calibrant.dsl.networks.network import add_kind, edge_list_note, first_names, recognize
from calibrant.dsl.parse_limits import decode_text, read_bytes
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits
from calibrant.solvers.networks.network import parse_network
from calibrant.solvers.outcome import Found, OutOfBudget

USUAL_OPTIONS = Options()


def read_data(
    pkn: Path | str,
    midas: Path | str,
    time: Times | None = None,
    *,
    fit: str = "0",
    size: int | None = 0,
    options: Options = USUAL_OPTIONS,
    normalise: Normalisation | None = None,
    cell_line: str | None = None,
    sign: StatedSign | None = None,
) -> tuple[Task, Dataset]:
    """Return the task of two files, and the data read; `PoolError` states file, place and problem.

    time: time of the measurements, None if there is only one; fit, size: tolerances, see `Tolerance`
    normalise, cell_line: see `read_midas`; sign: see `read_prior`
    """
    prior, notes = read_prior(Path(pkn), sign)
    try:
        data = read_midas(Path(midas), time, prior, normalise, cell_line)
    except RefusedError as error:
        raise add_kind(error, read_bytes(Path(midas)), ("MIDAS", "a table of series")) from None
    data = replace(data, notes=(*notes, *data.notes))
    try:
        task = Task(prior, data.setup, data.experiments, data.values, options, Tolerance(fit, size))
    except PoolError:
        raise
    except CalibrantError as error:
        raise PoolError(str(error), file=Path(midas).name) from None
    _require_match(task, Path(pkn).name, Path(midas).name)
    return task, data


def read_prior(path: Path, sign: StatedSign | None = None) -> tuple[tuple[Edge, ...], tuple[str, ...]]:
    """Return the edges of a prior, and notes; the file is SIF, a table of edges with a head, or any network.

    sign: `both` makes two edges of each line of a table without a column of signs

    The edges of a network are its essential dependencies with proven signs; for a node without a function, those that
    the file declares.
    """
    content = read_bytes(path)
    text = "" if content.startswith((b"<", b"PK")) else decode_text(content, path.name)
    if (text and is_edge_table(text)) or not recognize(content, path.name):
        try:
            table = parse_edges(text or decode_text(content, path.name), path.name, sign)
        except RefusedError as error:
            raise add_kind(error, content, ("a prior network", "a table of edges")) from None
        return tuple(Edge(*edge) for edge in table.edges), tuple(_pair_note([*table.open_pairs]))
    if sign is not None:
        raise PoolError(SIGNS_ARE_STATED, file=path.name)
    network = parse_network(content, path.name)
    # a rule `v, v` makes v an input, as a missing rule does: no edge
    edges_of_rules = (
        edge for edge in network.edges() if edge.source != edge.target or edge.source not in network.inputs
    )
    signed = [(edge.source, edge.sign, edge.target) for edge in edges_of_rules]
    signed += [
        (source, _DECLARED.get(word, "both"), target)
        for (source, target), word in network.declared_edges.items()
        if target in network.unspecified
    ]
    for name in {name for source, _, target in signed for name in (source, target)}:
        check_name(name, file=path.name, where="")
    edges = [Edge(source, sign, target) for source, word, target in signed for sign in _SIGNS[word]]
    notes = [*_pair_note([(source, target) for source, word, target in signed if word == "both"])]
    dropped = [f"{name} in {target}" for target, names in network.inessential.items() for name in names]
    if dropped:
        notes.append(f"edges of the prior that change nothing, left out: {first_names(dropped)}")
    notes += [note for note in [edge_list_note(content, path, network)] if note]
    if not edges:
        raise PoolError("a network without an edge", file=path.name)
    return tuple(dict.fromkeys(edges)), tuple(notes)


_SIGNS = {"+": (1,), "-": (-1,), "both": (1, -1)}
_DECLARED = {"->": "+", "->?": "+", "-|": "-", "-|?": "-", "positive": "+", "negative": "-"}
"""Word of a file -> sign; any other word means either sign."""


def _pair_note(pairs: list[tuple[str, str]]) -> Iterator[str]:
    if pairs:
        yield f"edges of either sign, read as two: {first_names([f'{source} {target}' for source, target in pairs])}"


def _require_match(task: Task, prior_file: str, data_file: str) -> None:
    """Raise `PoolError` for a prior without an edge of the class, or without a stimulus or readout of the data."""
    names = node_names(task.prior)
    if not task.setup.stimuli:
        raise PoolError("no stimulus; a column TR:X of 0 and 1 is one", file=data_file)
    for role, role_names in (("stimulus", task.setup.stimuli), ("readout", task.setup.readouts)):
        if not names & set(role_names):
            examples = ", ".join(role_names[:MAX_LISTED_NAMES])
            problem = (
                f"no {role} of {data_file} is a node of the prior ({examples}); names must be equal, case included"
            )
            problem += f"; the prior has {', '.join(sorted(names)[:MAX_LISTED_NAMES])}"
            raise PoolError(problem, file=prior_file)
    if not task.edges:
        problem = f"no edge is left between stimuli and readouts of {data_file}: every model is empty"
        raise PoolError(problem, file=prior_file)


def logic_family(
    pkn: Path | str,
    midas: Path | str,
    time: Times | None = None,
    fit: str | float = "0",
    size: int | None = 0,
    *,
    options: Options = USUAL_OPTIONS,
    limits: Limits = USUAL_LIMITS,
    normalise: Normalisation | None = None,
    cell_line: str | None = None,
    sign: StatedSign | None = None,
) -> Found[LogicFamily] | OutOfBudget:
    """Return the family of two files, counted exactly; see `read_data` and `LogicFamily`."""
    task, _ = read_data(
        pkn, midas, time, fit=str(fit), size=size, options=options, normalise=normalise, cell_line=cell_line, sign=sign
    )
    return solve_family(task, limits)
