"""Items of published networks: windows against the networks themselves, and counts against a listing of all SCMs."""

from __future__ import annotations

import random
from itertools import combinations, product
from pathlib import Path

import pytest

from calibrant.audits.replayscm.generation.generate import generate_from_networks
from calibrant.audits.replayscm.generation.published import NETWORK_STRATA, Window, draw_windows
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.networks.formulas import NetworkError
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.networks.network import parse_network
from calibrant.solvers.networks.published_parts import Source, UnreachableStratumError, read_folder, valid_names
from tests.support.benchmarks.networks import RandomFormula, named_in, random_formulas, text_of
from tests.support.effort import examples

SMALL = NETWORK_STRATA["network_n8_k2"]
TOY = "a, b & !c\nb, a | d\nc, !b\nd, d\ne, c & (a | d)\n"


def _source(text: str, format_name: str = "bnet") -> Source:
    return Source(parse_network(text.encode(), "", format_name))


def _windows(count: int) -> list[tuple[dict[str, RandomFormula], Window]]:
    """Return windows of random networks with the formulas behind them; networks without a window are passed over."""
    drawn: list[tuple[dict[str, RandomFormula], Window]] = []
    number = 0
    while len(drawn) < count:
        number += 1
        generator = random.Random(number)
        formulas = random_formulas(generator, generator.randint(4, 7))
        for stratum in (SMALL, NETWORK_STRATA["network_n8_k4"]):
            try:
                drawn.append((formulas, next(draw_windows([_source(text_of(formulas, "bnet"))], stratum, generator))))
            except UnreachableStratumError:
                continue
    return drawn


def test_mechanisms_of_windows_are_the_functions_of_the_network_in_all_rows() -> None:
    num_rows = 0
    for formulas, window in _windows(examples(40)):
        model, names = window.latent.model, window.names
        neutral = {f"g{place}": name for place, name in enumerate(names, start=1)}
        every = sorted({*formulas, *(name for formula in formulas.values() for name in named_in(formula))})
        constants = {name: value for name in every if (value := _constant(formulas, name)) is not None}
        assert {neutral[name] for name in model.mechanisms} == {*window.endogenous}
        for variable, mechanism in model.mechanisms.items():
            sources = sorted(mechanism.mentioned)
            for values in product((0, 1), repeat=len(sources)):
                state = dict(zip(sources, values, strict=True))
                row = dict.fromkeys(every, 0) | {neutral[s]: v for s, v in state.items()} | constants
                assert evaluate(mechanism, state) == formulas[neutral[variable]].value(row)
                num_rows += 1
        assert all(model.order.index(v) > model.order.index(p) for v, m in model.mechanisms.items()
                   for p in m.mentioned if p in model.mechanisms)  # fmt: skip
    assert num_rows > 60


def _constant(formulas: dict[str, RandomFormula], name: str) -> int | None:
    """Return the value of a node once constants are put in, by repeated listing of all rows; None if it varies."""
    constants: dict[str, int] = {}
    while True:
        before = dict(constants)
        for target, formula in formulas.items():
            free = sorted(named_in(formula) - constants.keys())
            values = {
                formula.value(constants | dict(zip(free, row, strict=True)))
                for row in product((0, 1), repeat=len(free))
            }
            if len(values) == 1:
                constants[target] = values.pop()
        if constants == before:
            return constants.get(name)


def test_windows_keep_the_bounds_of_their_stratum() -> None:
    for _, window in _windows(examples(40)):
        degrees = [len(window.source.functions[name].inputs) for name in window.endogenous]
        assert max(degrees) == window.in_degree <= 4
        assert 2 <= len(window.endogenous) < len(window.names) <= 8
        assert not any(window.source.functions[name].is_identity(name) for name in window.endogenous)


@pytest.mark.parametrize("seed", range(examples(3)))
def test_the_number_that_fits_is_that_of_a_listing_of_all_models(seed: int) -> None:
    sources, item, attempt = [_source(TOY)], None, 0
    while item is None or len(item.task.variables) > 4:
        item, attempt = generate_from_networks(sources, SMALL, 100 * seed + attempt).problem, attempt + 1
    assert item.sealed.labels["fits"] == str(_num_models(item))
    assert (item.sealed.labels["evidence"] == "decided") is (item.sealed.labels["fits"] == "1")


def _num_models(item: Problem) -> int:
    """Count acyclic choices of functional parents, times functions that depend on each and agree with every row."""
    variables, roots = item.task.variables, item.task.disclosure.roots or ()
    inner = [v for v in variables if v not in roots]
    by_parents = {v: _functions_by_parents(item, v) for v in inner}
    total = 0
    for choice in product(*(by_parents[v] for v in inner)):
        graph = dict(zip(inner, choice, strict=True))
        placed = set(roots)
        while added := [v for v in inner if v not in placed and set(graph[v]) <= placed]:
            placed.update(added)
        if len(placed) == len(variables):
            number = 1
            for v in inner:
                number *= by_parents[v][graph[v]]
            total += number
    return total


def _functions_by_parents(item: Problem, variable: str) -> dict[tuple[str, ...], int]:
    others, found = [v for v in item.task.variables if v != variable], {}
    for size in range(len(others) + 1):
        for parents in combinations(others, size):
            number = 0
            for table in product((0, 1), repeat=1 << size):
                depends = all(any(table[row] != table[row ^ 1 << i] for row in range(1 << size)) for i in range(size))
                number += depends and all(
                    table[sum((world.column(p) >> row & 1) << i for i, p in enumerate(parents))]
                    == world.column(variable) >> row & 1
                    for world in item.task.training.worlds
                    if variable not in world.intervention.targets
                    for row in range(world.num_rows)
                )
            if number:
                found[parents] = number
    return found


def test_format_order_and_spelling_of_files_change_no_item() -> None:
    twisted = random.Random(5)
    for number in range(examples(5)):
        generator = random.Random(900 + number)
        formulas = random_formulas(generator, 7)
        sources = [[_source(text_of(formulas, form, twisted), form)] for form in ("bnet", "rules", "booleannet")]
        try:
            items = [generate_from_networks(source, SMALL, 1).problem for source in sources]
        except UnreachableStratumError:
            continue
        assert items[0] == items[1] == items[2]


def test_names_are_those_of_the_window_as_variables() -> None:
    assert valid_names(["IL-2", "IL_2", "and", "2x", "Ca2+", "p53"]) == ["IL_2_2", "IL_2", "_and", "_2x", "Ca2_", "p53"]


def test_networks_without_a_window_are_refused() -> None:
    with pytest.raises(UnreachableStratumError, match="none of 200 windows of the networks is of stratum"):
        next(draw_windows([_source("a, b\nb, a\n")], NETWORK_STRATA["network_n30_k6"], random.Random(1)))
    with pytest.raises(UnreachableStratumError):
        next(draw_windows([_source("a, !a\nb, b\n")], SMALL, random.Random(1)))


def test_folders_list_what_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "toy.bnet").write_text(TOY)
    (tmp_path / "below" / "again.txt").write_text(TOY.replace(", ", " = ").replace("!", "not "))
    (tmp_path / "notes.md").write_text("no network")
    (tmp_path / "open.aeon").write_text("a -> b\n")
    folder = read_folder(tmp_path)
    assert [network.nodes for network in folder.networks.values()] == [("a", "b", "c", "d", "e")]
    assert list(folder.repeats) == [("toy.bnet", "below/again.txt")]
    assert [path for path, _ in folder.refusals] == ["notes.md", "open.aeon"]
    assert folder.refusals[1][1] == "no function of b: the file serves as a prior, not as a model"
    assert list(folder.lines())[1:] == [f"not used: {path}: {reason}" for path, reason in folder.refusals]
    (tmp_path / "below" / "again.txt").unlink()
    (tmp_path / "toy.bnet").unlink()
    with pytest.raises(NetworkError, match="no file is a network that can be used"):
        read_folder(tmp_path)
    with pytest.raises(NetworkError, match="is no folder"):
        read_folder(tmp_path / "missing")
