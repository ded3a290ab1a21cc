"""Networks on tables: vectors made by listing of networks and completions; exports read by other packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

import calibrant
from calibrant.bench.replayscm.fitting.network_fit import compare_arcs
from tests.support.commands import called, refused
from tests.support.table_vectors import table_vectors

NEAR = 1e-6  # vectors have nine places


def is_near(found: Any, expected: Any) -> bool:
    """Whether figures agree to 1e-6, everything else exactly; a mapping may have further keys."""
    if isinstance(expected, float):
        return isinstance(found, float | int) and isclose(found, expected, rel_tol=NEAR, abs_tol=NEAR)
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(is_near, found, expected))
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(key in found and is_near(found[key], expected[key]) for key in expected)
    return bool(found == expected)


def as_sets(key: str, value: Any) -> Any:
    """Order what the vectors list in no order of meaning."""
    if key == "optimal":
        return sorted(sorted(arcs) for arcs in value)
    if key.startswith("arcs_by"):
        return sorted(value)
    if key == "class":
        edges = sorted(sorted(edge) for edge in value["undirected"])
        return value | {"directed": sorted(value["directed"]), "undirected": edges}
    return value


def differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Yield the keys of a vector that disagree."""
    for key, value in expected.items():
        if key == "graph" and isinstance(value, dict):  # a text with ten digits, also far below the least float
            ours, theirs = found[key].get("posterior_dags"), value.get("posterior_dags")
            if (ours is None) != (theirs is None) or (theirs and not isclose(float(ours), float(theirs), rel_tol=NEAR)):
                yield f"{key}: {ours} is not {theirs}"
            value = {k: v for k, v in value.items() if k != "posterior_dags"}
            ranking = {k: v for k, v in found[key].items() if k != "posterior_dags"}
            ordered = [entry | {"best_change": _ordered(entry["best_change"])} for entry in (ranking, value)]
            if not is_near(*ordered):
                yield f"{key}: {ranking} is not {value}"
        elif key == "optimal" and found.get("optimal_networks", 0) > len(value):
            if not all(sorted(arcs) in map(sorted, found[key]) for arcs in value):
                yield key
        elif not is_near(as_sets(key, found.get(key)), as_sets(key, value)):
            yield f"{key}: {found.get(key)} is not {value}"


def _ordered(change: dict[str, Any] | None) -> dict[str, Any] | None:
    return change and change | {"changes": sorted(change["changes"])}


@pytest.mark.parametrize("kind", ["network", "large", "effect", "gap_network"])
def test_all_vectors_have_the_stated_figures(kind: str, tmp_path: Path) -> None:
    vectors, compared = table_vectors(kind), 0
    for vector in vectors():
        file = tmp_path / "table.csv"
        file.write_text(vector["csv"], encoding="utf-8")
        expected = vector["expected"]
        if "refused" in expected:
            with pytest.raises(calibrant.CalibrantError) as refusal:
                calibrant.learn_networks(str(file), **vector["options"])
            assert "\n" not in str(refusal.value)
        else:
            found = calibrant.learn_networks(str(file), **vector["options"]).to_dict()
            found = found["effect"] if kind == "effect" else found
            assert not list(differences(found, expected)), vector["id"]
        compared += 1
    assert compared == vectors.number


DATA = {"A b": [0, 0, 1, 1] * 6 + [0, 1], "C": ["x", "y", "z", "z"] * 6 + ["x", "x"], "D": [0, 1, 1, 1] * 6 + [1, 0]}


@pytest.mark.parametrize("suffix", [".dot", ".graphml", ".txt"])
def test_an_exported_network_is_read_back_as_a_graph(suffix: str, tmp_path: Path) -> None:
    fit = calibrant.learn_networks(DATA)
    assert fit.networks[0].arcs
    path = tmp_path / f"network{suffix}"
    fit.export(path)
    ranking = calibrant.rank_graph(DATA, path)
    assert ranking.gap == pytest.approx(0, abs=1e-9)
    assert ranking.distance == 0


def test_other_packages_read_the_exports(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    fit = calibrant.learn_networks({name.replace(" ", "_"): values for name, values in DATA.items()})
    fit.export(tmp_path / "network.graphml")
    assert set(networkx.read_graphml(tmp_path / "network.graphml").edges) == set(fit.networks[0].arcs)
    assert set(fit.to_networkx().edges) == set(fit.networks[0].arcs)
    pytest.importorskip("pgmpy")
    from pgmpy.readwrite import BIFReader

    fit.export(tmp_path / "network.bif")
    model = BIFReader(str(tmp_path / "network.bif")).get_model()
    assert set(model.edges()) == set(fit.networks[0].arcs)
    own = fit.to_pgmpy()
    assert own.check_model()
    for cpd in own.get_cpds():
        assert np.allclose(cpd.get_values(), model.get_cpds(cpd.variable).get_values(), atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("A b -> E", "graph has 'E', which is no column"),
        ("C -> D, D -> C", "cycle"),
        ("[A b][C|A b", "is no model string"),
        ([("C",)], "pairs of names"),
        ("missing.dot", "cannot be read"),
    ],
)
def test_graphs_that_cannot_be_read_are_one_line(graph: Any, reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason) as refusal:
        calibrant.rank_graph(DATA, graph)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("effect", ["D=1", "D=7 | do(C=x)", "E=1 | do(C=x)", "D=1 | do(D=0)", "D=1 | do()"])
def test_effects_that_cannot_be_read_are_one_line(effect: str) -> None:
    with pytest.raises(calibrant.CalibrantError) as refusal:
        calibrant.learn_networks(DATA, effect=effect)
    assert "\n" not in str(refusal.value)


def test_nineteen_columns_have_a_proven_optimum_or_a_stated_bound() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (60, 19))
    rows[:, 1] = rows[:, 0] ^ (rows[:, 2] & rows[:, 3])
    data = {f"V{k}": rows[:, k].tolist() for k in range(19)}
    proven = calibrant.learn_networks(data, max_parents=2, seconds=60)
    bounded = calibrant.learn_networks(data, max_parents=2, search=True)
    assert bounded.networks[0].score <= proven.networks[0].score + 1e-9
    assert bounded.gap >= 0
    assert "not proven: at most" in bounded.proof
    assert proven.gap <= bounded.gap + 1e-9


def test_the_command_ranks_a_graph_states_an_effect_and_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    rows = zip(*DATA.values(), strict=True)
    table.write_text("\n".join(["A b,C,D", *(",".join(map(str, row)) for row in rows)]), "utf-8")
    (tmp_path / "knowledge.txt").write_text("# what is known\nforbid D -> C\nmax-parents 2\n", "utf-8")
    asked = ["--knowledge", tmp_path / "knowledge.txt", "--require", "A b -> C", "--effect", "D=1 | do(C=x)"]
    done = called(
        "fit", table, "--score", "bde", "--graph", "A b -> D", *asked, "--export", tmp_path / "n.dot", "--json"
    )
    found = json.loads(done.stdout)
    assert found["graph"]["violations"] == ["A b -> C is required"]
    assert found["effect"]["question"] == "P(D=1 | do(C=x))"
    assert '"A b" -> "C"' in (tmp_path / "n.dot").read_text("utf-8")
    assert "nats" in called("fit", table, "--score", "bde", "--graph", "A b -> D").stdout
    assert "give --score" in refused(capsys, "fit", table, "--effect", "D=1 | do(C=x)")
    clash = refused(capsys, "fit", table, "--score", "bde", "--require", "C -> D", "--forbid", "C -> D")
    assert "--require 'C -> D' requires C -> D, which --forbid 'C -> D' forbids" in clash


def test_fronts_are_refused_with_scores_and_priors_of_the_other_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("A,B\n0,0\n1,1\n", "utf-8")
    assert "--errors" in refused(capsys, "fit", table, "--score", "bde", "--errors", "front")
    assert "of the other kind" in refused(capsys, "fit", table, "--score", "bde", "--prior", "uniform")
    assert "of the other kind" in refused(capsys, "fit", table, "--prior", "dags")


def test_the_page_has_the_class_the_effect_and_the_graph_beside_the_best(tmp_path: Path) -> None:
    table, page = tmp_path / "ward <1>.csv", tmp_path / "page.html"
    rows = ["smoke,lung & co,sex"] + ["yes,yes,m"] * 9 + ["no,no,f"] * 8 + ["yes,no,m", "no,yes,f"] * 2
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = ("--score", "bde", "--graph", "sex -> lung & co", "--effect", "lung & co=yes | do(smoke=yes)")
    done = called("fit", table, *options, "--html", page)
    assert done.returncode == 0
    text = page.read_text(encoding="utf-8")
    fitted = calibrant.learn_networks(table, graph="sex -> lung & co", effect="lung & co=yes | do(smoke=yes)")
    assert fitted.summary is not None
    (parent, child), *_ = fitted.networks[0].arcs
    assert f"{parent} to {child}".replace("&", "&amp;") in text
    assert text.count('class="arrow open"') == len(fitted.summary.undirected) > 0
    assert f"{fitted.summary.members:,} networks are as good as the best" in text
    assert "ward &lt;1&gt;.csv" in text
    assert "<1>" not in text
    assert {verdict for _, verdict in compare_arcs((("A", "B"), ("C", "B"), ("A", "D")), (("A", "B"), ("B", "C")))} == {
        "kept",
        "reversed",
        "missing",
    }
    assert list(compare_arcs((), (("A", "B"),))) == [("A → B", "added")]
    assert fitted.effect is not None
    assert all(str(escape(line.strip())) in text for line in fitted.effect.lines())
