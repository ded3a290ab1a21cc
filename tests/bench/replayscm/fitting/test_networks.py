"""Networks learned from tables: compared with a sum over all DAGs that uses nothing of the project."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.baselines.structure_learning import large
from calibrant.solvers.acyclic.integer_program import _kernels, relaxation, tree
from calibrant.solvers.highs import run
from tests.support.commands import called, refused
from tests.support.effort import examples
from tests.support.packages import needs

NAMES = ("A", "B", "C")
Parents = tuple[frozenset[str], ...]


def dags() -> Iterator[Parents]:
    """Every DAG over A, B and C: 25."""
    sets = [frozenset(name for name, bit in zip(NAMES, bits, strict=True) if bit) for bits in product((0, 1), repeat=3)]
    for parents in product(sets, repeat=3):
        if orders(parents):
            yield parents


def orders(parents: Parents) -> int:
    """Count the orders in which every variable comes after its parents."""
    return sum(
        all(parents[NAMES.index(name)] <= set(order[:index]) for index, name in enumerate(order))
        for order in permutations(NAMES)
    )


def bde(rows: Sequence[Mapping[str, int]], targets: Sequence[str], parents: Parents, iss: float) -> float:
    """Log marginal likelihood with iss / (2 q) imaginary rows a cell; rows in which the child was set do not count."""
    total = 0.0
    for child, above in zip(NAMES, parents, strict=True):
        counted = [row for row, target in zip(rows, targets, strict=True) if target != child]
        cell = iss / (2 * 2 ** len(above))
        for values in product((0, 1), repeat=len(above)):
            wanted = dict(zip(sorted(above), values, strict=True))
            matching = [row[child] for row in counted if all(row[name] == value for name, value in wanted.items())]
            for value in (0, 1):
                total += math.lgamma(cell + matching.count(value)) - math.lgamma(cell)
            total += math.lgamma(2 * cell) - math.lgamma(2 * cell + len(matching))
    return total


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.sampled_from(["", "A", "B", "C"])),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0.5, 1.0, 4.0]),
)
def test_the_best_networks_and_the_arcs_are_those_of_a_sum_over_all_dags(
    lines: list[tuple[int, int, int, str]], iss: float
) -> None:
    rows = [dict(zip(NAMES, line[:3], strict=True)) for line in lines]
    targets = [line[3] for line in lines]
    table = [{**row, "set": target} for row, target in zip(rows, targets, strict=True)]
    learned = calibrant.learn_networks(table, do="set", iss=iss, k=25)
    always = [k for k, name in enumerate(NAMES) if all(target == name for target in targets)]  # counts as a root
    scores = {parents: bde(rows, targets, parents, iss) for parents in dags() if not any(parents[k] for k in always)}
    assert len(scores) == len(learned.networks) == (12 if always else 25)
    assert [network.score for network in learned.networks] == pytest.approx(sorted(scores.values(), reverse=True))
    for network in learned.networks:
        parents = tuple(frozenset(a for a, b in network.arcs if b == child) for child in NAMES)
        assert network.score == pytest.approx(scores[parents])
    best = max(scores.values())
    assert learned.num_optimal == sum(score > best - 1e-9 for score in scores.values())
    assert learned.arcs_by_dags is not None
    assert learned.arcs_by_orders is not None
    for arcs, prior in ((learned.arcs_by_dags, lambda parents: 1), (learned.arcs_by_orders, orders)):
        weights = {parents: math.exp(score - best) * prior(parents) for parents, score in scores.items()}
        for (a, b), probability in arcs.items():
            share = sum(weight for parents, weight in weights.items() if a in parents[NAMES.index(b)])
            assert probability == pytest.approx(share / sum(weights.values()), abs=1e-9)


def test_other_scores_have_no_posterior_and_respect_max_parents() -> None:
    data: dict[str, list[Any]] = {"A": [0, 1] * 8, "B": [0, 1] * 8, "C": [0, 0, 1, 1] * 4}
    learned = calibrant.learn_networks(data, score="bic", k=3, max_parents=0)
    assert [network.arcs for network in learned.networks] == [()]
    assert learned.arcs == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"score": "mdl"}, "unknown score 'mdl'; known: bde, bds, bdj, k2, bic, aic"),
        ({"iss": 0}, "iss is 0; a number above 0 is allowed"),
        ({"iss": 1e15}, "iss is 1000000000000000.0; at most 1,000,000 are allowed"),
        ({"k": 0}, "k is 0; 1 to 1,000 networks are listed"),
        ({"max_parents": -1}, "max_parents is -1; a whole number from 0 is allowed"),
        ({"max_parents_of": "A=1"}, "max_parents_of is 'A=1'; a mapping such as"),
        ({"do": "set"}, r"the data has no column 'set' \(--do\); known: A"),
    ],
)
def test_what_is_wrong_is_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason):
        calibrant.learn_networks({"A": [0, 1]}, **options)


def test_bds_names_the_column_of_more_than_two_values() -> None:
    table = {"dose": ["a", "b", "c", "a"], "y": [0, 1, 1, 0]}
    with pytest.raises(calibrant.CalibrantError, match=r"^the data, column 'dose': bds .* --score bde or --drop$"):
        calibrant.learn_networks(table, score="bds")


def test_too_many_parent_sets_are_one_line() -> None:
    with pytest.raises(calibrant.CalibrantError, match=r"62 columns have .* parent sets of at most 5 columns"):
        calibrant.learn_networks({f"V{k}": [0, 1] for k in range(62)}, max_parents=5)


def test_the_command_learns_networks_from_the_same_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "noisy.csv"
    table.write_text("A,B,set\n" + "0,0,\n1,1,\n" * 9 + "0,1,\n1,0,\n" + "0,1,B\n1,1,B\n0,0,B\n1,0,B\n" * 3, "utf-8")
    done = called("fit", table, "--do", "set", "--score", "bde", "--best", 2, "--json")
    assert json.loads(done.stdout) == calibrant.learn_networks(str(table), do="set", k=2).to_dict()
    assert called("fit", table, "--do", "set", "--score", "bde").stdout.startswith("1  -33.9455  A -> B\n")
    assert "it is about networks" in refused(capsys, "fit", table, "--best", 2)
    assert ".to_frame().to_csv(FILE)" in refused(capsys, "fit", table, "--export", tmp_path / "a.csv")
    line = ("fit", table, "--do", "set", "--score", "bde", "--export", tmp_path / "a.csv")
    assert "to_csv(FILE) writes CSV" in refused(capsys, *line)
    assert "--score, which prints networks of all columns" in refused(
        capsys, "fit", table, "--score", "bde", "--target", "A"
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_other_libraries_are_the_same_table(library: str) -> None:
    """Through narwhals, where they are installed."""
    pytest.importorskip("narwhals")
    frames = pytest.importorskip(library)
    data = {"A": [0, 1, 1, 0], "B": [True, False, False, True], "set": ["", "B", "", ""]}
    expected = calibrant.learn_networks(data, do="set").to_dict()
    assert calibrant.learn_networks(frames.DataFrame(data), do="set").to_dict() == expected


def test_a_class_is_a_graph_of_networkx() -> None:
    pytest.importorskip("networkx")
    cpdag = calibrant.network_class(["A", "B", "C", "D"], [("A", "B"), ("C", "B"), ("B", "D")])
    chain = calibrant.network_class(["A", "B", "C"], [("A", "B"), ("B", "C")])
    graph = cpdag.to_networkx()
    arcs = {(a, b) for a, b, directed in graph.edges(data="directed") if directed}
    assert arcs == {("A", "B"), ("C", "B"), ("B", "D")}
    assert dict(chain.to_networkx().nodes(data="left_after")) == dict(chain.left_after)
    undirected = {(a, b) for a, b, directed in chain.to_networkx().edges(data="directed") if not directed}
    assert undirected == {("A", "B"), ("B", "A"), ("B", "C"), ("C", "B")}


def test_the_price_of_knowledge_is_summed_over_gaps() -> None:
    rows = [(0, 0, 1), (1, 1, 1), (None, 1, 0), (1, 1, 0), (0, None, 1), (0, 0, 0), (1, 1, 1), (0, 0, None)]
    totals: dict[Parents, float] = {}
    for parents in dags():
        logs = []
        for values in product((0, 1), repeat=3):
            filling = iter(values)
            filled = [dict(zip(NAMES, (next(filling) if c is None else c for c in row), strict=True)) for row in rows]
            logs.append(bde(filled, [""] * len(rows), parents, 1.0))
        totals[parents] = math.log(sum(map(math.exp, logs)))
    admitted = [total for parents, total in totals.items() if not parents[1] & {"A"} and not parents[0] & {"B"}]
    table = {name: [row[k] for row in rows] for k, name in enumerate(NAMES)}
    fitted = calibrant.learn_networks(table, forbid=["A -> B", "B -> A"])
    assert fitted.networks[0].score == pytest.approx(max(admitted), abs=1e-9)
    assert fitted.to_dict()["price"] == pytest.approx(max(totals.values()) - max(admitted), abs=1e-9)
    assert fitted.to_dict()["price"] > 0.1
    assert "price" not in calibrant.learn_networks(table).to_dict()


# --- Tables of 40 columns whose optimum is not proven soon: they end after counted steps ------------------------------
def noisy_network(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Draw 1,000 rows of 40 columns, each with up to three parents and a random table."""
    table = np.zeros((1_000, 40), np.int64)
    for v in range(40):
        parents: list[int] = rng.choice(v, min(v, int(rng.integers(0, 4))), replace=False).tolist() if v else []
        pattern = sum((table[:, u] << i for i, u in enumerate(parents)), np.zeros(1_000, np.int64))
        table[:, v] = rng.random(1_000) < rng.beta(0.5, 0.5, 1 << len(parents))[pattern]
    return table


def determined_columns(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Draw 1,000 rows of 13 free columns and 27 functions of two others each."""
    table = rng.integers(0, 2, (1_000, 40))
    for v in range(13, 40):
        first, second = rng.choice(v, 2, replace=False)
        table[:, v] = np.array([0, 0, 0, 1] if v % 2 else [0, 1, 1, 0])[2 * table[:, first] + table[:, second]]
    return table


@pytest.mark.parametrize(("draw", "knowledge"), [(noisy_network, {}), (determined_columns, {"forbid": ["c39 -> c0"]})])
def test_a_hard_table_takes_no_more_work_than_its_counted_steps(
    draw: Any, knowledge: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is added up beside the count: iterations times the size of each relaxation, and tests of parent sets."""
    needs("highspy")
    monkeypatch.setattr(large, "MAX_STEPS", 20_000_000)
    work: list[int] = []

    def solve(program: Any) -> bool:
        is_solved = run(program)
        work.append(program.getInfo().simplex_iteration_count * (program.getNumCol() + 2 * program.getNumRow()))
        return is_solved

    def perturb(*arguments: Any) -> tuple[int, int]:
        cost, tests = _kernels.perturb(*arguments)
        work.append(tests // tree.WORK_PER_STEP)
        return cost, tests

    monkeypatch.setattr(relaxation, "run", solve)
    monkeypatch.setattr(tree, "perturb", perturb)
    rows = draw(np.random.default_rng(7))
    table = {f"c{v}": rows[:, v] for v in range(40)}
    fitted = calibrant.learn_networks(table, **knowledge)
    assert 2_000_000 < sum(work) < 20_000_000
    assert max(work) < 10_000_000
    assert fitted.upper_bound is not None
    assert fitted.upper_bound > fitted.networks[0].score
    assert f"stopped after {large.MAX_STEPS:,} steps" in fitted.proof
    if knowledge:  # the search is the same without it
        again = calibrant.learn_networks(table, **knowledge)
        assert (again.networks, again.upper_bound) == (fitted.networks, fitted.upper_bound)


def test_a_required_cycle_of_one_statement_names_it_once() -> None:
    reason = "^require A -> B, B -> A requires the cycle A -> B -> A; take one of its arcs away"
    with pytest.raises(calibrant.CalibrantError, match=reason):
        calibrant.learn_networks({"A": [0, 1, 1, 0], "B": [0, 1, 0, 1]}, require="A -> B, B -> A")


def test_odds_below_ten_have_a_decimal() -> None:
    table = {"A": [0, 1, 1, 0, 1, 0, 1, 0], "B": [0, 1, 1, 0, 0, 1, 1, 0], "C": [0, 1, 0, 1, 1, 0, 1, 0]}
    learned = calibrant.learn_networks(table, graph="A -> B")
    assert learned.ranking is not None
    assert 1 < math.exp(learned.ranking.gap) < 9.9
    assert f"the best are {math.exp(learned.ranking.gap):.1f} times as probable" in str(learned)


# --- What is no part of the data: which value is 1, names, orders of rows and columns ---------------------------------
WORDS = {"A": ("no", "yes"), "B": ("f", "m"), "C": ("high", "low")}
OTHER_NAMES = {"A": "IL-6", "B": "not", "C": "3"}
CODED_ROWS = st.lists(
    st.tuples(*[st.integers(0, 1)] * 3, st.sampled_from(["", "", *NAMES])), min_size=3, max_size=9
).filter(lambda rows: all(len({row[k] for row in rows}) == 2 for k in range(3)))


def _stated(
    table: Mapping[str, Sequence[str]], names: Sequence[str], words: Sequence[str], **one: Any
) -> tuple[Any, ...]:
    """Return figures on networks, an effect and functions of the third column, with A, B, C for the names."""
    plain = dict(zip(names, NAMES, strict=True))
    effect = f"{names[2]}={words[0]} | do({names[0]}={words[1]})"
    found = calibrant.learn_networks(table, do="do", effect=effect, **one).to_dict()
    arcs = {(plain[parent], plain[child]): p for parent, child, p in found["arcs_by_dags"]}
    fitted = calibrant.fit(table, do="do", target=names[2], errors="front", **one).to_dict()
    optimal = {frozenset((plain[parent], plain[child]) for parent, child in network) for network in found["optimal"]}
    exact = {
        "optimal": optimal if found["optimal_networks"] <= 6 else found["optimal_networks"],
        "range": found["effect"]["range"] if found["optimal_classes"] == 1 else None,
        "functions": fitted["why"] and fitted["why"]["count"],
        "errors": fitted["front"][-1]["errors"],
    }
    numbers = [found["best_score"], found["log_evidence_dags"], found["effect"]["mean_dags"]]
    return exact, [*numbers, *(arcs[arc] for arc in sorted(arcs))]


@settings(max_examples=examples(60), deadline=None)
@given(CODED_ROWS, st.permutations(NAMES), st.sets(st.sampled_from(NAMES), min_size=1))
def test_codes_names_and_orders_change_no_network_effect_or_count(
    rows: list[tuple[Any, ...]], order: list[str], swapped: set[str]
) -> None:
    table = {name: [WORDS[name][row[k]] for row in rows] for k, name in enumerate(NAMES)}
    table["do"] = [row[3] for row in rows]
    words = (WORDS["C"][1], WORDS["A"][0])
    exact, numbers = _stated(table, NAMES, words)
    coding = calibrant.read_table(table, do="do").coding
    one = {name: coding[name]["zero"] for name in swapped}
    assert _stated(table, NAMES, words, one=one) == (exact, pytest.approx(numbers, abs=1e-9))
    other = {OTHER_NAMES[name]: [str(row[NAMES.index(name)]) for row in reversed(rows)] for name in order}
    other["do"] = [f"do({OTHER_NAMES[row[3]]})" if row[3] else "" for row in reversed(rows)]
    assert _stated(other, list(OTHER_NAMES.values()), ("1", "0")) == (exact, pytest.approx(numbers, abs=1e-9))
