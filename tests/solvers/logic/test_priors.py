"""Priors of a family: SIF, tables of edges, and networks of any format, with what was left out or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.dsl.errors import PoolError
from calibrant.solvers.logic.data import logic_family, read_data, read_prior
from calibrant.solvers.outcome import Found

EDGES = {("a", 1, "c"), ("b", -1, "c"), ("c", 1, "d")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prior.sif", "a 1 c\nb -1 c\nc 1 d\n"),
        ("prior.sif", "a activates c\nb -| c\nc + d\n"),
        ("prior.csv", "TF,Target,Effect\na,c,stimulation\nb,c,down-regulates\nc,d,0.3\n"),
        ("prior.bnet", "c, a & !b & (x | !x)\nd, c\n"),
        ("prior.txt", "c *= a and not b\nd *= c\n"),
        ("prior.aeon", "a -> c\nb -| c\nc -> d\n"),
    ],
)
def test_a_prior_in_any_format_has_the_same_edges(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    edges, notes = read_prior(path)
    assert {tuple(edge) for edge in edges} == EDGES
    assert [note for note in notes if note != "edges of the prior that change nothing, left out: x in c"] == []


@pytest.mark.parametrize("text", ["a -? c\n", "a dual c\n", "source,target,sign\na,c,?\n", "c, (a & b) | (!a & !b)\n"])
def test_an_edge_of_either_sign_is_two_edges_and_a_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prior"
    path.write_text(text)
    edges, notes = read_prior(path)
    assert {("a", 1, "c"), ("a", -1, "c")} <= {tuple(edge) for edge in edges}
    assert notes[0].startswith("edges of either sign, read as two: a c")


def test_the_family_of_a_network_as_prior_is_that_of_its_edges(tmp_path: Path) -> None:
    (tmp_path / "p.sif").write_text("a 1 c\nb -1 c\n")
    (tmp_path / "p.bnet").write_text("c, a & !b & (z | !z)\n")
    (tmp_path / "d.csv").write_text("TR:a,TR:b,DA:c,DV:c\n1,0,5,1\n0,1,5,0\n")
    counts = []
    for name in ("p.sif", "p.bnet"):
        outcome = logic_family(tmp_path / name, tmp_path / "d.csv", size=3)
        assert isinstance(outcome, Found)
        counts.append((outcome.value.count, outcome.value.optimum))
    assert counts[0] == counts[1]
    assert "z in c" in read_data(tmp_path / "p.bnet", tmp_path / "d.csv")[1].notes[0]


def test_a_prior_of_several_levels_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "p.ginml"
    path.write_text('<gxl><graph class="regulatory"><node id="A" maxvalue="2"/></graph></gxl>')
    with pytest.raises(PoolError, match=r"p.ginml: 'A' has maxvalue above 1"):
        read_prior(path)
