"""Programs that a reader of docs/causim.md has from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from calibrant.dsl.causim import networks
from tests.support.commands import called

LAYERED_NODES = 20


def write_layered_programs(path: Path) -> None:
    """Write a line with a layered program."""
    with TemporaryDirectory() as folder:
        _, item, *_ = _generate(Path(folder), "layered", LAYERED_NODES).read_text(encoding="utf-8").splitlines()
    line = json.dumps({"id": "drafted", "source": json.loads(item)["program"]})
    path.write_text(f"{line}\n", encoding="utf-8")


def write_score_program(path: Path) -> None:
    """Write the stroke scale with another name for its total."""
    path.write_text(networks.program(networks.MAX_NODES).replace(networks.TOTAL, "score"), encoding="utf-8")


def write_state(path: Path) -> None:
    """Write a state file of one tree."""
    with TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        assert called("pool", "unpack", _generate(Path(folder), "tree", 4), unpacked).returncode == 0
        path.write_bytes((unpacked / "state.json").read_bytes())


def _generate(folder: Path, topology: str, num_nodes: int) -> Path:
    """Return a pool about one program."""
    pool = folder / "generated.jsonl"
    line = ("generate", "--benchmark", "causim", "--strata", topology, "--seed", 1, "--out", pool)
    plan = ("-o", "programs=1", "-o", f"versions={num_nodes}", "-o", "each=1")
    assert called(*line, *plan).returncode == 0
    return pool
