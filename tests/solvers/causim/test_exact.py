"""Engines and spaces of causal questions against the reference, which runs every world, and against SAT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, satisfies, vacuity
from calibrant.dsl.causim.model import Model, ModelError, Symbol, assignment_text, rows, run, symbol, value_of
from calibrant.dsl.causim.networks import TOTAL, items, network, nihss, program
from calibrant.dsl.causim.question import Question, project, record_of, scenario_of
from calibrant.dsl.causim.reference import work_out, worlds
from calibrant.solvers.causim.exact import AnswerSet, first_answers
from calibrant.solvers.causim.experiments import SatQuestion
from calibrant.solvers.causim.generation import BUILT_IN, built_in_items
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, OutOfBudget
from calibrant.solvers.space import Space
from tests.oracles.causim import TwinAnswerSet, count_worlds, marginal, running_sums
from tests.support.causim.models import (
    answer_texts,
    models,
    printed,
    questions,
    random_graph,
    random_model,
    random_question,
    vectors,
)
from tests.support.effort import effort


# --- Engines against the reference, which runs every world; and against SAT where there are too many worlds -----------
def asked(seed: int, number: int, n: int, topology: str) -> Iterator[tuple[np.random.Generator, Model, Question]]:
    """Yield random questions, ten about each random model."""
    rng, drawn_models = np.random.default_rng(seed), list[Model]()
    for k in range(number):
        if k % 10 == 0:
            graph = random_graph(rng, topology, int(rng.integers(1, n + 1)) if n < 10 else n)
            assert satisfies(graph, topology)
            drawn_models.append(random_model(rng, graph))
        yield rng, drawn_models[-1], random_question(rng, drawn_models[-1])


def other_answers(rng: np.random.Generator, model: Model, question: Question) -> Iterator[dict[str, str]]:
    """Answers with random values of the right domains, and one value from nowhere."""
    answer: dict[str, str] = {}
    for _ in range(5):
        answer = {}
        for key in question.required_keys(model):
            i = model.position.get(key)
            values = model.system[i].domain if i is not None else model.nodes[model.of_noise[key]].support
            answer[key] = question.do.get(key, values[int(rng.integers(len(values)))])
        yield answer
    if answer:
        yield {**answer, next(iter(answer)): symbol("nowhere")}


@pytest.mark.soak
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_local_elimination_and_twin_agree_with_running_every_world(topology: str) -> None:
    """Five questions about each of five models; about each of thirteen in a soak."""
    for rng, model, question in asked(20, effort(25, 130), 6, topology):
        worked = work_out(model, question)
        for members in (AnswerSet(model, question), TwinAnswerSet(model, question)):
            assert (members.worlds, members.fitting) == (worked.worlds, worked.fitting)
            assert members.size() == Found(len(worked.answers))
            assert sorted(map(assignment_text, members.answers())) == list(worked.answers)
            assert members.effect == (None if worked.effect_all is None else (worked.effect_all, worked.effect_some))
            assert members.copy is worked.copy
            for text, answer in list(worked.answers.items())[:6]:
                assert members.contains(answer)
                assert members.probability(answer) == worked.probabilities[text]
            for answer in other_answers(rng, model, question):
                assert members.contains(answer) is (assignment_text(answer) in worked.answers)
            picked = members.pick()
            if worked.answers:
                assert isinstance(picked, Found)
                assert assignment_text(picked.value) in worked.answers
            else:
                assert isinstance(picked, Impossible)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_clauses_agree_with_running_every_world(topology: str) -> None:
    for rng, model, question in asked(21, 20, 5, topology):
        worked = work_out(model, question)
        with closing(SatQuestion(model, question)) as sat:
            for answer in [*list(worked.answers.values())[:3], *other_answers(rng, model, question)]:
                assert sat.contains(answer) is (assignment_text(answer) in worked.answers)
            assert sorted(map(assignment_text, sat.answers(Budget(None)))) == list(worked.answers)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_ten_nodes_agree_with_clauses(topology: str) -> None:
    number = 3 if topology == "inverted_star" else 8
    for rng, model, question in asked(22, number, 10, topology):
        members = AnswerSet(model, question)
        picked = members.pick()
        with closing(SatQuestion(model, question)) as sat:
            assert sat.is_satisfiable(()) is isinstance(picked, Found)
            known = [picked.value] if isinstance(picked, Found) else []
            for answer in [*known, *other_answers(rng, model, question)]:
                assert sat.contains(answer) is members.contains(answer)
            size = members.size(Budget(300))
            if isinstance(size, Found) and size.value <= 60:
                assert sat.size(Budget(None)) == size


def test_clauses_count_no_states_that_were_spent_before() -> None:
    model, question = next(
        (model, question)
        for _, model, question in asked(21, 40, 5, "chain")
        if len(work_out(model, question).answers) > 2
    )
    budget = Budget(102)
    budget.spend(100)
    with closing(SatQuestion(model, question)) as sat:
        outcome = sat.size(budget)
    assert isinstance(outcome, OutOfBudget)
    assert outcome.lower_bound == 2


def test_the_vectors_are_answered_by_every_engine() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        expected = record["expect"]
        for members in (AnswerSet(model, question), TwinAnswerSet(model, question)):
            assert (members.worlds, members.fitting) == (expected["worlds"], expected["fitting"])
            assert members.size() == Found(expected["size"])
            assert sorted(map(assignment_text, members.answers())) == answer_texts(record)
        if expected["size"] <= 500:
            with closing(SatQuestion(model, question)) as sat:
                assert sorted(map(assignment_text, sat.answers(Budget(None)))) == answer_texts(record)


def test_probabilities_of_the_vectors() -> None:
    for record in vectors("question"):
        members = AnswerSet(*questions()[record["id"]])
        for answer, probability in list(
            zip(record["expect"]["answers"], record["expect"]["probabilities"], strict=True)
        )[:9]:
            given = {key: symbol(value) for key, value in answer.items()}
            assert printed(members.probability(given)) == probability


def test_the_first_worlds_give_some_answers_and_all_worlds_give_all() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        texts = answer_texts(record)
        some, worlds = first_answers(model, question, 5), record["expect"]["worlds"]
        assert set(some) <= set(texts)
        if worlds <= 500:
            assert sorted(first_answers(model, question, worlds)) == texts


# --- Built-in networks and the stroke scale against the shared vectors and the figures of the specification -----------


def conditional_table(model: Model, name: str) -> dict[tuple[Symbol, ...], dict[Symbol, Fraction]]:
    """Return P(name | parents) for every combination of the parents' values, zeros left out."""
    i = model.position[name]
    node = model.nodes[i]
    table: dict[tuple[Symbol, ...], dict[Symbol, Fraction]] = {}
    for row in product(*(model.system[parent].domain for parent in model.system[i].parents)):
        distribution: dict[Symbol, Fraction] = {}
        for noise, weight in zip(node.support, node.weights, strict=True):
            value = node.value(row, noise)
            distribution[value] = distribution.get(value, Fraction(0)) + weight
        table[row] = distribution
    return table


def test_networks_have_the_expected_noise_worlds_tables_and_marginals() -> None:
    records = vectors("network")
    assert len(records) == 6
    for record in records:
        model, expected = network(record["network"], record["mode"]), record["expect"]
        assert {node.name: len(node.support) for node in model.nodes} == expected["noise_values"]
        assert model.worlds == expected["worlds"]
        assert sorted(map(list, vacuity(model).edges)) == sorted(expected["vacuous_edges"])
        for name, known in expected["conditional"].items():
            states = list(expected["marginals"][name])
            parents = model.nodes[model.position[name]].parents
            orders = [list(expected["marginals"][parent]) for parent in parents]
            table = conditional_table(model, name)
            assert len(table) == len(known)
            for index, row in enumerate(known):
                given, rest = [], index
                for order in reversed(orders):
                    rest, k = divmod(rest, len(order))
                    given.append(symbol(order[k]))
                found = table[tuple(reversed(given))]
                assert [found.get(symbol(state), 0) for state in states] == [Fraction(text) for text in row]
        for do, marginals in [({}, expected["marginals"]), *((x["do"], x["marginals"]) for x in expected["under_do"])]:
            for name, shares in marginals.items():
                found = marginal(model, name, {key: symbol(value) for key, value in do.items()})
                assert {state: found.get(symbol(state), 0) for state in shares} == {
                    state: Fraction(text) for state, text in shares.items()
                }


def test_the_grid_is_that_of_the_printed_program() -> None:
    printed, ours = models()["paper-cancer"], network("cancer", "grid")
    for node in ours.nodes:
        other = printed.nodes[printed.position[node.name]]
        assert (node.support, node.weights) == (other.support, other.weights)
        assert conditional_table(ours, node.name) == {
            tuple(given[other.parents.index(parent)] for parent in node.parents): own
            for given, own in conditional_table(printed, node.name).items()
        }


def test_the_stroke_scale_has_the_expected_items_totals_and_ways() -> None:
    for record in vectors("nihss"):
        expected = record["expect"]
        for example in expected.get("examples", []):
            total = nihss(example["n"]).nodes[-1]
            parents = tuple(symbol(example["items"][name]) for name in total.parents)
            assert value_of(total.value(parents, total.support[0])) == example["total"]
        if "items" not in expected:
            continue
        n = record["n"]
        assert [{"name": name, "domain": list(values)} for name, values in items(n).items()] == expected["items"]
        model = running_sums(n)
        assert model.worlds == expected["combinations"]
        found = {value_of(value): number for value, number in count_worlds(model, TOTAL).items()}
        assert [found[total] for total in range(len(found))] == expected["ways"]
        assert [min(found), max(found)] == expected["total_domain"]
        if n <= 7:
            assert {value_of(value): number for value, number in count_worlds(nihss(n), TOTAL).items()} == found


def test_the_prose_immunity_model_has_the_printed_probabilities() -> None:
    found = marginal(models()["paper-c"], "infection_outcome", {})
    assert {value_of(value): share for value, share in found.items()} == {
        "no_infection": Fraction(497, 8000),
        "mild": Fraction(6661, 16000),
        "moderate": Fraction(6923, 16000),
        "severe": Fraction(711, 8000),
    }


def test_the_printed_sampler_has_ten_values_and_eight_worlds_that_explain_true() -> None:
    model = models()["paper-a"]
    node = model.nodes[0]
    shares = {value_of(value): weight for value, weight in zip(node.support, node.weights, strict=True)}
    plain = {name: Fraction(3, 20) for name in ("xo", "mi", "za", "qe", "tu")}
    assert shares == plain | {f"{name}x": Fraction(1, 20) for name in plain}
    assert marginal(model, "ZY", {}) == {"false": Fraction(3, 10), "true": Fraction(7, 10)}
    seen = Question("abduction", {}, ("U_ZY",), {}, {"ZY": "true"})
    assert AnswerSet(model, seen).size() == Found(8)


def test_the_printed_intervention_changes_nothing_else() -> None:
    model = models()["paper-b"]
    noise = {"U_QE": "qe", "U_TU": "so", "U_VI": "ga", "U_XQ": "cc", "U_ZY": "by"}
    question = Question("intervention", {name: symbol(value) for name, value in noise.items()}, (), {"TU": '"TU0"'})
    members = AnswerSet(model, question)
    assert members.pick() == Found({"XQ": '"xq"', "VI": '"VI"', "TU": '"TU0"', "QE": '"QE"', "ZY": '"nul"'})
    assert members.size() == Found(1)
    assert members.effect == (False, False)


@pytest.mark.parametrize("n", [2, 5, 7])
def test_the_program_of_the_scale_is_its_model(n: int) -> None:
    read, model = load_source(program(n)), nihss(n)
    assert [(node.name, node.parents, node.support, node.weights) for node in read.nodes] == [
        (node.name, node.parents, node.support, node.weights) for node in model.nodes
    ]
    assert all(list(rows(read, name)) == list(rows(model, name)) for name in model.names)


@pytest.mark.parametrize("name", BUILT_IN)
def test_items_about_built_in_models_are_different_questions_with_their_labels(name: str) -> None:
    items = list(islice(built_in_items(7, name), 18))
    different = {(item.task.source, item.task.question.type, repr(record_of(item.task.question))) for item in items}
    assert len({item.id for item in items}) == len(different) == 18
    assert {item.topology for item in items} == {name}
    for item in items[:6]:
        worked = work_out(item.task.model, item.task.question)
        assert (len(worked.answers), scenario_of(len(worked.answers))) == (item.labels.size, item.task.scenario)


def test_a_table_of_more_than_twenty_million_entries_is_refused_in_one_line_before_it_is_made() -> None:
    with pytest.raises(ModelError, match=r"^f_total has more than 20000000 combinations of arguments$"):
        load_source(program(16))


# --- The contract of a version space, by running every world ----------------------------------------------------------
Seen = dict[str, str]


def members(model: Model, question: Question) -> list[tuple[Seen, Seen, str]]:
    found = []
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            found.append((noise, {**noise, **factual}, assignment_text(answer)))
    return found


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_counts_outcomes_and_verdicts_are_those_of_running_every_world(topology: str) -> None:
    rng = np.random.default_rng(41)
    for _ in range(25):
        model = random_model(rng, random_graph(rng, topology, int(rng.integers(1, 5))))
        question = random_question(rng, model)
        left, space = members(model, question), WorldSpace(model, question)
        typed: Space[object, str, str, str] = space  # type: ignore[assignment]
        assert typed.count == len(left)
        for _ in range(3):
            assert space.count == len(left)
            assert space.verdicts() == Counter(text for _, _, text in left)
            name = str(rng.choice([*model.names, *model.noises]))
            outcomes = space.outcomes(name)
            assert outcomes == Counter(seen[name] for _, seen, _ in left)
            assert sum(outcomes.values()) == space.count
            for noise, _ in list(worlds(model, {}))[:20]:
                assert space.fits(noise) is any(noise == own for own, _, _ in left)
            if left:
                drawn = space.sample(rng, 5)
                assert all(space.fits(world) for world in drawn)
            else:
                with pytest.raises(ValueError, match="no world fits"):
                    space.sample(rng, 1)
                break
            reading = left[int(rng.integers(len(left)))][1][name]
            smaller = space.after(name, reading)
            assert smaller.count == outcomes[reading] <= space.count
            other = smaller.after(name, "no such value")
            assert other.count == 0
            assert other.after(name, reading).count == 0
            left, space = [one for one in left if one[1][name] == reading], smaller


def test_members_are_drawn_evenly_where_evidence_is_partial() -> None:
    rng = np.random.default_rng(2)
    model = random_model(rng, random_graph(rng, "poly_tree", 4))
    last = len(model) - 1
    question = Question("counterfactual", {}, model.noises, {}, {model.names[last]: model.system[last].domain[0]})
    left = members(model, question)
    drawn = Counter(assignment_text(world) for world in WorldSpace(model, question).sample(rng, 1000))
    assert set(drawn) == {assignment_text(noise) for noise, _, _ in left}
    assert all(abs(number - 1000 / len(left)) < 6 * (1000 / len(left)) ** 0.5 for number in drawn.values())


def test_unknown_names_and_spent_budgets_are_told() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, random_graph(rng, "chain", 4))
    space = WorldSpace(model, Question("deduction", {}, model.noises))
    with pytest.raises(ModelError, match="neither noise nor a variable"):
        space.after("nothing", "1")
    with pytest.raises(BudgetSpent):
        space.verdicts(Budget(1))


def test_listing_fitting_worlds_visits_prefixes_of_fitting_worlds_alone() -> None:
    """States are the values that can follow a prefix of some fitting world, evidence aside: counted from all worlds."""
    rng = np.random.default_rng(5)
    num_partial = 0
    for _ in range(40):
        model = random_model(rng, random_graph(rng, "poly_tree", 5))
        last = model.names[-1]
        question = Question("counterfactual", {}, model.noises, {}, {last: model.system[-1].domain[0]})
        answers = AnswerSet(model, question)
        if answers._compiled.product is not None:
            continue
        every = [tuple(run(model, noise, {}).values()) for noise, _ in worlds(model, {})]
        fitting = [values for values in every if values[-1] == question.observed[last]]
        num_partial += bool(fitting)
        # after a prefix of a fitting world come the values that any world has there; the last one is evidence
        begun = {values[:i] for values in fitting for i in range(len(values))}
        states = {values[: i + 1] for values in every for i in range(len(values)) if values[:i] in begun}
        states = {values for values in states if len(values) < len(model) or values[-1] == question.observed[last]}
        budget = Budget(10_000)
        assert len(list(answers.fitting_worlds(budget))) == len(fitting)
        assert budget.used == len(states)
    assert num_partial > 10
