"""Parts of suites: what is drawn of them apart is what is drawn of the whole."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from calibrant.bench.causalab.generation import LEAST_PART, MOST_PARTS
from calibrant.bench.causim.options import GenerateOptions
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.pools.item_options import read_item_options
from calibrant.bench.runs.jobs import HERE, Execution


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_all_places_in_order(name: str) -> None:
    for count in (0, 1, 7, 8, 9, 64, 65, 1000):
        parts = benchmark(name).suites.parts(count)
        assert list(chain.from_iterable(parts)) == list(range(count))
        if name not in ("logic", "blickets"):  # whose items depend on no earlier one: a part of one is no more work
            assert len(parts) <= MOST_PARTS


@pytest.mark.parametrize(
    ("name", "stated"), [("logic", ()), ("blickets", ()), ("blickets", ("budget=30",)), ("causim", ())]
)
def test_progress_counts_items(name: str, stated: tuple[str, ...], tmp_path: Path) -> None:
    of, seen = benchmark(name), list[tuple[int, int]]()
    suites, path = of.suites.names[:2], tmp_path / "pool.jsonl"
    options = read_item_options("generate", name, stated)
    write_drawn(of, path, suites, 3, 3, progress=lambda _, done, total: seen.append((done, total)), options=options)
    assert seen == [(done, 6) for done in range(7)]
    if not stated:
        whole = [of.items.record(item) for item in of.suites.draw(suites, 3, 3)]
        assert [of.items.record(item) for item in of.items.read_pool(path).items] == whole
    if name != "logic":  # an item is drawn when it is asked for, so progress comes meanwhile
        items = of.suites.iterate_part(suites[0], 3, range(10**9))
        assert next(items).id == of.suites.draw(suites[:1], 3, 1)[0].id


@pytest.mark.parametrize(("name", "count"), [("blickets", 200), ("causalab", 17), ("logic", 4)])
def test_progress_of_other_processes_comes_within_a_suite(name: str, count: int, tmp_path: Path) -> None:
    of, seen = benchmark(name), list[int]()
    written = []
    for execution in (HERE, Execution(workers=2)):
        path = tmp_path / f"{execution.workers}" / "pool.jsonl"
        path.parent.mkdir()
        seen.clear()
        write_drawn(
            of, path, of.suites.names[:1], 3, count, execution, progress=lambda _, done, all_: seen.append(done)
        )
        assert seen[0] == 0
        assert seen[-1] == count
        assert len(set(seen)) > 3
        assert seen == sorted(seen)
        written.append(path.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_the_questions_of_programs(workers: int, tmp_path: Path) -> None:
    """A program with fewer questions than it is to have counts as done; further programs count what was missing."""
    seen = list[tuple[str, int, int]]()
    request = GenerateRequest(
        tmp_path / "p.jsonl",
        "chain",
        1,
        None,
        Execution(workers=workers),
        lambda *state: seen.append(state),
        ["programs=3", "versions=1", "each=6", "types=intervention,abduction", "fill=true"],
    )
    lines = benchmark("causim").require(GENERATE).generate(request, GenerateOptions())
    requested = [(name, done, total) for name, done, total in seen if name == "p.jsonl"]
    assert requested == [("p.jsonl", 12 * programs, 36) for programs in range(4)]
    further = [state for state in seen if state[0] != "p.jsonl"]
    assert further
    assert any("further programs have" in line for line in lines)
    assert further[-1][1] == further[-1][2] > 0


@pytest.mark.parametrize("suite", ["3nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_freqparent"])
def test_laboratories_of_parts_are_those_of_the_whole_suite(suite: str) -> None:
    """Of three nodes there are so few topologies that later items have those of earlier ones again."""
    of, count = benchmark("causalab"), 2 * LEAST_PART + 3
    whole = list(of.suites.draw([suite], 6, count))
    parts = of.suites.parts(count)
    assert len(parts) == 3
    assert [of.items.record(item) for places in parts for item in of.suites.draw_part(suite, 6, places)] == list(
        map(of.items.record, whole)
    )


def test_a_part_of_any_suite_is_what_stands_at_its_places() -> None:
    for name in ("blickets", "causim", "replayscm"):
        of = benchmark(name)
        suite = of.suites.names[0]
        assert list(of.suites.draw_part(suite, 2, range(3, 5))) == list(of.suites.draw([suite], 2, 9)[3:5])
