"""Table 1 of the paper out of the released suites."""

from __future__ import annotations

import json

from calibrant.bench.causalab.paper import paper
from tests.support.commands import called
from tests.support.shared import shared_file


def test_all_printed_figures_of_table_1_come_out_of_the_released_suites() -> None:
    for nodes, graphs, *figures in paper().tables["1"].rows:
        path = shared_file(f"data/{nodes}nodes.jsonl", part="causalab")
        (row,) = json.loads(called("pool", "stats", path, "--json").stdout)
        keys = ("edge_mean", "edge_variance", "fork_mean", "collider_mean")
        assert [row["n"], *(f"{row[key]:.2f}" for key in keys)] == [int(graphs), *figures]
