"""Labels of CausaLab computed again, and the calibration rows over the released suites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrant.audits.causalab.items import generate_labelled
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.lab import causalab
from calibrant.bench.lab.causalab import main, method_results, recompute_labels, relabelled_suite, weighted_graphs
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.causalab.generation import Plan, with_labels
from calibrant.dsl.causalab.item import LabItem
from tests.support.benchmarks.causalab import released_suite
from tests.support.shared import shared_file


# --- Labels computed again: the graphs that are listed, a false label that is noticed, and the command ----------------
def test_every_weighted_graph_is_listed_once() -> None:
    """Acyclic graphs with three kinds of edges on 1, 2, 3 and 4 nodes: 1, 7, 289, 63,487; given the frequency's row."""
    for nodes, graphs in ((2, 1), (3, 7), (4, 289)):
        listed = weighted_graphs(nodes, sink=True)
        assert len(listed) == graphs * (4 ** (nodes - 1) - 1)
        assert len({graph.tobytes() for graph in listed}) == len(listed)
    assert len(weighted_graphs(3, sink=False)) == 289 - 7 * 4**2  # without those whose last node has no parent
    assert len(weighted_graphs(4, sink=False)) == 63_487 - 289 * 4**3


@pytest.mark.parametrize(
    ("suite", "count"), [("3nodes", 8), ("4nodes", 4), ("4nodes_freqparent", 2), ("4nodes_hidden_n1", 2)]
)
def test_labels_of_generated_items_are_those_of_brute_force(suite: str, count: int) -> None:
    found = relabelled_suite(suite, seed=11, count=count)
    assert found.wrong == ()
    assert len(found.labels) == count
    assert found.compared["winnable"] == found.compared["members"] == count
    assert found.compared.get("fewest_settings", 0) == (0 if "hidden" in suite else count)


def test_the_digest_is_that_of_the_items() -> None:
    one, two, other = (relabelled_suite("6nodes_golden", seed=seed, count=2) for seed in (11, 11, 12))
    assert one.digest == two.digest != other.digest
    assert one.wrong == ()


@pytest.mark.parametrize("label", ["fewest_settings", "members", "members_bounded", "imec", "winnable", "decidable"])
def test_a_false_label_is_noticed(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def falsified(plan: Plan, seed: int, count: int) -> Iterator[LabItem]:
        for item in generate_labelled(plan, seed, count):
            labels = item.sealed.labels
            yield with_labels(item, {**labels, label: labels[label] + 1})

    monkeypatch.setattr(causalab, "generate_labelled", falsified)
    found = relabelled_suite("3nodes", seed=1, count=2)
    assert [f": {label} is " in text for text in found.wrong] == [True, True]


def test_an_item_that_depends_on_how_many_are_drawn_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        causalab, "generate_labelled", lambda plan, seed, count: generate_labelled(plan, seed + count, count)
    )
    found = relabelled_suite("3nodes", seed=1, count=4)
    assert sum("drawn again it is another one" in text for text in found.wrong) == 2


def test_labels_travel_with_items_that_are_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("labels") / "pool.jsonl"
    assert write_drawn(BENCHMARK, path, ["4nodes"], 3, 2) == 2
    for item in BENCHMARK.items.read_pool(path).items:
        again = recompute_labels(item)
        assert again == {name: item.sealed.labels[name] for name in again}
        assert "fewest_settings" in again
        assert "fewest_settings" not in BENCHMARK.items.prompt(item)


def test_the_command_prints_a_line_for_each_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["labels", "--count", "2", "--suites", "3nodes", "4nodes_golden"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["Suite", "3nodes", "4nodes_golden"]
    assert [line.split()[1] for line in lines[1:]] == ["2", "2"]
    with pytest.raises(SystemExit):
        main(["labels", "--count", "0"])


# The calibration rows over the released suites; what they stand at is in tests/bench/causalab/test_benchmark.py
def test_results_do_not_depend_on_the_number_of_processes() -> None:
    folder = shared_file("data", part="causalab")
    here, there = (method_results(folder, ["3nodes"], ["exact", "abstain"], 1, "released", jobs) for jobs in (1, 2))
    assert here == there
    assert list(here) == [("3nodes", "exact"), ("3nodes", "abstain")]
    assert {one.episodes for one in here.values()} == {len(released_suite("3nodes"))}
