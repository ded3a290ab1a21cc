"""Folders of published networks, and connected parts of the networks, of which items are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple

from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.networks.formulas import Function, NetworkError, require_table
from calibrant.dsl.networks.text_formats import unique_ids
from calibrant.dsl.text import plural
from calibrant.solvers.networks.cut import least_feedback_set, propagate_constants
from calibrant.solvers.networks.network import BooleanNetwork, read_network

# --- Folders of published networks: each file is read or refused, and files with equal functions count once -----------
MAX_FILES = 10_000  # files of one folder
MAX_LINES = 20  # refused files that the terminal lists


@dataclass(frozen=True)
class NetworkFolder:
    """The networks of a folder.

    networks: digest -> network, sorted by digest; of files with equal functions, the first by path
    refusals: (path in the folder, reason) of every other file; repeats: (path, path of the file with equal functions)
    """

    networks: Mapping[str, BooleanNetwork]
    refusals: Sequence[tuple[str, str]]
    repeats: Sequence[tuple[str, str]]

    def lines(self) -> Iterator[str]:
        """Yield a line on what was read, then one on each of the first MAX_LINES files that were refused."""
        yield f"{plural(len(self.networks), 'networks')}; files with equal functions: {len(self.repeats):,}"
        for path, reason in self.refusals[:MAX_LINES]:
            yield f"not used: {path}: {reason}"
        if len(self.refusals) > MAX_LINES:
            yield f"not used: {len(self.refusals) - MAX_LINES:,} more files; `calibrant network FILE` gives the reason"


def read_folder(folder: Path) -> NetworkFolder:
    """Return the networks in a folder and the folders below it that have a table for each function.

    Raise `NetworkError` for a path that is no folder, for too many files, and if no file is such a network.
    """
    if not folder.is_dir():
        raise NetworkError(f"{folder} is no folder of network files", reason="unreadable")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if len(paths) > MAX_FILES:
        raise NetworkError(f"{folder}: {len(paths):,} files; at most {MAX_FILES:,} are read", reason="too-large")
    networks: dict[str, BooleanNetwork] = {}
    files: dict[str, str] = {}
    refusals: list[tuple[str, str]] = []
    repeats: list[tuple[str, str]] = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            network = _with_tables(read_network(path))
        except (NetworkError, PoolError) as error:
            refusals.append((name, str(error).removeprefix(f"{path.name}: ")))
            continue
        if network.digest in networks:
            repeats.append((name, files[network.digest]))
        else:
            networks[network.digest], files[network.digest] = network, name
    if not networks:
        reason = f"; {refusals[0][0]}: {refusals[0][1]}" if refusals else ""
        raise NetworkError(f"{folder}: no file is a network that can be used{reason}", reason="empty")
    return NetworkFolder(dict(sorted(networks.items())), tuple(refusals), tuple(repeats))


def _with_tables(network: BooleanNetwork) -> BooleanNetwork:
    """Return the network itself; raise `NetworkError` if a function is missing or too wide for a table."""
    network.require_functions()
    for name, function in network.functions.items():
        require_table(name, function)
    return network


# --- Connected parts of published networks that items are made of, grown from a seeded start --------------------------
NODES = {8: (3, 8), 15: (9, 15), 30: (16, 30)}  # n in a stratum's name -> bounds of a window's nodes, roots included
IN_DEGREES = {2: (1, 2), 4: (3, 4), 6: (5, 6)}  # k in a stratum's name -> bounds of a window's greatest in-degree
MAX_WINDOWS = 200  # windows drawn for one item before its stratum counts as unreachable
_VALID_NAME = re.compile(r"(?!(?:not|and|or|xor|iff|if)\Z)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class WindowSize(NamedTuple):
    """The windows of a stratum: bounds of the number of nodes and of the greatest in-degree, all inclusive."""

    name: str
    nodes: tuple[int, int]
    in_degree: tuple[int, int]


def window_sizes(prefix: str) -> list[WindowSize]:
    """Return the sizes of all strata; their names start with the prefix, as in `network_n8_k2`."""
    return [
        WindowSize(f"{prefix}_n{number}_k{degree}", nodes, in_degree)
        for number, nodes in NODES.items()
        for degree, in_degree in IN_DEGREES.items()
    ]


class UnreachableStratumError(Exception):
    """None of the MAX_WINDOWS windows that were drawn belongs to the stratum."""


@dataclass(frozen=True)
class Source:
    """A network that windows are drawn from; constant nodes are substituted and cannot be drawn."""

    network: BooleanNetwork

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions that are not constant, with constant inputs substituted."""
        return propagate_constants(self.network)[0]

    @cached_property
    def dependent(self) -> Sequence[str]:
        """The nodes that are not inputs of their own functions, sorted."""
        return sorted(name for name, function in self.functions.items() if name not in function.inputs)

    @cached_property
    def feedback(self) -> tuple[int, bool]:
        """Size of the feedback set of the whole network, and whether it is proven least."""
        inner = {name: f for name, f in self.functions.items() if not f.is_identity(name)}
        chosen, is_least = least_feedback_set({n: [s for s in f.inputs if s in inner] for n, f in inner.items()})
        return len(chosen), is_least

    def labels(self, names: Sequence[str], chosen: Sequence[str]) -> dict[str, str]:
        """Return properties of a window and its network, each computed exactly, as texts.

        names: all variables of the window, in neutral order; chosen: those with their functions in it
        """
        functions = [self.functions[name] for name in chosen]
        signs = [sign for function in functions for sign in function.signs]
        size, is_least = self.feedback
        return {
            "latent": f"network-{self.network.digest[:16]}",  # shared by items: intervals are clustered by it
            "names": " ".join(valid_names(names)),
            "in_degree": str(max(len(function.inputs) for function in functions)),
            "essential_inputs": str(len(signs)),
            "both_edges": f"{signs.count('both') / len(signs):.3f}",
            "feedback": str(size) if is_least else f"at most {size}",
        }


@cache
def read_sources(folder: Path, digests: tuple[str, ...]) -> tuple[Source, ...]:
    """Return the networks of a folder; `CalibrantError` if a file changed since the digests were taken."""
    networks = read_folder(folder).networks
    if tuple(networks) != digests:
        raise CalibrantError(f"{folder}: a file changed while items were made; run the same command again")
    return tuple(map(Source, networks.values()))


def valid_names(names: Sequence[str]) -> list[str]:
    """Return distinct names of DSL variables: other characters become `_`, and equal names get a number."""
    ids = unique_ids(names, "A-Za-z0-9_", is_valid=_VALID_NAME)
    return [ids[name] for name in names]


def grow_window(
    functions: Mapping[str, Function],
    candidates: Sequence[str],
    size: int,
    rng: Random,
    *,
    allows: Callable[[Sequence[str]], bool],
) -> list[str]:
    """Return up to `size` nodes that are joined by edges.

    candidates: nodes that may be among them; allows: whether a window may consist of the given nodes
    """
    allowed = set(candidates)
    children: dict[str, set[str]] = {}
    for name in candidates:
        for source in functions[name].inputs:
            children.setdefault(source, set()).add(name)
    chosen = [rng.choice(candidates)]
    refused: set[str] = set()
    while len(chosen) < size:
        neighbours = {n for name in chosen for n in (*functions[name].inputs, *children.get(name, ()))} & allowed
        open_names = sorted(neighbours - refused - set(chosen))
        if not open_names:
            break
        name = rng.choice(open_names)
        if allows([*chosen, name]):
            chosen.append(name)
        else:
            refused.add(name)
    return chosen


def window_variables(functions: Mapping[str, Function], chosen: Sequence[str]) -> set[str]:
    """Return the nodes of a window and the inputs of their functions."""
    return {*chosen, *(source for name in chosen for source in functions[name].inputs)}
