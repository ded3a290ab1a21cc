"""Networks on tables: vectors made by listing of networks and completions; exports read by other packages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp, isclose, lgamma, log, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

import calibrant
from calibrant.baselines.structure_learning import large, levels
from calibrant.bench.cli import main
from calibrant.bench.replayscm.fitting import gap_networks, networks
from calibrant.bench.replayscm.fitting.network_fit import compare_arcs
from tests.support.commands import called, refused
from tests.support.effort import examples
from tests.support.replayscm.table_vectors import table_vectors

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


@pytest.mark.parametrize("suffix", [".dot", ".graphml", ".txt"])
@pytest.mark.parametrize("name", ["it's", 'a"b', "both ' and \"", "<i>x</i> & y", "C\\D", "ü, ->"])
def test_names_of_any_kind_are_read_back(name: str, suffix: str, tmp_path: Path) -> None:
    data = {name: DATA["A b"], "D": DATA["A b"]}
    fit = calibrant.learn_networks(data)
    assert fit.networks[0].arcs
    fit.export(tmp_path / f"network{suffix}")
    assert calibrant.rank_graph(data, tmp_path / f"network{suffix}").distance == 0


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


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".txt", "[A b][E][D|A b]"),
        (".dot", 'digraph { rankdir=LR; node [shape=box]; "A b" -> D; E }'),
        (".graphml", '<graphml><graph><node id="E"/><node id="D"/><edge source="A b" target="D"/></graph></graphml>'),
        (".bif", "probability ( E ) { }\nprobability ( D | A b ) { }\n"),
    ],
)
def test_a_node_without_arcs_is_a_column_too(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{suffix}"
    path.write_text(text, "utf-8")
    with pytest.raises(calibrant.CalibrantError, match="has 'E', which is no column"):
        calibrant.rank_graph(DATA, path)
    path.write_text(text.replace("E", "C"), "utf-8")
    assert calibrant.rank_graph(DATA, path).score == calibrant.rank_graph(DATA, "A b -> D").score


@pytest.mark.parametrize("name", ["A:b", "A|b", "A[b", "A]b"])
def test_a_model_string_has_no_names_with_its_own_marks(name: str, tmp_path: Path) -> None:
    fit = calibrant.learn_networks({name: DATA["A b"], "D": DATA["D"]})
    with pytest.raises(calibrant.CalibrantError, match="cannot be written in a model string"):
        fit.export(tmp_path / "network.txt")
    assert not (tmp_path / "network.txt").exists()


def test_knowledge_is_a_text_a_file_or_arguments(tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("forbid A b -> D\nroots C\n", "utf-8")
    stated = calibrant.learn_networks(DATA, forbid=["A b -> D"], roots=["C"]).to_dict()
    assert stated["networks"] < calibrant.learn_networks(DATA).to_dict()["networks"]
    for knowledge in ("forbid A b -> D\nroots C", tmp_path / "known.txt"):
        assert calibrant.learn_networks(DATA, knowledge=knowledge).to_dict() == stated
    with pytest.raises(calibrant.CalibrantError, match="a text of lines or a"):
        calibrant.learn_networks(DATA, knowledge=["roots C"])  # type: ignore[arg-type]


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


def test_counted_steps_stop_a_proof_with_its_bound_and_lines_of_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first seconds are made shorter, and the steps fewer."""
    monkeypatch.setattr(large, "FIRST_PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(large, "PROGRESS_SECONDS", 0.0)
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (150, 19))
    for k in range(4, 12):
        rows[:, k] = np.where(rng.random(150) < 0.1, rows[:, k], rows[:, k - 4] ^ (rows[:, k - 3] & rows[:, k - 1]))
    file = tmp_path / "wide.csv"
    text = [",".join(f"V{k}" for k in range(19)), *(",".join(map(str, row)) for row in rows.tolist())]
    file.write_text("\n".join(text), encoding="utf-8")
    results = []
    for steps in (large.MAX_STEPS, 200_000):
        monkeypatch.setattr(large, "MAX_STEPS", steps)
        assert main(["fit", str(file), "--score", "bde", "--max-parents", "2", "--json"]) == 0
        captured = capsys.readouterr()
        results.append(json.loads(captured.out))
        lines = re.findall(r"^best (.*), bound (.*), gap (.*) nats$", captured.err, re.MULTILINE)
        assert len(lines) > 1
        for best, bound, gap in (map(float, line) for line in lines):
            assert best - 1e-4 <= results[0]["best_score"] <= bound + 1e-4
            assert gap == pytest.approx(bound - best, abs=2e-4)
    proven, stopped = results
    assert proven["gap"] < 1e-3
    assert stopped["gap"] > 1e-3
    assert "stopped after 200,000 steps (--seconds 300 goes on)" in stopped["proof"]
    assert stopped["best_score"] - 1e-9 <= proven["best_score"] <= stopped["upper_bound"]


KNOWLEDGE: dict[str, dict[str, Any]] = {
    "require": {"require": "c0 -> c4, c1 -> c3"},
    "forbid": {"forbid": "c0 -> c1, c1 -> c0, c2 -> c3"},
    "tiers": {"tiers": "c4, c3 < c2, c1 < c0, c5"},
    "roots": {"roots": ["c3", "c4"], "max_parents_of": {"c5": 1}},
}


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 8), st.sampled_from(sorted(KNOWLEDGE)), st.sampled_from([5, 200, None]))
def test_the_price_of_a_large_table_is_that_of_the_exact_engine_or_bounded(
    seed: int, num_vars: int, kind: str, steps: int | None
) -> None:
    """Tables of at most 8 columns go through the integer program; steps: its budget, None for the usual one."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (60, num_vars))
    for k in range(3, num_vars):
        rows[:, k] = np.where(rng.random(60) < 0.2, rows[:, k], rows[:, k - 3] ^ rows[:, k - 2])
    data = {f"c{k}": rows[:, k].tolist() for k in range(num_vars)}
    learn = partial(calibrant.learn_networks, data, max_parents=3)
    knowledge = KNOWLEDGE[kind]
    if kind == "tiers":  # every column is in one
        knowledge = {"tiers": ", ".join([knowledge["tiers"], *(f"c{k}" for k in range(6, num_vars))])}
    best = learn(**knowledge).networks[0].score
    exact = learn().networks[0].score - best
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "MAX_DENSE_VARIABLES", 2)
        patch.setattr(levels, "MAX_DENSE_VARIABLES", 2)
        patch.setattr(large, "MAX_STEPS", steps or large.MAX_STEPS)
        bounded = learn(**knowledge)
    assert bounded.price is not None
    assert bounded.upper_bound is not None
    least, greatest = bounded.to_dict()["price_bounds"]
    assert least - 1e-9 <= exact <= greatest + 1e-9
    price = bounded.to_dict()["price"]
    if price is not None:
        assert price == pytest.approx(exact, abs=2e-3)
        assert f"price of the knowledge: {price:.4f} nats, among" in str(bounded)
    else:
        assert steps is not None
        assert f"price of the knowledge: at least {least:.4f}, at most {greatest:.4f} nats" in str(bounded)


def test_a_limit_of_parents_alone_has_no_price_beyond_18_columns() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (60, 19))
    data = {f"V{k}": rows[:, k].tolist() for k in range(19)}
    assert calibrant.learn_networks(data, max_parents=1).price is None
    limited = calibrant.learn_networks(data, max_parents=1, forbid="V0 -> V1")
    assert limited.price is not None
    assert limited.to_dict()["price"] == pytest.approx(
        calibrant.learn_networks(data, max_parents=1).networks[0].score - limited.networks[0].score
    )


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


# --- A plain listing of three columns ---------------------------------------------------------------------------------
Dag = tuple[frozenset[int], ...]
Cells = tuple[int | None, ...]
PAIRS = ((0, 1), (0, 2), (1, 2))


def listed_dags() -> list[Dag]:
    """Return the 25 networks of three columns, as parents of each."""
    dags = []
    for directions in product((0, 1, 2), repeat=3):
        parents: list[set[int]] = [set(), set(), set()]
        for (a, b), way in zip(PAIRS, directions, strict=True):
            if way:
                parents[b if way == 1 else a].add(a if way == 1 else b)
        if all(len(of) == 1 for of in parents) and len({frozenset({v} | of) for v, of in enumerate(parents)}) == 3:
            continue  # the two cycles
        dags.append(tuple(map(frozenset, parents)))
    assert len(dags) == 25
    return dags


DAGS = listed_dags()


def bde(rows: Sequence[tuple[Cells, int]], levels: Sequence[int], dag: Dag) -> float:
    """Return BDeu with one imaginary row, from its definition; rows: cells and the column that was set, or -1."""
    score = 0.0
    for v, of in enumerate(dag):
        parents = sorted(of)
        q = prod(levels[p] for p in parents)
        counts: dict[tuple[int | None, ...], list[int]] = {}
        for cells, was_set in rows:
            if was_set != v:
                counts.setdefault(tuple(cells[p] for p in parents), [0] * levels[v])[cells[v] or 0] += 1
        for cell in counts.values():
            score += lgamma(1 / q) - lgamma(1 / q + sum(cell))
            score += sum(lgamma(1 / (q * levels[v]) + n) - lgamma(1 / (q * levels[v])) for n in cell)
    return score


def effect_in(rows: Sequence[tuple[Cells, int]], levels: Sequence[int], dag: Dag, wanted: int, setting: int) -> float:
    """Return P(column 2 = wanted | do(column 0 = setting)) by adding up the truncated product over all assignments."""
    total = 0.0
    for values in product(*map(range, levels)):
        if values[2] != wanted or values[0] != setting:
            continue
        probability = 1.0
        for v in (1, 2):
            q = prod(levels[p] for p in dag[v])
            counted = [c for c, k in rows if k != v and all(c[p] == values[p] for p in dag[v])]
            hits = sum(c[v] == values[v] for c in counted)
            probability *= (1 / (q * levels[v]) + hits) / (1 / q + len(counted))
        total += probability
    return total


def structure(dag: Dag, targets: frozenset[int]) -> tuple[Any, Any]:
    """Return skeleton and colliders without the arcs into the targets."""
    arcs = {(p, v) for v, of in enumerate(dag) for p in of if v not in targets}
    edges = {frozenset(arc) for arc in arcs}
    colliders = {
        (frozenset((a, b)), v) for a, v in arcs for b, w in arcs if v == w and a != b and frozenset((a, b)) not in edges
    }
    return edges, colliders


def as_columns(rows: list[tuple[Cells, int]]) -> dict[str, list[str | None]]:
    table: dict[str, list[str | None]] = {
        f"c{k}": [None if cells[k] is None else "abc"[cells[k] or 0] for cells, _ in rows] for k in range(3)
    }
    return table | {"do": ["" if k < 0 else f"c{k}" for _, k in rows]}


def is_usable(rows: Sequence[tuple[Cells, int]]) -> bool:
    """Whether every column is free in some row, has values 0 to its highest, and is no identifier."""
    for k in range(3):
        values = [cells[k] for cells, _ in rows if cells[k] is not None]
        if set(values) != set(range(len(set(values)))) or len(set(values)) < 2:
            return False
        if (len(set(values)) > 2 and len(set(values)) == len(values)) or all(was_set == k for _, was_set in rows):
            return False
    return True


LEVEL_ROWS = st.lists(
    st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), st.integers(-1, 2)),
    min_size=4,
    max_size=9,
).filter(is_usable)


@settings(max_examples=examples(200), deadline=None)
@given(LEVEL_ROWS)
def test_networks_classes_and_effects_are_those_of_a_listing(rows: list[tuple[Cells, int]]) -> None:
    levels = [len({cells[k] for cells, _ in rows}) for k in range(3)]
    scores = [bde(rows, levels, dag) for dag in DAGS]
    best = max(scores)
    optimal = [dag for dag, score in zip(DAGS, scores, strict=True) if score >= best - 1e-9]
    learned = calibrant.learn_networks(as_columns(rows), do="do", effect="c2=a | do(c0=b)")
    found = learned.to_dict()
    assert isclose(found["best_score"], best, abs_tol=NEAR)
    assert found["optimal_networks"] == len(optimal)
    weights = [exp(score - best) for score in scores]
    for parent, child, probability in found["arcs_by_dags"]:
        having = sum(w for dag, w in zip(DAGS, weights, strict=True) if int(parent[1]) in dag[int(child[1])])
        assert isclose(probability, having / sum(weights), abs_tol=NEAR)
    effects = [effect_in(rows, levels, dag, 0, 1) for dag in DAGS]
    mean = sum(w * value for w, value in zip(weights, effects, strict=True)) / sum(weights)
    assert isclose(found["effect"]["mean_dags"], mean, abs_tol=NEAR)
    targets = {frozenset() if k < 0 else frozenset((k,)) for _, k in rows}
    chosen = tuple(frozenset(int(p[1]) for p, c in learned.networks[0].arcs if c == f"c{v}") for v in range(3))
    alike = [dag for dag in DAGS if all(structure(dag, t) == structure(chosen, t) for t in targets)]
    assert found["class"]["members"] == found["effect"]["class_members"] == len(alike)
    values = [value for dag, value in zip(DAGS, effects, strict=True) if dag in alike]
    ends = [float(Fraction(value)) for value in found["effect"]["range"]]
    assert isclose(ends[0], min(values), abs_tol=NEAR)
    assert isclose(ends[1], max(values), abs_tol=NEAR)


GAP_ROWS = st.lists(
    st.tuples(st.tuples(*[st.sampled_from([0, 1, 0, 1, None])] * 3), st.integers(-1, 2)), min_size=3, max_size=7
).filter(lambda rows: is_usable(rows) and 0 < sum(cells.count(None) for cells, _ in rows) <= 5)


@pytest.mark.parametrize("score", ["bde", "bic", "bds"])
def test_a_network_is_certified_by_the_definition_of_its_score(score: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {name: DATA[name] for name in ("A b", "D")}
    calibrant.learn_networks(data, score=score)
    monkeypatch.setattr(networks._Learning, "local", lambda self, child, parents: -1.0)
    with pytest.raises(AssertionError, match=r"failed its certificate: its score is -2\.0, not -"):
        calibrant.learn_networks(data, score=score)


def test_a_graph_outside_the_knowledge_has_no_posterior_and_may_score_more() -> None:
    data = {"A": [0, 0, 1, 1] * 5, "B": [0, 0, 1, 1] * 5}
    fitted = calibrant.learn_networks(data, graph="A -> B", forbid="A -> B, B -> A")
    rank = fitted.to_dict()["graph"]
    assert "posterior_dags" not in rank
    assert rank["gap"] == pytest.approx(fitted.networks[0].score - rank["score"])
    assert f"scores {rank['score']:.4f}, {-rank['gap']:.4g} nats more than the best of 1 that the knowledge" in str(
        fitted
    )
    admitted = calibrant.learn_networks(data, graph="A -> B").to_dict()["graph"]
    assert float(admitted["posterior_dags"]) < 0.5


@settings(max_examples=examples(80), deadline=None)
@given(GAP_ROWS, st.integers(0, len(DAGS) - 1), st.booleans())
def test_networks_with_gaps_are_sums_over_listed_completions(
    rows: list[tuple[Cells, int]], index: int, is_wide: bool
) -> None:
    """is_wide: as beyond five columns, where not all networks are listed."""
    choices = [product(*((0, 1) if cell is None else (cell,) for cell in cells)) for cells, _ in rows]
    completions = [
        [(cells, was_set) for cells, (_, was_set) in zip(filled, rows, strict=True)] for filled in product(*choices)
    ]
    totals = [sum(exp(bde(filled, (2, 2, 2), dag)) for filled in completions) for dag in DAGS]
    own, total_of = DAGS[index], dict(zip(DAGS, totals, strict=True))
    graph = "".join(f"[c{v}" + "|" * bool(p) + ":".join(f"c{u}" for u in sorted(p)) + "]" for v, p in enumerate(own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gap_networks, "MAX_LISTED_COLUMNS", 0 if is_wide else 5)
        learned = calibrant.learn_networks(as_columns(rows), do="do", graph=graph, effect="c2=a | do(c0=b)")
    found = learned.to_dict()
    rank = found["graph"]
    assert learned.upper_bound is None
    assert isclose(rank["score"], log(total_of[own]), abs_tol=NEAR)
    assert isclose(rank["gap"], log(max(totals) / total_of[own]), abs_tol=NEAR)
    assert rank["better_networks"] == sum(log(total / total_of[own]) > 1e-9 for total in totals)
    assert rank["equal_networks"] == sum(abs(log(total / total_of[own])) <= 1e-9 for total in totals)
    assert isclose(float(rank["posterior_dags"]), total_of[own] / sum(totals), rel_tol=NEAR)
    assert learned.refutes_graph == (rank["better_networks"] > 0)

    def num_pairs_changed(dag: Any) -> int:
        return sum((u in dag[v], v in dag[u]) != (u in own[v], v in own[u]) for v in range(3) for u in range(v))

    gains = [log(total / total_of[own]) for dag, total in total_of.items() if num_pairs_changed(dag) == 1]
    assert isclose(rank["best_change"]["gain"], max(gains), abs_tol=NEAR)
    optimal = [dag for dag, total in total_of.items() if log(max(totals) / total) <= 1e-9]
    assert rank["distance"] == min(map(num_pairs_changed, optimal))
    assert isclose(found["best_score"], log(max(totals)), abs_tol=NEAR)
    assert found["optimal_networks"] == sum(total >= max(totals) * (1 - 1e-9) for total in totals)
    for parent, child, probability in found["arcs_by_dags"]:
        having = sum(total for dag, total in zip(DAGS, totals, strict=True) if int(parent[1]) in dag[int(child[1])])
        assert isclose(probability, having / sum(totals), abs_tol=NEAR)
    weighted = [[exp(bde(filled, (2, 2, 2), dag)) for filled in completions] for dag in DAGS]
    effects = [[effect_in(filled, (2, 2, 2), dag, 0, 1) for filled in completions] for dag in DAGS]
    by_dag = [
        sum(w * value for w, value in zip(*pair, strict=True)) / sum(pair[0])
        for pair in zip(weighted, effects, strict=True)
    ]
    effect = found["effect"]
    assert isclose(effect["graph"], by_dag[index], abs_tol=NEAR)
    mean = sum(sum(ws) * value for ws, value in zip(weighted, by_dag, strict=True)) / sum(totals)
    assert isclose(effect["mean_dags"], mean, abs_tol=5 * effect.get("mean_dags_standard_error", 0) + NEAR)
    assert ("mean_dags_standard_error" in effect) == is_wide
    targets = {frozenset() if k < 0 else frozenset((k,)) for _, k in rows}
    best = tuple(frozenset(int(p[1]) for p, c in learned.networks[0].arcs if c == f"c{v}") for v in range(3))
    alike = [k for k, dag in enumerate(DAGS) if all(structure(dag, t) == structure(best, t) for t in targets)]
    assert effect["class_members"] == len(alike)
    assert isclose(effect["range"][0], min(by_dag[k] for k in alike), abs_tol=NEAR)
    assert isclose(effect["range"][1], max(by_dag[k] for k in alike), abs_tol=NEAR)


def test_six_columns_with_gaps_have_an_optimum_a_rank_and_an_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {f"x{k}": [k * r // 3 % 2 for r in range(12)] for k in range(1, 7)}
    gapped = table | {"x1": [None, *table["x1"][1:]], "x6": [*table["x6"][:-1], None]}
    second = calibrant.learn_networks(gapped, k=2).networks[1]
    options: dict[str, Any] = {"graph": list(second.arcs), "k": 2, "effect": "x2=1 | do(x1=1)"}
    learned = calibrant.learn_networks(gapped, **options)
    assert learned.proof == "proven highest over all networks, summed over 4 completions of the gaps"
    assert len(learned.networks) == 2
    ranking = learned.ranking
    assert ranking is not None
    assert ranking.better_networks is not None
    assert ranking.score == pytest.approx(second.score)
    assert ranking.better_networks <= 1
    monkeypatch.setattr(gap_networks, "MAX_CANDIDATES", 0)
    bounded = calibrant.learn_networks(gapped, **options)
    assert bounded.upper_bound is not None
    assert bounded.networks[0].score - 1e-9 <= learned.networks[0].score <= bounded.upper_bound + 1e-9
    assert bounded.proof.startswith("not proven: at most ")
    rank = bounded.to_dict()["graph"]
    assert (rank["better_networks"], rank["equal_networks"]) == (None, None)
    assert ranking.better_networks < float(rank["better_networks_below"])
    assert rank["score"] == pytest.approx(ranking.score)
    assert rank["posterior_dags"] == learned.to_dict()["graph"]["posterior_dags"]
    assert "too many networks to list may score higher, but fewer than" in str(bounded)
