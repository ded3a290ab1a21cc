"""What the plots show, counted by hand, and that drawing it again gives the same bytes."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from calibrant.bench.replayscm.chance_and_best import Ambiguity
from calibrant.bench.replayscm.figures import (
    ambiguity_bins,
    bin_index_of,
    families,
    ladder_points,
    merged_systems,
    num_matched,
    report_plots,
    size_medians,
    timed_answers,
)
from calibrant.bench.replayscm.paper import HELDOUT_EXACT, HELDOUT_WORLD, gold_sizes
from calibrant.bench.report.sections import Plot
from tests.support.report_rows import INVALID, Answers, answer, rows_of

HIT, MISS = answer(1, 1), answer(1, 0.5)
LADDER = (
    Answers("s", [HIT] * 6 + [MISS] * 2, setting="Ordered", pool="o"),
    Answers("s", [HIT] * 3 + [MISS] * 3, setting="Block", pool="b", suffix="__PARTIAL_ORDER_3BLOCK"),
    Answers("t", [MISS] * 8, setting="Ordered", pool="o"),
)
APART = (
    Answers("s", [HIT] * 8, setting="Ordered", pool="o2", suffix="x"),
    Answers("s", [MISS] * 8, setting="Hidden-roots", pool="r2", suffix="x__ROOT_UNKNOWN"),
    Answers("s", [MISS] * 8, setting="Hid-CEx", pool="c2", suffix="x"),
)


def test_families_are_pools_that_share_latent_scms() -> None:
    found = families(rows_of(*LADDER, *APART))
    assert (
        sorted({row.setting for row in family} for family in found)
        == sorted([{"Ordered", "Block"}, {"Ordered", "Hidden-roots"}], key=sorted)
        or len(found) == 2
    )
    by_pools = {frozenset(row.pool for row in family): num_matched(family) for family in found}
    assert by_pools == {frozenset({"o", "b"}): 6, frozenset({"o2", "r2"}): 8}
    assert families(rows_of(LADDER[0], APART[1])) == []  # one disclosure each, no latent in common


def test_a_ladder_is_over_the_latents_of_all_its_rungs() -> None:
    (family,) = families(rows_of(*LADDER))
    points = ladder_points(family, HELDOUT_EXACT)
    assert points.keys() == {"s"}  # t has one rung only
    assert [(p.x, p.mean, p.num_items) for p in points["s"]] == [(0, 1.0, 6), (1, 0.5, 6)]
    assert [p.mean for p in ladder_points(family, HELDOUT_WORLD)["s"]] == [1.0, 0.75]
    low, high = points["s"][1].interval or (0.5, 0.5)
    assert 0.5 - low == pytest.approx(high - 0.5)
    assert 0.3 < 0.5 - low < 0.5


def audited(*members: tuple[int, int, float], pool: str = "o") -> dict[tuple[str, str], Ambiguity]:
    """Instance number, members and the share of them that is held-out exact."""
    return {(f"digest of {pool}", f"I{i}"): Ambiguity(count, share, None, None, None) for i, count, share in members}


@pytest.mark.parametrize(
    ("members", "bin_index"), [(1, 0), (2, 1), (100, 1), (101, 2), (10**4, 2), (10**6 + 1, 4), (10**40, 4)]
)
def test_bins_of_ambiguity(members: int, bin_index: int) -> None:
    assert bin_index_of(members) == bin_index


def test_success_by_ambiguity_is_counted_in_bins() -> None:
    audits = audited((0, 1, 1.0), (1, 2, 0.5), (6, 10, 0.25)) | audited((3, 5, 1.0), pool="another")
    curves, draws = ambiguity_bins(rows_of(*LADDER[:1]), audits)
    assert [(p.x, p.mean, p.num_items) for p in curves["s"]] == [(0, 1.0, 1), (1, 0.5, 2)]
    assert draws == {0: 1.0, 1: 0.375}
    assert ambiguity_bins(rows_of(*LADDER[:1]), {}) == ({}, {})


def _medians(answers: Answers) -> list[tuple[float, float]]:
    rows = rows_of(answers)
    (merged,) = merged_systems(rows)
    return size_medians(timed_answers(merged, gold_sizes(rows)))


def test_time_by_size_is_medians_of_groups() -> None:
    sizes = [8, 1, 7, 2, 6, 3, 5, 4]
    scores = [answer(1, 1, goldAstSize=size) for size in sizes]  # seconds are 0.5, 1.0, ..., 4.0 in this order
    assert _medians(Answers("s", scores)) == [(1.5, 1.5), (3.5, 3.5), (5.5, 3.0), (7.5, 1.0)]
    assert _medians(Answers("s", scores, is_run=False)) == []
    ties = Answers("s", [answer(1, 1, goldAstSize=size) for size in (5, 5, 5, 9)])
    assert _medians(ties) == [(5, 1.0), (9, 2.0)]


def test_sizes_are_known_of_invalid_answers_too() -> None:
    """Their scores do not state it; another system's, or another disclosure's, do."""
    invalid = Answers("t", [INVALID] * 2, setting="Block", pool="b", suffix="__PARTIAL_ORDER_2BLOCK")
    rows = rows_of(invalid, Answers("s", [answer(1, 1, goldAstSize=31), answer(1, 1, goldAstSize=40)]))
    sizes = gold_sizes(rows)
    assert [[sizes[o.unit] for o in row.observations] for row in rows] == [[31, 40], [31, 40]]
    assert gold_sizes(rows_of(invalid)) == {}


def drawn(*answers: Answers, times: bool = True) -> dict[str, Plot]:
    audits = audited(*((i, 10**i, 1 / 2**i) for i in range(8)))
    return {p.name: p for p in report_plots(rows_of(*answers), audits, with_paper=True, with_times=times)}


def test_drawing_again_gives_the_same_bytes_whatever_the_order() -> None:
    """All plots twice, of rows in another order."""
    once = drawn(*LADDER, *APART)
    assert list(once) == ["ladder", "train-heldout", "ambiguity", "time-size"]
    assert drawn(*reversed((*LADDER, *APART))) == once
    assert list(drawn(*LADDER, times=False)) == ["ladder", "train-heldout", "ambiguity"]


def test_names_in_plots_are_text() -> None:
    names = ("$\\frac{1}{0}$", "_hidden", "<b>&amp;")
    plots = drawn(
        *(Answers(name, [HIT] * 4 + [MISS] * 4, setting=s, pool=s) for name in names for s in ("Ordered", "Block"))
    )
    for plot in plots.values():
        texts = {
            "".join(node.itertext()).strip()
            for node in ET.fromstring(plot.svg).iter("{http://www.w3.org/2000/svg}text")
        }
        assert set(names) <= texts


HOSTILE = (
    "$x^$",
    "a\nb\n" * 3,
    "\x1b[31m",
    "\x00",
    "\ud800",
    "\u6f22\u5b57",
    "\u05e9\u05dc",
    "_a",
    "\\$x$",
    "$",
    "n" * 400,
)


def test_no_name_ends_the_drawing() -> None:
    """Characters that XML lacks and a name wider than the plot, all in one drawing."""
    hostile = [
        one._replace(system=f"{name}{one.system}", setting=name, pool=f"{name}{one.pool}")
        for name in HOSTILE
        for one in LADDER
    ]
    plots = report_plots(rows_of(*LADDER, *hostile), {}, with_paper=True, with_times=True)
    assert plots
    for plot in plots:
        ET.fromstring(plot.svg)
