"""Structure differences by plain sets: canonical names, mapped names, missing, extra and reversed edges."""

from __future__ import annotations

import pytest

from calibrant.dsl.causim.external_programs.check import StructureDifference, compare_structure
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.networks import nihss
from calibrant.dsl.causim.topology import graph_of

REFERENCE = {"Smoking": (), "Tar": ("Smoking",), "Lung cancer": ("Tar", "Smoking")}


def test_names_match_without_case_and_punctuation() -> None:
    graph = {"lung_cancer": ("SMOKING", "tar"), "tar": ("SMOKING",), "SMOKING": ()}
    difference = compare_structure(graph, REFERENCE)
    assert difference == StructureDifference((), (), (), (), ())
    assert difference.is_match


def test_every_kind_of_difference_is_listed_in_the_names_of_the_reference() -> None:
    graph = {"smoking": ("tar",), "tar": (), "age": (), "cancer": ("tar", "age")}
    difference = compare_structure(graph, REFERENCE)
    assert difference == StructureDifference(
        missing_nodes=("Lung cancer",),
        extra_nodes=("age", "cancer"),
        missing_edges=(("Smoking", "Lung cancer"), ("Tar", "Lung cancer")),
        extra_edges=(("Tar", "cancer"), ("age", "cancer")),
        reversed_edges=(("Smoking", "Tar"),),
    )
    assert not difference.is_match
    mapped = compare_structure(graph, REFERENCE, {"cancer": "Lung cancer"})
    assert (mapped.missing_nodes, mapped.extra_nodes) == ((), ("age",))
    assert mapped.missing_edges == (("Smoking", "Lung cancer"),)
    assert mapped.extra_edges == (("age", "Lung cancer"),)


@pytest.mark.parametrize(
    ("graph", "names", "message"),
    [
        ({"a": (), "A": ()}, {}, "one name"),
        ({"a": ()}, {"b": "Tar"}, "the program has no such node"),
        ({"a": ()}, {"a": "Coal"}, "the reference has no such node"),
        ({"tar": (), "a": ()}, {"a": "Tar"}, "the same name"),
    ],
)
def test_ambiguous_names_are_refused_in_one_line(
    graph: dict[str, tuple[str, ...]], names: dict[str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        compare_structure(graph, REFERENCE, names)


def test_the_stroke_scale_is_a_reference() -> None:
    reference = graph_of(nihss(4))
    assert compare_structure({"1A": (), "1b": (), "1c": (), "Total": ("1A", "1b", "1c")}, reference).is_match
    without_edge = compare_structure({"1A": (), "1b": (), "1c": (), "Total": ("1A", "1b")}, reference)
    assert without_edge.missing_edges == (("1c", "total"),)
