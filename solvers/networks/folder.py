"""Folders of published networks: every file is read or refused by name, and files of one network are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.dsl.errors import PoolError
from calibrant.dsl.networks.formulas import NetworkError
from calibrant.solvers.networks.network import BooleanNetwork, read_network

MAX_FILES = 10_000
MAX_LINES = 20  # lines of refused files on the terminal


@dataclass(frozen=True)
class NetworkFolder:
    """The networks of a folder.

    networks: digest -> network, in the order of digests; of several files with equal functions the first by path
    refusals: (path in the folder, reason) of every other file; repeats: (path, path of the file with equal functions)
    """

    networks: Mapping[str, BooleanNetwork]
    refusals: Sequence[tuple[str, str]]
    repeats: Sequence[tuple[str, str]]

    def lines(self) -> Iterator[str]:
        """Yield a line on what was read, then one on each file that was not."""
        yield f"{len(self.networks):,} networks; files with equal functions: {len(self.repeats):,}"
        for path, reason in self.refusals[:MAX_LINES]:
            yield f"not used: {path}: {reason}"
        if len(self.refusals) > MAX_LINES:
            yield f"not used: {len(self.refusals) - MAX_LINES:,} more files; `calibrant network FILE` gives the reason"


def read_folder(folder: Path) -> NetworkFolder:
    """Return the networks of a folder and those below it that have a table for each function.

    `NetworkError` for a path that is no folder, for too many files, and where no file is a network
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
    """Return a network; `NetworkError` if a function is open or too wide for a table."""
    network.require_functions()
    for name, function in network.functions.items():
        if function.table is None:
            problem = f"{name} has {len(function.inputs)} inputs and no table"
            raise NetworkError(problem, reason="wide", name=name)
    return network
