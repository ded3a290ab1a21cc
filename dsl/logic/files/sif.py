"""Prior networks as SIF: `source sign target [target...]`, separated by any blanks; # begins a comment line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.files.text_input import check_name, read_text, split_lines
from calibrant.dsl.logic.prior import Edge

MAX_EDGES = 50_000  # `family` answers in 3 s; no class of more than 500 nodes between stimuli and readouts is counted
_GATE = re.compile(r"and[0-9]+", re.IGNORECASE | re.ASCII)
_SIGNS = {"1": 1, "-1": -1, "+1": 1}


def read_sif(path: Path) -> tuple[Edge, ...]:
    """Return the edges of a SIF file in its order, equal ones once; `PoolError` names the line of what is refused."""
    return parse_sif(read_text(path), path.name)


def parse_sif(text: str, file: str = "") -> tuple[Edge, ...]:
    """Return the edges of a SIF text, see `read_sif`."""
    edges: dict[Edge, None] = {}
    checked: set[str] = set()
    for number, line in enumerate(split_lines(text), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        where = f"line {number}"
        if len(fields) < 3:
            problem = f"{len(fields)} fields; expected, with blanks between: source sign target"
            raise PoolError(problem, file=file, instance=where)
        source, sign, targets = fields[0], fields[1], fields[2:]
        if sign not in _SIGNS:
            raise PoolError(f"sign {short_repr(sign)}; allowed: 1 or -1", file=file, instance=where)
        for target in targets:
            for name in (source, target):
                if name in checked:
                    continue
                check_name(name, file=file, where=where)
                if _GATE.fullmatch(name):
                    problem = f"{short_repr(name)} is a gate of a model; a prior network has edges between nodes only"
                    raise PoolError(problem, file=file, instance=where)
                checked.add(name)
            edges[Edge(source, _SIGNS[sign], target)] = None
        if len(edges) > MAX_EDGES:
            problem = f"over {MAX_EDGES:,} edges; keep those on paths from stimuli to readouts"
            raise PoolError(problem, file=file, instance=where)
    if not edges:
        raise PoolError("no edge; a line is: source sign target", file=file)
    return tuple(edges)


def sif_text(edges: Iterable[Edge]) -> str:
    """Return the edges as SIF, one a line."""
    return "".join(f"{edge.source}\t{edge.sign}\t{edge.target}\n" for edge in edges)
