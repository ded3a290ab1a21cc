"""Figures of the CauSim paper, from made-up questions."""

from __future__ import annotations

from calibrant.bench.causim.paper import Asked, Level, paper_tables
from calibrant.bench.causim.report import causim_figures


def test_causim_draws_a_panel_for_each_kind_with_rows_of_ours() -> None:
    asked = [Asked("s", "intervention", "deterministic", Level("chain", n), 1.0, "code") for n in (2, 4)]
    plots = {plot.name: plot.svg for plot in causim_figures(paper_tables(asked))}
    assert "Table 4: intervention questions" in plots["causim-nodes-3-4"]
    assert "Table 3:" not in plots["causim-nodes-3-4"]  # counterfactual questions: none of ours
    assert list(causim_figures(paper_tables())) == []
