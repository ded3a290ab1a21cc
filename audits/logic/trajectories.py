"""Items of trajectories of published networks: generation by seed, findings, and soundness.

A window is a part of a network, cycles included; nodes outside of it that its functions read keep their value.
Candidates of a gene are its essential inputs with their signs, and decoys. Trajectories are added until the stratum's
evidence is reached: all networks that fit give the true answer, or some do not. Item i of a seed depends on stratum,
plan, seed, i and the functions of the networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Literal, NamedTuple

import msgspec

from calibrant.audits.claims import ClaimStatus, Finding, certify
from calibrant.audits.logic.claims_of_trajectories import trajectory_evidence
from calibrant.audits.why import Count, Fact, Span, State, Why, number_text
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.trajectories import TrajectoryItem, TrajectorySealed, parse_model
from calibrant.dsl.networks.formulas import Function, from_table, rename_inputs
from calibrant.dsl.networks.network import (
    FunctionClass,
    Network,
    Question,
    Trajectory,
    TrajectoryTask,
    answer_question,
    path_to_attractor,
    readings,
    simulate,
)
from calibrant.dsl.networks.text_formats import bnet_text
from calibrant.solvers.networks import published_parts as parts
from calibrant.solvers.networks.trajectories import MAX_MONOTONE_CANDIDATES, FittingNetworks, fit_networks
from calibrant.solvers.outcome import Found, OutOfBudget

# --- Generation -------------------------------------------------------------------------------------------------------
EvidenceKind = Literal["decided", "partly"]
MAX_TRAJECTORIES = 40  # of an item
MAX_SEEN_STEPS = 8  # steps of a trajectory, which ends earlier at the first repeated state
MAX_HELD = 2  # genes that are clamped in one trajectory
MAX_PERIOD = 8  # states of an attractor that a question asks for
MAX_DRAWN_BRANCHES = 500  # paths of the fitting networks that are listed; evidence that leaves more is rejected
MAX_QUESTIONS = 20  # questions sampled for a window before the next window


class TrajectoryStratum(NamedTuple):
    """A size of windows, and whether the evidence decides the answer."""

    name: str
    size: parts.WindowSize
    evidence: EvidenceKind


_KINDS: tuple[EvidenceKind, ...] = ("decided", "partly")
TRAJECTORY_STRATA: Mapping[str, TrajectoryStratum] = {
    f"{size.name}_{kind}": TrajectoryStratum(f"{size.name}_{kind}", size, kind)
    for size in parts.window_sizes("series")
    for kind in _KINDS
}


@dataclass(frozen=True, slots=True)
class TrajectoryPlan:
    """Rules of items, beside the stratum.

    decoys: number of candidates of a gene beyond its essential inputs
    question: kind of the question, None for a random one; steps: number of states that a question of states asks for
    """

    decoys: int = 0
    function_class: FunctionClass = "signed"
    question: Literal["states", "attractor"] | None = None
    steps: int = 3


USUAL_PLAN = TrajectoryPlan()


def generate_trajectories(
    sources: Sequence[parts.Source],
    stratum: TrajectoryStratum,
    seed: int,
    index: int,
    plan: TrajectoryPlan = USUAL_PLAN,
) -> TrajectoryItem:
    """Return item `index` of a seed, under neutral names; `UnreachableStratumError` if no window gives one."""
    rng = Random(f"{stratum.name} {seed} {index}")
    for _ in range(parts.MAX_WINDOWS):
        window = _draw_window(rng.choice(sources), stratum.size, plan, rng)
        if window is None:
            continue
        for _ in range(MAX_QUESTIONS):
            item = _attempt_item(window, stratum, plan, f"{stratum.name}-{seed}-{index}", rng)
            if item is not None:
                return item
    raise parts.UnreachableStratumError(
        f"none of {parts.MAX_WINDOWS} windows of the networks gives an item of {stratum.name}"
    )


@dataclass(frozen=True)
class _Window:
    """A part of a network under neutral names.

    genes: in the order of a state's digits; candidates: (input, sign) of each gene; labels: of the part and the network
    """

    network: Network
    genes: tuple[str, ...]
    candidates: Mapping[str, tuple[tuple[str, str], ...]]
    labels: Mapping[str, str]


def _draw_window(source: parts.Source, size: parts.WindowSize, plan: TrajectoryPlan, rng: Random) -> _Window | None:
    """Return one window, None if it is not of the size or has a gene with too many candidates to count."""
    functions, (min_nodes, max_nodes) = source.functions, size.nodes
    inner = sorted(name for name, function in functions.items() if not function.is_identity(name))
    candidates = [name for name in inner if len(functions[name].inputs) <= size.in_degree[1]]
    if not candidates:
        return None
    chosen = parts.grow_window(
        functions,
        candidates,
        rng.randint(2, max_nodes),
        rng,
        allows=lambda nodes: len(parts.window_variables(functions, nodes)) <= max_nodes,
    )
    variables = sorted(parts.window_variables(functions, chosen))
    in_degree = max(len(functions[name].inputs) for name in chosen)
    if len(chosen) < 2 or not min_nodes <= len(variables) <= max_nodes or in_degree < size.in_degree[0]:
        return None
    names = rng.sample(variables, len(variables))
    neutral = {name: f"g{index}" for index, name in enumerate(names, start=1)}
    rules = {name: functions[name] if name in chosen else from_table((name,), "01") for name in variables}
    network = parse_model(bnet_text({neutral[name]: rename_inputs(rules[name], neutral) for name in variables}))
    genes = tuple(neutral[name] for name in names)
    gene_candidates = {gene: _candidates(network.function(gene), genes, plan.decoys, rng) for gene in genes}
    if plan.function_class == "signed" and any(
        sum(sign != "both" for _, sign in entries) > MAX_MONOTONE_CANDIDATES for entries in gene_candidates.values()
    ):
        return None
    return _Window(network, genes, gene_candidates, source.labels(names, chosen))


def _candidates(function: Function, genes: Sequence[str], num_decoys: int, rng: Random) -> tuple[tuple[str, str], ...]:
    """Return the inputs of a function with signs, and decoys with random signs."""
    others = [gene for gene in genes if gene not in function.inputs]
    decoys = rng.sample(others, min(num_decoys, len(others)))
    entries = [*zip(function.inputs, function.signs, strict=True), *((gene, rng.choice("+-")) for gene in decoys)]
    return tuple(sorted(entries))


def _attempt_item(
    window: _Window, stratum: TrajectoryStratum, plan: TrajectoryPlan, name: str, rng: Random
) -> TrajectoryItem | None:
    """Return an item with a random question, None if it is trivial or the evidence is not reached."""
    kind = plan.question or rng.choice(("states", "attractor"))
    clamps, start = _draw_clamps(window, rng), _draw_state(window, rng)
    question = Question(clamps, start, plan.steps if kind == "states" else None)
    empty = TrajectoryTask(window.genes, window.candidates, (), question, plan.function_class)
    answer = answer_question(window.network, empty)
    first = simulate(window.network, window.genes, start, clamps, 1)
    if len(answer) > max(MAX_PERIOD, plan.steps) or first[0] == first[1]:
        return None
    trajectories: list[Trajectory] = []
    tasks: list[tuple[TrajectoryTask, FittingNetworks, Fraction]] = []
    while len(trajectories) < MAX_TRAJECTORIES:
        trajectory = _draw_trajectory(window, rng)
        if dict(trajectory.clamps) == clamps and first[0] in trajectory.states[:-1]:
            continue  # it would show the answer
        trajectories.append(trajectory)
        task = replace(empty, evidence=tuple(trajectories))
        share = _share(task, answer)
        if share is None:
            continue
        tasks.append((task, *share))
        if share[1] == 1:
            break
    reached = [entry for entry in tasks if (entry[2] == 1) is (stratum.evidence == "decided")]
    if not reached:
        return None
    task, fitting, agree = reached[-1] if stratum.evidence == "decided" else rng.choice(reached)
    labels = _labels(window, fitting, agree)
    if labels is None:
        return None
    sealed = TrajectorySealed(window.network, answer)
    return TrajectoryItem(name, task, sealed, labels | {"stratum": stratum.name, "evidence": stratum.evidence})


def _draw_clamps(window: _Window, rng: Random) -> dict[str, int]:
    held = rng.sample(window.genes, rng.randint(0, min(MAX_HELD, len(window.genes) - 1)))
    return {gene: rng.randint(0, 1) for gene in sorted(held)}


def _draw_state(window: _Window, rng: Random) -> str:
    return "".join(rng.choice("01") for _ in window.genes)


def _draw_trajectory(window: _Window, rng: Random) -> Trajectory:
    """Return the states from a random start to the first repeated one."""
    clamps = _draw_clamps(window, rng)
    states = simulate(window.network, window.genes, _draw_state(window, rng), clamps, MAX_SEEN_STEPS)
    repeated = next((i for i, state in enumerate(states) if state in states[:i]), len(states) - 1)
    return Trajectory(clamps, states[: repeated + 1])


def _share(task: TrajectoryTask, answer: Sequence[str]) -> tuple[FittingNetworks, Fraction] | None:
    """Return the networks that fit, and the share of them that give an answer; None if they are too many to count."""
    fitting = fit_networks(task)
    if not isinstance(fitting, Found):
        return None
    networks = replace(fitting.value, max_branches=MAX_DRAWN_BRANCHES)
    share = networks.share_of_answer(answer)
    return (networks, share.value) if isinstance(share, Found) else None


def _labels(window: _Window, fitting: FittingNetworks, agree: Fraction) -> dict[str, str] | None:
    """Return the labels of difficulty; None if the likeliest answer is not found within the budget."""
    best = fitting.likeliest_answer()
    if not isinstance(best, Found):
        return None
    question, genes = fitting.task.question, window.genes
    transient, attractor = path_to_attractor(window.network, genes, question.start, question.clamps)
    path = simulate(
        window.network, genes, question.start, question.clamps, question.steps or transient + len(attractor)
    )
    return {
        **window.labels,
        "fits": str(fitting.count),
        "agree": str(agree),
        "ceiling": str(best.value[1]),
        "unseen": str(fitting.num_unseen(path)),
    }


# --- Findings and soundness -------------------------------------------------------------------------------------------
MEMBERS, OPEN_ANSWER = "several-networks", "open-answer"


@dataclass(frozen=True, slots=True)
class TrajectoryDecision:
    """Number of networks that fit, and how far they agree about the answer.

    agreement: share of them that give the true answer; ceiling: share that give the likeliest one, None if not counted
    """

    count: int
    agreement: Fraction
    ceiling: Fraction | None


def decide_answer(item: TrajectoryItem) -> TrajectoryDecision | None:
    """Return how far the evidence decides the sealed answer; None if the networks are too many to count."""
    fitting = fit_networks(item.task)
    if not isinstance(fitting, Found):
        return None
    share = fitting.value.share_of_answer(item.sealed.answer)
    if not isinstance(share, Found):
        return None
    best = fitting.value.likeliest_answer()
    return TrajectoryDecision(fitting.value.count, share.value, best.value[1] if isinstance(best, Found) else None)


def trajectory_findings(item: TrajectoryItem) -> Iterator[Finding]:
    """Yield findings on the number of networks that fit, and on whether they disagree about the answer."""
    outcome = fit_networks(item.task)
    if not isinstance(outcome, Found):
        yield Finding(MEMBERS, ClaimStatus.OPEN, item.id, outcome.reached)
        return
    fitting, evidence = outcome.value, trajectory_evidence(item.task)
    words = item.task.in_words
    data = {
        "genes": {gene: str(num_functions) for gene, num_functions in fitting.counts.items()},
        "count": str(fitting.count),
    }
    status = ClaimStatus.PROVED if fitting.count > 1 else ClaimStatus.REFUTED
    claim = "one network fits" if fitting.count == 1 else f"{fitting.count} networks fit"
    certificate = certify("trajectory-count", words, evidence, data)
    yield Finding(MEMBERS, status, item.id, claim, {"members": str(fitting.count)}, certificate)
    share = fitting.share_of_answer(item.sealed.answer)
    if not isinstance(share, Found):
        yield Finding(OPEN_ANSWER, ClaimStatus.OPEN, item.id, share.reached)
        return
    other_network = None if share.value == 1 else _disagreeing_network(item, fitting)
    claim = f"networks that fit disagree about the answer; {share.value} of them give the true one"
    pair = None
    if other_network is not None:
        pair = certify(
            "trajectory-open", words, evidence, {"first": item.sealed.network.to_bnet(), "second": other_network}
        )
    status = ClaimStatus.REFUTED if share.value == 1 else ClaimStatus.PROVED
    yield Finding(OPEN_ANSWER, status, item.id, claim, {"agree": str(share.value)}, pair)


def _disagreeing_network(item: TrajectoryItem, fitting: FittingNetworks) -> str | None:
    """Return a network that fits and gives another answer; None if no extreme network does."""
    for text in fitting.extreme_networks():
        if answer_question(parse_model(text), item.task) != item.sealed.answer:
            return text
    return None


class GeneShare(msgspec.Struct, frozen=True):
    """A gene, its candidates, and its functions that fit.

    candidates: inputs with signs, as text; readings: number of observed values; functions: number that fit, as text
    undecided: number of patterns on the path to the answer at which those functions differ
    """

    gene: str
    candidates: str
    readings: int
    functions: str
    undecided: int


class TrajectoryWhy(Why, frozen=True, kw_only=True):
    """The reason for trajectories. `answers`: the likeliest, with its share of networks as decimal text."""

    genes: tuple[GeneShare, ...]
    answers: tuple[tuple[str, str], ...]


def explain_trajectories(item: TrajectoryItem, *, reveal_sealed: bool = False) -> TrajectoryWhy:
    """Return the reason for an item; the sealed answer is read only with `reveal_sealed`.

    `CalibrantError` if the networks, or their answers, are too many to count.
    """
    task, outcome = item.task, fit_networks(item.task)
    if not isinstance(outcome, Found):
        raise CalibrantError(f"the networks that fit {item.id} are not counted: {outcome.reached}")
    fitting = outcome.value
    best = fitting.likeliest_answer() if fitting.count else None
    if isinstance(best, OutOfBudget):
        raise CalibrantError(f"the answers of the networks that fit {item.id} are not counted: {best.reached}")
    answer, share = best.value if best is not None else ((), Fraction(0))
    state: State = "empty" if best is None else "decided" if share == 1 else "open"
    reason = {
        "empty": "No network of the class gives these states.",
        "decided": "One network fits."
        if fitting.count == 1
        else f"All {number_text(fitting.count)} networks that fit give the same answer.",
        "open": f"{number_text(fitting.count)} networks fit. {float(share):.1%} of them give the likeliest answer.",
    }[state]
    undecided = fitting.num_undecided(answer) if best is not None else dict.fromkeys(task.genes, 0)
    genes = tuple(
        GeneShare(
            gene,
            ", ".join(f"{sign} {name}" for name, sign in task.candidates[gene]),
            len(list(readings(task, gene))),
            str(fitting.counts[gene]),
            undecided[gene],
        )
        for gene in task.genes
    )
    gold = Fact(f"the network answers {' '.join(item.sealed.answer)}", "gold")
    return TrajectoryWhy(
        benchmark="logic",
        item=item.id,
        title=f"Why is \u201c{item.id}\u201d {TITLE_WORDS[state]}?",
        state=state,
        reason=(Span(reason, marked=state != "decided"),),
        facts=(Fact(f"{len(task.genes)} genes"), Fact(f"{len(task.evidence)} trajectories")),
        open=tuple(gene for gene in task.genes if fitting.counts[gene] > 1),
        decided=tuple(gene for gene in task.genes if fitting.counts[gene] == 1),
        count=Count(lower=str(fitting.count), upper=str(fitting.count)),
        class_in_words=task.in_words,
        sealed=(gold,) if reveal_sealed else (),
        genes=genes,
        answers=((" ".join(answer), f"{float(share):.6g}"),) if best is not None else (),
    )


TITLE_WORDS = {"open": "still open", "decided": "decided", "empty": "contradictory"}


def count_holds(item: TrajectoryItem) -> str | None:
    """Return why the labelled number of networks that fit is wrong, "" if it is right; None without the label."""
    decision, stated = decide_answer(item), item.labels.get("fits")
    if decision is None or stated is None:
        return None
    return "" if stated == str(decision.count) else f"fits {stated}, found {decision.count}"


def agreement_holds(item: TrajectoryItem) -> str | None:
    """Return why the labelled share of networks with the answer is wrong, "" if it is right; None without the label."""
    decision, stated = decide_answer(item), item.labels.get("agree")
    if decision is None or stated is None:
        return None
    return "" if stated == str(decision.agreement) else f"agree {stated}, found {decision.agreement}"


def explain_open_answer(item: TrajectoryItem) -> str | None:
    """Return why the answer is open; "" if all networks that fit give it."""
    decision = decide_answer(item)
    if decision is None:
        return None
    return "" if decision.agreement == 1 else f"{decision.agreement} of the networks that fit give the true answer"


def trajectory_key(item: TrajectoryItem) -> bytes:
    """Encode the task."""
    return msgspec.json.encode(trajectory_evidence(item.task))


def network_key(item: TrajectoryItem) -> bytes:
    """Encode the network behind the states, by positions of genes."""
    labels = {gene: f"n{index:03}" for index, gene in enumerate(item.task.genes)}
    functions = (rename_inputs(item.sealed.network.function(gene), labels) for gene in item.task.genes)
    return repr([(function.inputs, function.table) for function in functions]).encode()
