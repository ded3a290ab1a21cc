"""Files of Boolean networks and edge tables, damaged, in every format that is read.

Whatever the bytes, the outcome is a network or one line, in MAX_SECONDS of processor time and MAX_BYTES. A network that
is read is written as bnet and SBML and read again, and is the same; its edges are those of the networkx graph.
"""

from __future__ import annotations

import io
import random
import resource
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.networks.edge_tables import parse_edges
from calibrant.solvers.networks.network import BooleanNetwork, parse_network
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.oracles.independent import require

MAX_SECONDS = 5.0
MAX_BYTES = 1 << 30
TEXTS = {
    "bnet": "targets, factors\n# a comment\na, b & !(c | d)\nb, maj(a, c, d)\nc, 1\ne.f, sumgt(a, b, c, 1) # more\n",
    "booleannet": "A = B = True\nC = Random\n1: A *= B and not Ca2+\n2: B *= A or (C & ~IL-2)\n",
    "rules": "Akt = ErbB2 AND (NOT PTEN)\nPTEN = PTEN\nErbB2 = Akt OR true\n",
    "aeon": "#position:a:1,2\na -> c\nb -| c\nc -?? a\nb ->? b\n$c: a ^ !b => (a <=> b)\n$a: true\n$b: b\n",
    "ginml": (
        '<gxl><graph class="regulatory"><node id="A" input="true"/><node id="B" basevalue="0"><value val="1">'
        '<exp str="!A | C:1"/></value></node><node id="C"><parameter idActiveInteractions="e" val="1"/></node>'
        '<edge id="e" from="B" to="C" sign="positive"/><edge id="f" from="A" to="B" sign="negative"/></graph></gxl>'
    ),
    "edges": "source\ttarget\tmode\na\tb\tactivation\nb\tc\tinhibits\nc\ta\tdual\na\tc\t-1\n",
    "sif": "a 1 b c\nb -1 c\nc + a\n",
}
TEXTS["sbml-qual"] = parse_network(b"a, b & !c\nb, !a | c\nc, 1\n").to_sbml()


def case(rng: random.Random) -> str:
    """Read one damaged file; the outcome tells the format and what became of it."""
    name = rng.choice([*TEXTS, "zginml"])
    text = TEXTS["ginml" if name == "zginml" else name]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        text = rng.choice([*CHARACTER_DAMAGE, *LINE_DAMAGE])(rng, text)
    if rng.random() < 0.1:
        text = text.replace("\n", rng.choice(["\r", "\r\n"]))
    content = text.encode("utf-8", "surrogatepass")
    if name == "zginml":
        content = _zipped(content)
    if rng.random() < 0.1:
        content = _damage_bytes(rng, content)
    started = time.process_time()
    try:
        with bounded_memory(MAX_BYTES):
            outcome = _read(rng, name, content)
    except CalibrantError as error:
        message = str(error)
        require(isinstance(error, PoolError), f"{type(error).__name__} names no file")
        require(message.isprintable() and len(message) < 2_000, f"a refusal of several lines: {message[:200]!r}")
        outcome = "refused"
    seconds = time.process_time() - started
    require(seconds < MAX_SECONDS, f"{seconds:.1f} s")
    return f"{name} {outcome}"


@contextmanager
def bounded_memory(num_bytes: int) -> Iterator[None]:
    """Let the address space of the process grow by so many bytes; beyond, there is a `MemoryError`."""
    num_pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (num_pages * resource.getpagesize() + num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _read(rng: random.Random, name: str, content: bytes) -> str:
    if name in ("edges", "sif"):
        parse_edges(content.decode("utf-8", "replace"), "x.txt")
        return "read"
    network = parse_network(content, "x", rng.choice([None, name]), rng.choice(["id", "id", "name"]))
    if network.unspecified:
        return "read as a prior"
    _require_same(parse_network(network.to_bnet().encode()), network, ids=True)
    _require_same(parse_network(network.to_sbml().encode(), names="name"), network, ids=False)
    graph = network.to_networkx()
    require(sorted(graph.edges(data="sign")) == sorted(map(tuple, network.edges())), "other edges in networkx")
    return "read"


def _require_same(again: BooleanNetwork, network: BooleanNetwork, *, ids: bool) -> None:
    """Require equal networks; ids: names that bnet lacks are written otherwise, so only numbers are compared then."""
    if again.nodes == network.nodes:
        require(again.compare(network).is_equal, "another network is read back")
    else:
        require(ids and len(again.nodes) == len(network.nodes), "other nodes are read back")


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("GINsim-data/regulatoryGraph.ginml", content)
    return buffer.getvalue()


def _damage_bytes(rng: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if damaged:
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged[: rng.randrange(len(damaged) + 1)]) if rng.random() < 0.2 else bytes(damaged)
