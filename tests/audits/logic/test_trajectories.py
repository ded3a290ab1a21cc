"""Items of trajectories: counts against a listing of all networks, certificates, labels, what an item depends on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.audits.claims import ClaimStatus, verify
from calibrant.audits.logic.claims_of_trajectories import TRAJECTORY_VERIFIERS, trajectory_evidence
from calibrant.audits.logic.items import SOUNDNESS, heldout_decision
from calibrant.audits.logic.trajectories import (
    TRAJECTORY_STRATA,
    TrajectoryPlan,
    explain_trajectories,
    generate_trajectories,
    trajectory_findings,
)
from calibrant.dsl.errors import PoolError
from calibrant.dsl.logic.trajectories import (
    TrajectoryItem,
    grade_states,
    item_from_trajectories,
    parse_model,
    record_from_trajectories,
)
from calibrant.dsl.networks.network import (
    FUNCTION_CLASSES,
    Question,
    Trajectory,
    TrajectoryTask,
    answer_question,
    class_violation,
    fits,
    simulate,
)
from calibrant.solvers.networks.published_parts import Source, UnreachableStratumError, read_folder
from calibrant.solvers.networks.trajectories import fit_networks
from calibrant.solvers.outcome import Found
from tests.support.effort import effort

MODELS = {
    "toy.bnet": "Ras, GF\nRaf, Ras & !Akt\nErk, Raf\nAkt, PI3K\nPI3K, GF | Ras\nMyc, Erk | Akt\n",
    "loop.txt": "Aa *= Bb and not Dd\nBb *= Cc or Ee\nCc *= Aa\nDd *= not Cc\nEe *= Ee\nFf *= Aa and Ee\n",
    "exclusive.aeon": "p -? q\nr -? q\nq -> r\nq -| s\ns -| p\n$q: p ^ r\n$r: q\n$s: !q\n$p: !s\n",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / name).write_text(text)
    return [*map(Source, read_folder(folder).networks.values())]


# --- Counts against a listing -----------------------------------------------------------------------------------------


def _random_task(generator: random.Random) -> tuple[TrajectoryTask, str]:
    """Return a task of three genes with up to two candidates each, and the network behind it as bnet."""
    genes = tuple(generator.sample(["a", "b", "c"], 3))
    candidates, lines = {}, []
    for gene in genes:
        names = generator.sample(genes, generator.randint(0, 2))
        signs = [generator.choice(["+", "-", "both"]) for _ in names]
        candidates[gene] = tuple(sorted(zip(names, signs, strict=True)))
        table = generator.choice([*_functions([sign for _, sign in candidates[gene]], "signed")])
        rows = [row for row in range(1 << len(names)) if table[row]]
        literals = [
            " & ".join(("" if row >> i & 1 else "!") + name for i, (name, _) in enumerate(candidates[gene])) or "1"
            for row in rows
        ]
        lines.append(f"{gene}, {' | '.join(f'({text})' for text in literals) or '0'}")
    text = "\n".join(lines)
    network = parse_model(text)
    trajectories = []
    for _ in range(generator.randint(0, 2)):
        clamps = {gene: generator.randint(0, 1) for gene in generator.sample(genes, generator.randint(0, 1))}
        start = "".join(generator.choice("01") for _ in genes)
        trajectories.append(Trajectory(clamps, simulate(network, genes, start, clamps, generator.randint(1, 3))))
    clamps = {gene: generator.randint(0, 1) for gene in generator.sample(genes, generator.randint(0, 1))}
    start = "".join(generator.choice("01") for _ in genes)
    question = Question(clamps, start, generator.choice([None, 1, 2, 3]))
    return TrajectoryTask(genes, candidates, tuple(trajectories), question), text


def _functions(signs: list[str], function_class: str) -> Iterator[tuple[int, ...]]:
    """Yield tables that are monotone as signs say, or all: by comparing all pairs of rows."""
    rows = [tuple(row >> i & 1 for i in range(len(signs))) for row in range(1 << len(signs))]
    for table in product((0, 1), repeat=len(rows)):
        pairs = [(one, two) for one, two in product(range(len(rows)), repeat=2) if table[one] > table[two]]
        falls = (
            all(
                a == b or (sign == "+" and a < b) or (sign == "-" and a > b)
                for sign, a, b in zip(signs, rows[one], rows[two], strict=True)
            )
            for one, two in pairs
        )
        if function_class == "free" or not any(falls):
            yield table


def _listed_answers(task: TrajectoryTask) -> tuple[int, Counter[tuple[str, ...]]]:
    """Return how many networks fit, and how many give each answer, by running each of them."""
    options = [[*_functions([sign for _, sign in task.candidates[gene]], task.function_class)] for gene in task.genes]
    answers: Counter[tuple[str, ...]] = Counter()
    for tables in product(*options):

        def step(state: str, clamps: object, tables: tuple[tuple[int, ...], ...] = tables) -> str:
            assert isinstance(clamps, dict)
            values = dict(zip(task.genes, map(int, state), strict=True))
            digits = []
            for gene, table in zip(task.genes, tables, strict=True):
                row = sum(values[name] << i for i, (name, _) in enumerate(task.candidates[gene]))
                digits.append(str(clamps.get(gene, table[row])))
            return "".join(digits)

        seen = [(one, two, entry.clamps) for entry in task.evidence for one, two in pairwise(entry.states)]
        if all(step(one, clamps) == two for one, two, clamps in seen):
            clamps = task.question.clamps
            start = "".join(str(clamps.get(gene, d)) for gene, d in zip(task.genes, task.question.start, strict=True))
            states = [start]
            for _ in range(20):
                states.append(step(states[-1], clamps))
            if task.question.steps is not None:
                answers[tuple(states[1 : task.question.steps + 1])] += 1
            else:
                cycle = states[10 : states.index(states[10], 11)]
                least = cycle.index(min(cycle))
                answers[(*cycle[least:], *cycle[:least])] += 1
    return answers.total(), answers


@pytest.mark.soak
def test_counts_and_shares_are_those_of_a_listing() -> None:
    """Draw few tasks with either class and either question: all that a count and an answer depend on."""
    generator = random.Random(52)
    for number in range(effort(30, 300)):
        task, text = _random_task(generator)
        task = replace(task, function_class=FUNCTION_CLASSES[number % 2])
        total, answers = _listed_answers(task)
        outcome = fit_networks(task)
        assert isinstance(outcome, Found)
        fitting = outcome.value
        assert fitting.count == total > 0
        true = answer_question(parse_model(text), task)
        for answer in (true, *answers):
            share = fitting.share_of_answer(answer)
            assert isinstance(share, Found)
            assert share.value == Fraction(answers[answer], total)
        best = fitting.likeliest_answer()
        assert isinstance(best, Found)
        most = max(answers.values())
        assert best.value == (min(a for a, k in answers.items() if k == most), Fraction(most, total))
        for witness in (fitting.witness(), *fitting.extreme_networks()):
            network = parse_model(witness)
            assert not class_violation(network, task)
            assert fits(network, task)
        assert not class_violation(parse_model(fitting.draw(generator)), task)


# --- Items ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def items(sources: list[Source]) -> list[TrajectoryItem]:
    names = ("series_n8_k2_decided", "series_n8_k2_partly")
    return [generate_trajectories(sources, TRAJECTORY_STRATA[name], 7, i) for name in names for i in range(5)]


def test_labels_and_certificates_hold(items: list[TrajectoryItem]) -> None:
    kinds: Counter[str] = Counter()
    for item in items:
        assert item_from_trajectories(record_from_trajectories(item)) == item
        for check in (*SOUNDNESS.checks.values(), SOUNDNESS.explain_undecided):
            is_open = check is SOUNDNESS.explain_undecided and item.labels["evidence"] == "partly"
            assert bool(check(item)) == is_open  # type: ignore[arg-type]
        decision = heldout_decision(item)  # type: ignore[arg-type]
        assert decision is not None
        assert decision.decided == (item.labels["evidence"] == "decided") == (item.labels["agree"] == "1")
        assert str(decision.agreement) == item.labels["agree"]
        evidence = trajectory_evidence(item.task)
        for finding in trajectory_findings(item):
            kinds[f"{finding.kind} {finding.verdict}"] += 1
            if finding.certificate is not None:
                checked = verify(finding.certificate, evidence, TRAJECTORY_VERIFIERS)
                assert checked.holds, checked.reason
        assert explain_trajectories(item).count.lower == item.labels["fits"]
    assert kinds[f"open-answer {ClaimStatus.REFUTED}"] == kinds[f"open-answer {ClaimStatus.PROVED}"] == 5


def test_false_certificates_are_refused(items: list[TrajectoryItem]) -> None:
    count, pair = (finding.certificate for finding in trajectory_findings(items[-1]))
    assert count is not None
    assert pair is not None
    evidence = trajectory_evidence(items[-1].task)
    more = msgspec.structs.replace(count, data={**count.data, "count": str(int(count.data["count"]) + 1)})
    assert not verify(more, evidence, TRAJECTORY_VERIFIERS).holds
    same = msgspec.structs.replace(pair, data={**pair.data, "second": pair.data["first"]})
    assert verify(same, evidence, TRAJECTORY_VERIFIERS).reason == "both networks give the same answer"
    first = items[-1].task.genes[0]
    other = msgspec.structs.replace(pair, data={**pair.data, "second": f"{first}, strange\n"})
    assert not verify(other, evidence, TRAJECTORY_VERIFIERS).holds


def test_verdicts_of_answers(items: list[TrajectoryItem]) -> None:
    asked = {item.task.question.steps is None for item in items}
    assert asked == {True, False}
    for item in items:
        key = "attractor" if item.task.question.steps is None else "states"
        truth = [*item.sealed.answer]
        assert grade_states(item, {key: truth}).heldout_exact
        assert grade_states(item, {key: [*truth[1:], truth[0]]}).heldout_exact == (
            key == "attractor" or len({*truth}) == 1
        )
        right = grade_states(item, {"model": item.sealed.network.to_bnet()})
        assert (right.heldout_exact, right.fits, right.heldout_accuracy) == (True, True, 1.0)
        flipped = ("1" if truth[0][0] == "0" else "0") + truth[0][1:]
        wrong = grade_states(item, {key: [flipped, *truth[1:]]})
        digits = len(truth) * len(truth[0])
        if key == "states":
            assert wrong.heldout_accuracy == pytest.approx((digits - 1) / digits)
        assert (wrong.heldout_exact, wrong.fits) == (False, None)
        wrong_forms: list[object] = [{}, {key: []}, {key: ["01"]}, {"model": "x, y\n"}, {"model": 3}, []]
        for invalid in (*wrong_forms, {key: truth, "model": ""}):
            verdict = grade_states(item, invalid)
            assert verdict.error
            assert (verdict.heldout_exact, verdict.heldout_accuracy) == (False, 0.0)


def test_items_depend_on_functions_alone(sources: list[Source], tmp_path: Path) -> None:
    """Files of other formats, names and orders give the same items."""
    for index, source in enumerate(reversed(sources)):
        (tmp_path / f"{index}.xml").write_text(source.network.to_sbml())
    others = [*map(Source, read_folder(tmp_path).networks.values())]
    stratum = TRAJECTORY_STRATA["series_n8_k2_partly"]
    for number in range(3):
        assert generate_trajectories(others, stratum, 3, number) == generate_trajectories(sources, stratum, 3, number)


def test_decoys_and_the_free_class(sources: list[Source]) -> None:
    stratum = TRAJECTORY_STRATA["series_n8_k2_partly"]
    plan = TrajectoryPlan(decoys=1, function_class="free", question="attractor")
    item = generate_trajectories(sources, stratum, 1, 0, plan)
    network = item.sealed.network
    sizes = {gene: len(network.function(gene).inputs) + 1 for gene in item.task.genes}
    assert {gene: len(entries) for gene, entries in item.task.candidates.items()} == sizes
    assert item.task.question.steps is None
    with pytest.raises(UnreachableStratumError):
        generate_trajectories(sources, TRAJECTORY_STRATA["series_n30_k6_decided"], 1, 0)


def test_records_that_are_refused(items: list[TrajectoryItem]) -> None:
    record = record_from_trajectories(items[0])
    gene = items[0].task.genes[0]
    wrong: dict[str, dict[str, Any]] = {
        "sealed.answer": {"sealed": msgspec.structs.replace(record.sealed, answer=["0"])},
        "sealed.network": {"sealed": msgspec.structs.replace(record.sealed, network=f"{gene}, {gene}\n")},
        "candidates": {"candidates": {}},
        "genes": {"genes": [gene, gene]},
        "trajectories": {
            "trajectories": [msgspec.convert({"held": {}, "states": ["01"]}, type(record.trajectories[0]))]
        },
    }
    for field, change in wrong.items():
        with pytest.raises(PoolError) as caught:
            item_from_trajectories(msgspec.structs.replace(record, **change))
        assert caught.value.field == field
