"""Networks against listings of rows, states, subsets and formulas, which share nothing with the readers and solvers."""

from __future__ import annotations

import random
import time
from itertools import combinations, product
from pathlib import Path

import pytest

from calibrant.dsl.networks.formulas import (
    AND,
    IFF,
    NOT,
    OR,
    XOR,
    Count,
    NetworkError,
    Node,
    cover,
    derive_function,
    evaluate,
    from_bits,
    mentioned_names,
)
from calibrant.dsl.networks.network import Difference
from calibrant.solvers.networks.cut import MAX_EXACT_NODES, least_feedback_set
from calibrant.solvers.networks.network import (
    MAX_FREE_NODES,
    BooleanNetwork,
    find_difference,
    find_fixed_points,
    find_recurrent_values,
    parse_network,
    prove_signs,
    read_network,
    signs_of_read_once,
)
from calibrant.solvers.outcome import Found, OutOfBudget
from tests.support.benchmarks.networks import SPELLINGS, RandomFormula, named_in, random_formulas, text_of
from tests.support.effort import examples
from tests.support.replayscm.brute_force import is_acyclic

NUM_NETWORKS = examples(60)


def _networks(seed: int, most_nodes: int = 5) -> list[tuple[dict[str, RandomFormula], random.Random]]:
    drawn = []
    for number in range(NUM_NETWORKS):
        generator = random.Random(seed * 1_000_000 + number)
        drawn.append((random_formulas(generator, generator.randint(1, most_nodes)), generator))
    return drawn


def _read(formulas: dict[str, RandomFormula], format_name: str = "bnet") -> BooleanNetwork:
    return parse_network(text_of(formulas, format_name).encode(), "", format_name)


def _rows(names: list[str]) -> list[dict[str, int]]:
    return [dict(zip(names, values, strict=True)) for values in product((0, 1), repeat=len(names))]


def _flips(formula: RandomFormula, name: str, names: list[str]) -> set[int]:
    """Return the changes of the value when a name rises, over all rows."""
    rows = [row for row in _rows(names) if not row[name]]
    return {formula.value({**row, name: 1}) - formula.value(row) for row in rows} - {0}


@pytest.mark.parametrize("format_name", SPELLINGS)
def test_functions_and_signs_are_those_of_a_listing(format_name: str) -> None:
    compared = 0
    for formulas, _ in _networks(1):
        network = _read(formulas, format_name)
        for name, formula in formulas.items():
            names, function = sorted(named_in(formula)), network.functions[name]
            signs = {source: _flips(formula, source, names) for source in names}
            essential = [source for source in names if signs[source]]
            words = ["both" if len(signs[s]) == 2 else "+" if 1 in signs[s] else "-" for s in essential]
            assert ([*function.inputs], [*function.signs]) == (essential, words)
            assert {*network.inessential.get(name, ())} == {*names} - {*essential}
            for row in _rows(names):
                index = sum(row[source] << i for i, source in enumerate(function.inputs))
                assert function.table is not None
                assert int(function.table[index]) == formula.value(row)
                compared += 1
    assert compared > 5 * NUM_NETWORKS


@pytest.mark.parametrize("format_name", SPELLINGS)
def test_order_and_spelling_change_nothing(format_name: str) -> None:
    for formulas, generator in _networks(2):
        plain = _read(formulas, format_name)
        twisted = parse_network(text_of(formulas, format_name, generator).encode(), "", format_name)
        first, second = plain.to_dict(), twisted.to_dict()
        assert first == second
        assert plain.compare(twisted).is_equal


def test_written_networks_are_read_as_the_same() -> None:
    for formulas, _ in _networks(4):
        network = _read(formulas)
        assert parse_network(network.to_bnet().encode()).digest == network.digest
        again = parse_network(network.to_sbml().encode(), names="name")
        assert again.digest == network.digest
        assert [*again.edges()] == [*network.edges()] or not network.inputs
        assert again.declared == ()


def test_comparison_gives_the_first_row_that_differs() -> None:
    num_different = 0
    for formulas, generator in _networks(5):
        changed = {**formulas}
        name = generator.choice([*formulas])
        changed[name] = RandomFormula(generator, sorted({*formulas, *named_in(formulas[name])}))
        first, second = _read(formulas), _read(changed)
        names = sorted({*first.functions[name].inputs, *second.functions[name].inputs})
        every = sorted(named_in(formulas[name]) | named_in(changed[name]) | {*names})
        different = []
        for values in product((0, 1), repeat=len(names)):
            row = dict.fromkeys(every, 0) | dict(zip(reversed(names), values, strict=True))
            if formulas[name].value(row) != changed[name].value(row):
                different.append(({n: row[n] for n in names}, formulas[name].value(row), changed[name].value(row)))
        found = [d for d in first.compare(second).differences if d.node == name]
        assert [(dict(d.row), d.first, d.second) for d in found] == different[:1]
        num_different += bool(different)
    assert num_different > NUM_NETWORKS / 5


def test_attractors_and_fixed_points_are_those_of_a_walk_from_every_state() -> None:
    for formulas, generator in _networks(6):
        network = _read(formulas)
        nodes = [*network.nodes]
        clamps = {name: generator.randint(0, 1) for name in nodes if generator.random() < 0.2}
        free = [name for name in nodes if name not in clamps]

        def step(
            state: str,
            nodes: list[str] = nodes,
            clamps: dict[str, int] = clamps,
            formulas: dict[str, RandomFormula] = formulas,
        ) -> str:
            row = dict(zip(nodes, map(int, state), strict=True))
            values = {n: formulas[n].value(row) if n in formulas else row[n] for n in nodes} | clamps
            return "".join(str(values[n]) for n in nodes)

        basins: dict[tuple[str, ...], int] = {}
        for row in _rows(free):
            state = "".join(str((row | clamps)[name]) for name in nodes)
            path = [state]
            while (state := step(state)) not in path:
                path.append(state)
            cycle = tuple(sorted(path[path.index(state) :]))
            basins[cycle] = basins.get(cycle, 0) + 1
        expected = sorted((len(cycle), cycle[0], basin) for cycle, basin in basins.items())
        attractors, fixed_points = network.attractors(clamps), network.fixed_points(clamps)
        assert isinstance(attractors, Found)
        assert isinstance(fixed_points, Found)
        assert [(a.period, a.state, a.basin) for a in attractors.value] == expected
        assert [*fixed_points.value.states] == sorted(cycle[0] for cycle in basins if len(cycle) == 1)
        assert sum(a.basin for a in attractors.value) == 2 ** len(free)
        columns = zip(*(state for cycle in basins for state in cycle), strict=True)
        values = {name: "".join(sorted({*column})) for name, column in zip(nodes, columns, strict=True)}
        assert find_recurrent_values(network, clamps, len(free)) == values
        assert find_recurrent_values(network, clamps, len(free) - 1) is None


def test_fixed_points_of_many_nodes_are_counted_by_sat() -> None:
    lines = [f"a{i}, a{i}" for i in range(3)] + [f"b{i}, !a{i % 3} | b{i}" for i in range(40)]
    network = parse_network("\n".join(lines).encode())
    outcome = network.fixed_points({"b0": 0, **{f"b{i}": 1 for i in range(1, 40)}})
    assert isinstance(outcome, Found)
    assert len(outcome.value.states) == 8
    assert isinstance(network.attractors(), OutOfBudget)
    assert len(network.nodes) > MAX_FREE_NODES
    first = find_fixed_points(network, limit=20)
    assert isinstance(first, Found)
    assert (len(first.value.states), first.value.is_complete) == (20, False)


def test_feedback_sets_are_the_first_least_of_all_subsets() -> None:
    sizes = set()
    for number in range(NUM_NETWORKS):
        generator = random.Random(number)
        names = [f"n{i}" for i in range(generator.randint(1, 7))]
        graph = {name: [other for other in names if generator.random() < 0.35] for name in names}
        feedback, is_least = least_feedback_set(graph)
        expected = next(
            chosen
            for size in range(len(names) + 1)
            for chosen in combinations(names, size)
            if is_acyclic({n: tuple(s) for n, s in graph.items() if n not in chosen})
        )
        assert (feedback, is_least) == (expected, True)
        sizes.add(len(feedback))
    assert len(sizes) > 3


def test_a_large_feedback_set_is_minimal_and_not_called_least() -> None:
    names = [f"n{i}" for i in range(MAX_EXACT_NODES + 20)]
    generator = random.Random(1)
    graph = {name: generator.sample(names, 2) for name in names}
    feedback, is_least = least_feedback_set(graph)
    assert not is_least
    assert is_acyclic({n: tuple(s) for n, s in graph.items() if n not in feedback})
    for name in feedback:
        assert not is_acyclic({n: tuple(s) for n, s in graph.items() if n not in feedback or n == name})


def test_mechanisms_of_a_cut_agree_with_the_network_in_all_rows() -> None:
    compared = 0
    for formulas, _ in _networks(7):
        network = _read(formulas)
        cut = network.cut()
        assert cut.feedback is not None
        assert {*cut.constants, *cut.inputs, *cut.feedback, *cut.mechanisms} == {*network.nodes}
        assert is_acyclic({name: function.inputs for name, function in cut.mechanisms.items()})
        assert network.cut([*cut.constants, *cut.mechanisms]).mechanisms == cut.mechanisms  # constants leave
        for name, function in cut.mechanisms.items():
            for row in _rows([n for n in network.nodes if n not in cut.constants]):
                index = sum(row[source] << i for i, source in enumerate(function.inputs))
                assert function.table is not None
                assert int(function.table[index]) == formulas[name].value({**row, **cut.constants})
                compared += 1
    assert compared > NUM_NETWORKS


def test_wide_functions_agree_with_tables() -> None:
    for formulas, _ in _networks(8):
        network = _read(formulas)
        for function in network.functions.values():
            names = sorted(mentioned_names(function.nodes))
            assert prove_signs(function.nodes, names) == dict(zip(function.inputs, function.signs, strict=True))
        functions = [*network.functions.values()]
        for first, second in combinations(functions, 2):
            row = find_difference(first, second)
            inputs = sorted({*first.inputs, *second.inputs})
            rows = [dict(zip(reversed(inputs), values, strict=True)) for values in product((0, 1), repeat=len(inputs))]
            differing = [r for r in rows if _value(first, r) != _value(second, r)]
            assert row == (differing[0] if differing else None)


@pytest.mark.parametrize("formula", ["B[-1]", "all[d=-2..-1](B)", "ANY[d=-2..-1](B)", "timeis(2)"])
def test_delays_of_boolnet_are_temporal(formula: str) -> None:
    with pytest.raises(NetworkError) as refusal:
        parse_network(f"A, !{formula}\n".encode(), "x.bnet", "bnet")
    assert (refusal.value.reason, refusal.value.line) == ("temporal", 1)


def test_counts_are_those_of_a_listing() -> None:
    generator = random.Random(12)
    for number in range(200):
        size = number % 7
        columns = {f"x{i}": generator.getrandbits(16) for i in range(size)}
        comparison, threshold = generator.choice("<=>"), generator.randrange(10)
        bits = evaluate((*columns, Count(size, comparison, threshold)), columns, 0xFFFF)
        for row in range(16):
            total = sum(column >> row & 1 for column in columns.values())
            holds = {"<": total < threshold, "=": total == threshold, ">": total > threshold}[comparison]
            assert bits >> row & 1 == holds


def test_formulas_of_names_that_occur_once_need_no_search() -> None:
    """Signs of trees over distinct names, by their tables; another tree, or one with a constant, is searched."""
    generator = random.Random(13)
    num_proven = 0
    for _ in range(200):
        names = [f"n{i}" for i in range(generator.randint(2, 6))]
        nodes = _tree(generator, names)
        function = derive_function(nodes, prove_signs)
        signs = signs_of_read_once(nodes)
        if signs is None:
            assert any(isinstance(node, Count) for node in nodes)
            continue
        assert signs == dict(zip(function.inputs, function.signs, strict=True))
        num_proven += 1
    assert num_proven > 100
    assert signs_of_read_once(("a", "b", AND, "a", OR)) is None
    assert signs_of_read_once(("a", True, AND)) is None


def _tree(generator: random.Random, names: list[str]) -> tuple[Node, ...]:
    if len(names) == 1:
        return (names[0], NOT) if generator.random() < 0.3 else (names[0],)
    if generator.random() < 0.3:
        return (*names, Count(len(names), generator.choice("<=>"), generator.randint(0, len(names))))
    place = generator.randint(1, len(names) - 1)
    return (*_tree(generator, names[:place]), *_tree(generator, names[place:]), generator.choice((AND, OR, XOR, IFF)))


MANY = [f"x{i}" for i in range(16)]
HOSTILE = {
    "open parentheses": ("b, " + "(" * 100_001, "tokens"),
    "deep parentheses": ("b, " + "(" * 49_900 + "a" + ")" * 49_900, ""),
    "nested to the right": (
        "b, " + "".join(f"{MANY[i % 16]} & (" for i in range(24_000)) + "a" + ")" * 24_000,
        "clauses",
    ),
    "a count of many": ("b, maj(" + ", ".join(MANY * 20_000) + ")", "take over 2\\*\\*34 steps"),
    "a wide count": ("b, maj(" + ", ".join(f"x{i}" for i in range(2_000)) + ", x0)", "clauses"),
    "a hard wide count": ("b, maj(" + ", ".join(f"x{i}" for i in range(30)) + ", x0)", "conflicts"),
    "many tables": ("\n".join(f"b{i}, {' & '.join(MANY)}" for i in range(9_000)), "take over 2\\*\\*34 steps"),
    "many lines": ("# a\n" * 1_000_001, "over 1,000,000 lines"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_in_five_seconds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the tokens and clauses that are allowed take a tenth of the time."""
    monkeypatch.setattr("calibrant.solvers.networks.network.MAX_CLAUSES", 100_000)
    if "parentheses" in name:
        monkeypatch.setattr("calibrant.dsl.networks.formulas.MAX_TOKENS", 100_000)
    text, problem = HOSTILE[name]
    started = time.process_time()
    if problem:
        with pytest.raises(NetworkError, match=f"^x.bnet: .*{problem}"):
            parse_network(text.encode(), "x.bnet", "bnet")
    else:
        assert parse_network(text.encode(), "x.bnet", "bnet").functions["b"].inputs
    assert time.process_time() - started < 5


NOT_RECOGNIZED = {
    "blank lines": "\n" * 100_000 + "x",
    "blanks and comments": " \n#\n" * 30_000 + "x",
    "operators": "&" * 700_000,
    "bars": "=|" * 350_000 + "x",
    "heads of series": "series," * 70_000 + "\n" + "x," * 70_000 + "x",
    "arrows": "a& -> " * 100_000,
    "a long number": "targets, factors, probabilities\nA, B, " + "1" * 350_000 + "x",
    "names": "a " * 350_000,
    "stars": "* " * 350_000,
    "braces": "node " + "a{" * 170_000,
}


@pytest.mark.parametrize("name", NOT_RECOGNIZED)
def test_formats_are_recognized_in_linear_time(name: str) -> None:
    started = time.process_time()
    with pytest.raises(NetworkError):
        parse_network(NOT_RECOGNIZED[name].encode(), "x")
    assert time.process_time() - started < 5


def _value(function: object, row: dict[str, int]) -> int:
    nodes = function.nodes  # type: ignore[attr-defined]
    return evaluate(nodes, {name: row.get(name, 0) for name in mentioned_names(nodes)}, 1)


def test_a_function_of_many_inputs_has_signs_and_no_table() -> None:
    names = [f"g{i:02}" for i in range(24)]
    text = f"t, ({' & '.join(names[:20])}) | !{names[20]} | (g21 & !g21)\nu, sumgt({', '.join(names)}, 1)\n"
    network = parse_network(text.encode())
    assert network.functions["t"].table is None
    assert network.functions["t"].inputs == tuple(names[:21])
    assert network.functions["t"].signs == ("+",) * 20 + ("-",)
    assert network.inessential == {"t": ("g21",)}
    assert network.functions["u"].inputs == tuple(names)
    again = parse_network(network.to_bnet().encode())
    assert network.compare(again).is_equal
    changed = parse_network(text.replace("!g20", "g20").encode())
    (difference,) = network.compare(changed).differences
    assert difference.node == "t"
    assert dict(difference.row) == dict.fromkeys(names[:21], 0)
    assert (difference.first, difference.second) == (1, 0)


def test_names_that_change_nothing_in_a_wide_function() -> None:
    """Seventeen names and no table, of which the function depends on the first alone."""
    names = [f"x{i:02}" for i in range(17)]
    inputs = "".join(f"{name}, {name}\n" for name in names)
    wide, same, opposite = (
        parse_network(f"a, {formula}\n{inputs}".encode(), "x.bnet")
        for formula in (" & ".join(names) + " | x00", "x00", "!x00")
    )
    assert (wide.functions["a"].inputs, wide.functions["a"].table) == (("x00",), None)
    assert wide.compare(same).is_equal
    with pytest.raises(NetworkError, match=r"the formula of 'a' has 17 names; here at most 16 are read: write it with"):
        wide.cut()
    assert wide.compare(opposite).differences == (Difference("a", {"x00": 0}, 0, 1),)
    for text, file in ((wide.to_bnet(), "x.bnet"), (wide.to_sbml(), "x.xml")):
        assert parse_network(text.encode(), file).compare(same).is_equal


@pytest.mark.parametrize("number", [17, 20, 21])
def test_functions_of_more_inputs_than_a_table_are_compared(number: int) -> None:
    """A conjunction and a disjunction: of half the names each they differ first where the conjunction holds."""
    names = [f"x{i:02}" for i in range(number)]
    low, high, inputs = names[: number // 2], names[number // 2 :], "".join(f"{name}, {name}\n" for name in names)
    for first, second, ones, values in ((low, high, low, (1, 0)), (names, names, names[:1], (0, 1))):
        left, right = (
            parse_network(f"a, {mark.join(part)}\n{inputs}".encode(), "x.bnet")
            for mark, part in ((" & ", first), (" | ", second))
        )
        row = {name: int(name in ones) for name in names}
        assert left.compare(right).differences == (Difference("a", row, *values),)


def test_terms_of_both_levels_over_more_species_than_a_table() -> None:
    names = [f"x{i:02}" for i in range(18)]
    species = "".join(f'<qualitativeSpecies id="{name}"/>' for name in [*names, "a"])
    maths = [f"<apply><{word}/>{''.join(f'<ci>{name}</ci>' for name in names)}</apply>" for word in ("and", "or")]
    terms = [
        f'<functionTerm resultLevel="{level}"><math>{math}</math></functionTerm>'
        for level, math in zip((1, 0), maths, strict=True)
    ]
    text = (
        f"<sbml><model><listOfQualitativeSpecies>{species}</listOfQualitativeSpecies><listOfTransitions><transition>"
        '<listOfOutputs><output qualitativeSpecies="a"/></listOfOutputs><listOfFunctionTerms>'
        f'<defaultTerm resultLevel="0"/>{"".join(terms)}</listOfFunctionTerms></transition></listOfTransitions>'
        "</model></sbml>"
    )
    with pytest.raises(NetworkError, match=r"terms for 0 and for 1 of 'a' hold together, for x00 = 1, x01 = 1"):
        parse_network(text.encode(), "x.xml")


def test_attractors_of_a_wide_function_with_and_without_clamps() -> None:
    names = [f"x{i:02}" for i in range(18)]
    network = parse_network(f"a, {' & '.join(names)}\n".encode(), "x.bnet")
    attractors = network.attractors()
    assert isinstance(attractors, Found)
    assert len(attractors.value) == 1 << 18  # each state of the inputs has one, with a as their conjunction
    assert {a.state[0] for a in attractors.value if a.state[1:] != "1" * 18} == {"0"}
    held = network.attractors(dict.fromkeys(names[:17], 1))
    assert isinstance(held, Found)
    assert [[*attractor] for attractor in held.value] == [[1, 2, "0" + "1" * 17 + "0"], [1, 2, "1" * 19]]


def test_wide_functions_of_the_same_names_have_digests_of_their_own() -> None:
    formulas = (mark.join(f"x{i}" for i in range(17)) for mark in (" & ", " | ", " & "))
    digests = [parse_network(f"a, {formula}\n".encode(), "x.bnet").digest for formula in formulas]
    assert digests[0] == digests[2] != digests[1]


def test_covers_are_exact_and_irredundant() -> None:
    generator = random.Random(9)
    for number in range(300):
        num_inputs = number % 5
        bits = generator.getrandbits(1 << num_inputs)
        cubes = cover(bits, num_inputs)
        tables = [sum(1 << r for r in range(1 << num_inputs) if all(r >> i & 1 == v for i, v in c)) for c in cubes]
        assert _union(tables) == bits
        for i in range(len(tables)):
            assert _union(tables[:i] + tables[i + 1 :]) != bits


def _union(tables: list[int]) -> int:
    union = 0
    for table in tables:
        union |= table
    return union


def test_rows_that_prove_a_sign() -> None:
    function = from_bits(("a", "b"), 0b0110)
    steps = function.steps("a")
    assert steps == {"+": ({"a": 0, "b": 0}, {"a": 1, "b": 0}), "-": ({"a": 0, "b": 1}, {"a": 1, "b": 1})}


def test_a_file_with_open_functions_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "prior.aeon"
    path.write_text("a -> b\n")
    network = read_network(path)
    assert network.unspecified == ("b",)
    with pytest.raises(NetworkError, match="no function of b: the file serves as a prior"):
        network.attractors()
