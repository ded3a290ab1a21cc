"""Synchronous series: every field of the shared vectors, and the readings of clamped genes."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import pytest

from calibrant.bench.lab.logic import compare_series
from calibrant.dsl.errors import PoolError, RefusedError
from calibrant.dsl.logic.item import Edge, LogicError, Model, edges_by_target
from calibrant.dsl.logic.reference import clauses_into, formulas_over
from calibrant.dsl.logic.series import Series, SeriesTask, count_errors, parse_series, readings
from calibrant.solvers.logic.series import count_functions, solve_series
from calibrant.solvers.outcome import Found, OutOfBudget
from tests.support.benchmarks.logic import Vector, series_text, vectors_of
from tests.support.effort import effort


def _task(vector: Vector) -> SeriesTask:
    return SeriesTask(
        tuple(vector["genes"]),
        tuple(Edge(*edge) for edge in vector["pkn"]),
        tuple(Series(tuple(map(tuple, entry["states"])), entry["clamped"]) for entry in vector["series"]),
        vector["max_clause"],
        vector["extra_errors"],
    )


def test_formulas_of_the_vectors() -> None:
    for vector in vectors_of("series"):
        expected, outcome = vector["expected"], solve_series(_task(vector))
        assert isinstance(outcome, Found)
        family = outcome.value
        for gene in family.genes:
            assert list(gene.optimum) == expected["genes"][gene.gene]["optimum"], vector["id"]
            assert [list(pair) for pair in gene.errors.items()] == expected["genes"][gene.gene]["errors"]
        assert (family.least_errors, family.limit) == (expected["least_errors"], expected["limit"])
        assert str(family.count) == expected["count"]
        assert {str(edge): str(number) for edge, number in family.edges.items()} == expected["edges"]
        assert sum(count_errors(family.witness, family.task, g) for g in family.task.genes) == family.least_errors


def test_functions_of_the_vectors() -> None:
    for vector in vectors_of("series"):
        outcome = count_functions(_task(vector), vector["max_parents"])
        assert isinstance(outcome, Found)
        functions = {
            gene.gene: {
                "errors": gene.errors,
                "functions": {"+".join(parents): number for parents, number in gene.functions.items()},
            }
            for gene in outcome.value
        }
        assert functions == vector["expected"]["functions"], vector["id"]


def test_a_series_gives_no_reading_of_what_it_clamps() -> None:
    states = ((0, 1), (1, 1), (0, 1))
    task = SeriesTask(("a", "b"), (), (Series(states, {"b": 1}),))
    assert list(readings(task, "b")) == []
    assert [after for _, after in readings(task, "a")] == [1, 0]


@pytest.mark.parametrize(
    ("series", "problem"),
    [
        (Series(((0, 2),)), "a state has a 0 or 1"),
        (Series(((0,),)), "for each of 2 genes"),
        (Series(((0, 0),), {"b": 1}), "'b' is clamped to 1 and has another value"),
        (Series(((0, 0),), {"c": 1}), "'c' is no gene"),
    ],
)
def test_series_that_are_refused(series: Series, problem: str) -> None:
    with pytest.raises(LogicError, match=problem):
        SeriesTask(("a", "b"), (), (series,))


def test_too_many_formulas() -> None:
    genes = tuple(f"g{i}" for i in range(7))
    prior = tuple(Edge(gene, 1, "g0") for gene in genes)
    outcome = solve_series(SeriesTask(genes, prior, ()))
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reached == "over 1,000,000 formulas of gene g0: try a smaller --max-clause"
    assert isinstance(solve_series(SeriesTask(genes, prior, (), max_clause=1)), Found)


def test_a_file_of_series() -> None:
    text = "a,series,b\n0,x,1\n1,x,1\n0,y,0\n"
    genes, series = parse_series(text)
    assert (genes, [entry.states for entry in series]) == (("a", "b"), [((0, 1), (1, 1)), ((0, 0),)])
    assert parse_series(series_text(genes, series)) == (genes, series)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("a,b\n0,1\n", "no column 'series'"),
        ("series,a\n1,0\n,1\n2,0\n,1\n", "line 3: column 'series': empty, where other rows name their series"),
        (",series,a\n1,1,0\n", "line 1: column 1 has no name; take out names of rows"),
        ("a,a,series\n0,1,1\n", "occurs twice"),
        ("a,series\n0.5,1\n", "line 2: column 'a': '0.5'; a value is 0 or 1"),
        ("a,series\n", "no row"),
        ("series\n1\n", "no column of a gene"),
        ("a,series\n1\n", "1 fields; the header has 2"),
    ],
)
def test_a_file_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PoolError, match=problem):
        parse_series(text, "s.csv")


def _random_task(generator: random.Random) -> SeriesTask:
    """Return a small task with unknown cells, some held genes and edges of either sign."""
    genes = ("a", "b", "c")[: generator.randint(2, 3)]
    edges = {Edge(generator.choice(genes), generator.choice((1, -1)), gene) for gene in genes for _ in range(2)}
    series = []
    for _ in range(generator.randint(1, 2)):
        held = {gene: generator.randint(0, 1) for gene in genes if generator.random() < 0.15}
        states = tuple(
            tuple(held.get(gene, generator.choice((0, 1, 0, 1, None))) for gene in genes)
            for _ in range(generator.randint(2, 4))
        )
        series.append(Series(states, held))
    return SeriesTask(genes, tuple(sorted(edges)), tuple(series), generator.choice((0, 1)), generator.randint(0, 1))


def _value(formula: Model, state: dict[str, int]) -> int:
    return any(all(state[name] == (sign == 1) for name, sign in clause.literals) for clause in formula)


def _completed(task: SeriesTask) -> Iterator[SeriesTask]:
    """Yield the task with every completion of its unknown cells."""
    flat = [value for series in task.series for state in series.states for value in state]
    for values in product(*((0, 1) if value is None else (value,) for value in flat)):
        cells = iter(values)
        yield replace(
            task,
            series=tuple(
                replace(series, states=tuple(tuple(next(cells) for _ in state) for state in series.states))
                for series in task.series
            ),
        )


def test_series_as_frames_and_spreadsheets_write_them_are_the_same() -> None:
    plain = parse_series("series,a,b\n1,1,NA\n1,0,1\n2,1,1\n2,0,\n")
    assert parse_series("Series,a,b\n1,1.0,\n1,0.0,1.0\n2,1.0,1.0\n2,0.0,\n") == plain
    unnamed = parse_series("series,a,b\n,1,NA\n,0,1\n")[1]  # one series may lack a name
    assert unnamed == plain[1][:1]
    genes, _ = parse_series("series,Series,b\n1,1,0\n1,0,1\n")
    assert genes == ("Series", "b")


def test_gaps_against_listing_of_formulas_and_completions() -> None:
    generator = random.Random(49)
    compared = joined = 0
    for _ in range(effort(60, 300)):
        task = _random_task(generator)
        by_target = edges_by_target(task.prior)
        listed: dict[str, list[Model]] = {
            gene: [*formulas_over(clauses_into(by_target[gene], task.max_clause))]
            if gene in by_target
            else [frozenset()]
            for gene in task.genes
        }
        outcome = solve_series(task)
        assert isinstance(outcome, Found)
        family = outcome.value
        for gene in family.genes:
            errors = Counter(count_errors(formula, task, gene.gene) for formula in listed[gene.gene])
            assert gene.errors == dict(errors)
        models = [frozenset().union(*formulas) for formulas in product(*listed.values())]
        wrong = [sum(count_errors(model, task, gene) for gene in task.genes) for model in models]
        members = [
            model for model, number in zip(models, wrong, strict=True) if number <= min(wrong) + task.extra_errors
        ]
        assert (family.count, family.least_errors) == (len(members), min(wrong))
        fixed = Counter[tuple[int, ...]]()
        for model in members:
            for state in product((0, 1), repeat=len(task.genes)):
                values = dict(zip(task.genes, state, strict=True))
                formulas = {gene: frozenset(c for c in model if c.target == gene) for gene in task.genes}
                fixed[state] += all(_value(formula, values) == values[gene] for gene, formula in formulas.items())
        for state, number in fixed.items():
            assert family.fixed(state) == number
        assert family.mean_fixed_points() == Fraction(fixed.total(), len(members))
        compared += len(members)
        if 0 < task.num_unknown_cells <= 6:
            completed = [*_completed(task)]
            fits = sum(
                any(not any(count_errors(model, whole, gene) for gene in task.genes) for whole in completed)
                for model in models
            )
            assert family.joint() == fits
            joined += fits > 0
    assert compared > 300
    assert joined > 10


def test_mean_fixed_points_of_more_models_than_64_bits_count() -> None:
    genes = tuple("abcdef")
    prior = tuple(Edge(source, 1, target) for target in genes for source in genes if source != target)
    states = tuple(tuple(map(int, state)) for state in ("010011", "101100", "011010", "110001"))
    outcome = solve_series(SeriesTask(genes, prior, (Series(states),), extra_errors=3))
    assert isinstance(outcome, Found)
    family = outcome.value
    assert family.count > 1 << 64
    total = sum(
        family.fixed(state) for state in product((0, 1), repeat=len(genes))
    )  # each state by itself, in integers
    assert family.mean_fixed_points() == Fraction(total, family.count)


def test_functions_with_gaps_against_listing() -> None:
    generator = random.Random(7)
    compared = 0
    for _ in range(effort(40, 300)):
        task = _random_task(generator)
        outcome = count_functions(task, 2)
        assert isinstance(outcome, Found)
        for entry in outcome.value:
            numbers: dict[tuple[str, ...], Counter[int]] = {}
            for size in range(3):
                for parents in combinations(task.genes, size):
                    for table in product((0, 1), repeat=1 << size):
                        if _depends_on_all(table, size):
                            wrong = _wrong_readings(task, entry.gene, parents, table)
                            numbers.setdefault(parents, Counter())[wrong] += 1
            least = min(min(counts) for counts in numbers.values())
            assert entry.errors == least
            assert entry.functions == {p: counts[least] for p, counts in sorted(numbers.items()) if counts[least]}
            compared += len(entry.functions)
    assert compared > 150


def _depends_on_all(table: Sequence[int], size: int) -> bool:
    return all(any(table[row] != table[row ^ 1 << i] for row in range(len(table))) for i in range(size))


def _wrong_readings(task: SeriesTask, gene: str, parents: Sequence[str], table: Sequence[int]) -> int:
    wrong = 0
    for before, after in readings(task, gene):
        options = [(0, 1) if (value := before[task.genes.index(name)]) is None else (value,) for name in parents]
        rows = [sum(bit << i for i, bit in enumerate(bits)) for bits in product(*options)]
        wrong += all(table[row] != after for row in rows)
    return wrong


def test_what_unknown_cells_may_be_is_bounded() -> None:
    genes = tuple(f"g{i:02}" for i in range(18))
    states = ((None,) * 18, (1,) * 18)
    prior = tuple(Edge(gene, 1, "g00") for gene in genes)
    outcome = solve_series(SeriesTask(genes, prior, (Series(states),), max_clause=1))
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reached == "over 16 unknown cells in a reading of gene g00"
    functions = count_functions(SeriesTask(genes, (), (Series(states),)), 5)
    assert isinstance(functions, OutOfBudget)
    assert functions.reached == "unknown cells: functions are listed, to 4 parents"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("series,set,a,b\n1,a,1,0\n1,b,1,0\n", "set-changes", 3),
        ("series,set,a,b\n1,a=0,1,0\n", "clamp-value", 2),
        ("series,set,a,b\n1,a=2,1,0\n", "clamp-value", 2),
        ("series,set,a,b\n1,a,,0\n", "clamp-value", 2),
        ("series,set,a,b\n1,a=0;a=1,,0\n", "clamp-value", 2),
        ("series,set,a,b\n1,,1,0\n1,do(z),1,0\n", "unknown-name", 3),
        ("series,set,a,b\n1,3,1,0\n", "unknown-name", 2),
        ("series,set,a,b\n1,do(a,1,0\n", "unknown-name", 2),
        ("series,set,2,1\n1,,1,0\n1,2,1,0\n", "unknown-name", 3),  # a name, and the position of another gene
    ],
)
def test_held_genes_that_are_refused(text: str, reason: str, line: int) -> None:
    with pytest.raises(RefusedError) as caught:
        parse_series(text)
    assert (caught.value.reason, caught.value.line) == (reason, line)


@pytest.mark.parametrize("cell", ["b", "do(b)", "b=1", "do(b=1)", "2", "2.0", "DO(b=1)", "do( b = 1 )", "b=1.0"])
def test_forms_of_held_genes(cell: str) -> None:
    text = f"series,set,a,b\n1,{cell},1,1\n1,,0,\n2,none,0,NA\n"
    _, series = parse_series(text)
    assert [entry.clamped for entry in series] == [{"b": 1}, {}]
    assert series[0].states == ((1, 1), (0, 1))


@pytest.mark.parametrize(
    ("head", "cell", "held"),
    [
        ("a,b", '"do(a=1, b)"', {"a": 1, "b": 0}),
        ("a,b", "do(a) do(b=0)", {"a": 1, "b": 0}),
        ("a,b", "a=1;a", {"a": 1}),
        ("a,b", "1;2", {"a": 1, "b": 0}),
        ("a,b", "0.0", {}),
        ("a,b", "obs", {}),
        ("obs,b", "obs", {"obs": 1}),  # a cell that is a name is that gene
        ("2,1", "do(2)", {"2": 1}),
        ("1,2", "1", {"1": 1}),
    ],
)
def test_genes_held_together_and_names_that_are_words(head: str, cell: str, held: dict[str, int]) -> None:
    _, (series,) = parse_series(f"series,{head},set\n1,1,0,{cell}\n1,1,0,\n")
    assert series.clamped == held


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R on this machine; Debian has r-cran-boolnet")
def test_functions_are_those_of_boolnet() -> None:
    has_boolnet = ["Rscript", "-e", 'quit(status = !requireNamespace("BoolNet", quietly = TRUE))']
    if subprocess.run(has_boolnet, check=False, capture_output=True).returncode:
        pytest.skip("R has no BoolNet; Debian has r-cran-boolnet")
    comparison = compare_series(10, 3)
    assert comparison.functions > 100
    assert comparison.differences == ()
