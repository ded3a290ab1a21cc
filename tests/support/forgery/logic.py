"""Forgers of claims about logic models; the truth comes from listing all models of small classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

from calibrant.audits.claims import Certificate
from calibrant.audits.logic.generation import LogicPlan, generate_items
from calibrant.audits.logic.items import better_certificate, count_certificate, missing_certificate, open_certificate
from calibrant.audits.logic.trajectories import TRAJECTORY_STRATA, generate_trajectories, trajectory_findings
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import LogicItem, Model, Task, fit_limit, model_size, parse_clause
from calibrant.dsl.logic.trajectories import TrajectoryItem, parse_model
from calibrant.dsl.networks.network import answer_question, class_violation, fits
from calibrant.solvers.networks.network import parse_network
from calibrant.solvers.networks.published_parts import Source
from calibrant.solvers.networks.trajectories import fit_networks
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import family_of
from tests.support.forgery.forger import Data, Forger, Genuine, has_shape, is_same, nothing_forged

PLAN = LogicPlan(
    nodes=4, layers=2, in_degree=2, stimuli=2, readouts=2, inhibitors=1, experiments=3, noise=0.3, fit="0.5", size=2
)


@cache
def items() -> tuple[LogicItem, ...]:
    return tuple(generate_items(PLAN, 6, 6))


@cache
def _models(position: int) -> tuple[tuple[int, int, Model], ...]:
    """Return misfit, size and model of every model of an item's class."""
    task = items()[position].task
    return tuple((reference.misfit(m, task), model_size(m), m) for m in map(frozenset, reference.all_models(task)))


class Limits(NamedTuple):
    """Limits as a certificate states them."""

    misfit: int | None
    size: int | None
    optimum: tuple[int, int]

    @classmethod
    def of(cls, data: Any) -> Limits:
        assert set(data) == {"fit", "size", "least_misfit", "least_size"}
        assert type(data["fit"]) is str
        least = _whole(data["least_misfit"]), _whole(data["least_size"])
        extra = None if data["size"] is None else _whole(data["size"])
        return cls(fit_limit(least[0], data["fit"]), None if extra is None else least[1] + extra, least)

    def have(self, misfit: int, size: int) -> bool:
        within = (self.misfit is None or misfit <= self.misfit) and (self.size is None or size <= self.size)
        return within and (misfit, size) >= self.optimum


def _whole(number: Any) -> int:
    assert type(number) in (int, float)
    assert number == int(number)
    return int(number)


def _class_words(task: Task) -> str:
    return f"acyclic logic models over {len(task.edges)} merged edges, clauses of any length"


def _words(task: Task, limits: Limits, *, conditional: bool) -> str:
    misfit = "any misfit" if limits.misfit is None else f"misfit at most {limits.misfit}"
    size = "any size" if limits.size is None else f"size at most {limits.size}"
    condition = f", if the least misfit is {limits.optimum[0]} and the least size at it {limits.optimum[1]}"
    return f"{_class_words(task)}, {misfit}, {size}{condition if conditional else ''}"


def _parsed(texts: Any) -> Model:
    assert type(texts) is list
    assert all(type(text) is str for text in texts)
    return frozenset(map(parse_clause, texts))


def _is_member(model: Model, task: Task, limits: Limits) -> bool:
    return not reference.class_violation(model, task) and limits.have(reference.misfit(model, task), model_size(model))


def _count_is_true(item: LogicItem, certificate: Certificate) -> bool:
    data = certificate.data
    if not has_shape(data, limits=dict, count=str, spectrum=list, clauses=dict):
        return False
    models, limits = _models(items().index(item)), Limits.of(data["limits"])
    if min((misfit, size) for misfit, size, _ in models) != limits.optimum:
        return False
    members = [(misfit, size, model) for misfit, size, model in models if limits.have(misfit, size)]
    points = Counter((misfit, size) for misfit, size, _ in members)
    spectrum = [[misfit, size, str(number)] for (misfit, size), number in sorted(points.items())]
    having = {text: sum(parse_clause(text) in model for *_, model in members) for text in data["clauses"]}
    return (
        data["count"] == str(len(members))
        and is_same(data["spectrum"], spectrum)
        and data["clauses"] == {text: str(number) for text, number in having.items()}
        and all(str(parse_clause(text)) == text for text in having)
        and certificate.in_words == _words(item.task, limits, conditional=False)
    )


def _open_is_true(item: LogicItem, certificate: Certificate) -> bool:
    data, task = certificate.data, item.task
    if not has_shape(data, limits=dict, part=str, having=list, lacking=list):
        return False
    limits, having, lacking = Limits.of(data["limits"]), _parsed(data["having"]), _parsed(data["lacking"])
    parts = [
        {*map(str, model), *(str(edge) for clause in model for edge in clause.edges)} for model in (having, lacking)
    ]
    return (
        _is_member(having, task, limits)
        and _is_member(lacking, task, limits)
        and data["part"] in parts[0] - parts[1]
        and certificate.in_words == _words(task, limits, conditional=True)
    )


def _better_is_true(item: LogicItem, certificate: Certificate) -> bool:
    data, task = certificate.data, item.task
    if not has_shape(data, model=list, better=list):
        return False
    model, better = _parsed(data["model"]), _parsed(data["better"])
    return (
        not reference.class_violation(better, task)
        and reference.is_acyclic(model)
        and reference.misfit(better, task) < reference.misfit(model, task)
        and certificate.in_words == _class_words(task)
    )


def _missing_is_true(item: LogicItem, certificate: Certificate) -> bool:
    data, task = certificate.data, item.task
    if not has_shape(data, limits=dict, member=list, listed=list):
        return False
    limits, member = Limits.of(data["limits"]), _parsed(data["member"])
    return (
        _is_member(member, task, limits)
        and member not in [_parsed(texts) for texts in data["listed"]]
        and certificate.in_words == _words(task, limits, conditional=True)
    )


def _counts() -> Sequence[Genuine]:
    families = [(item, family_of(item.task)) for item in items()]
    return [Genuine(item, count_certificate(family, family.open_clauses()[:2])) for item, family in families]


def _other_counts(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """One member more, another limit with the old spectrum, a clause of all members."""
    data = genuine.certificate.data
    yield {**data, "count": str(int(data["count"]) + 1)}
    yield {**data, "limits": {**data["limits"], "fit": "9"}}
    yield {**data, "limits": {**data["limits"], "size": None}}
    yield {**data, "clauses": dict.fromkeys(data["clauses"], data["count"])}


def _opens() -> Sequence[Genuine]:
    made = []
    for item in items():
        family = family_of(item.task)
        for clause in family.open_clauses()[:1]:
            certificate = open_certificate(family, clause)
            assert certificate is not None
            made.append(Genuine(item, certificate))
    return made


def _betters() -> Sequence[Genuine]:
    return [
        Genuine(item, better_certificate(family_of(item.task), frozenset()))
        for item in items()
        if reference.misfit(frozenset(), item.task) > family_of(item.task).optimum[0]
    ]


def _missings() -> Sequence[Genuine]:
    made = []
    for item in items():
        family = family_of(item.task)
        certificate = missing_certificate(family, list(family.models())[1:])
        assert certificate is not None
        made.append(Genuine(item, certificate))
    return made


# --- Claims about items of trajectories -------------------------------------------------------------------------------
NETWORK = b"a, b & !c\nb, c | a\nc, !b\nd, a | c\n"


@cache
def _trajectories() -> tuple[TrajectoryItem, ...]:
    stratum, source = TRAJECTORY_STRATA["series_n8_k2_partly"], Source(parse_network(NETWORK))
    return tuple(generate_trajectories([source], stratum, 3, number) for number in range(3))


def _of_claim(claim: str) -> list[Genuine]:
    return [
        Genuine(item, finding.certificate)
        for item in _trajectories()
        for finding in trajectory_findings(item)
        if finding.certificate is not None and finding.certificate.claim == claim
    ]


def _trajectory_words(item: TrajectoryItem) -> str:
    num_genes, num_candidates = len(item.task.genes), sum(map(len, item.task.candidates.values()))
    return f"networks of {num_genes} genes, functions of {num_candidates} candidates, monotone as their signs say"


def _networks_are_counted(item: TrajectoryItem, certificate: Certificate) -> bool:
    """Compare with the counts of the engine, which a verifier does not use."""
    outcome = fit_networks(item.task)
    assert isinstance(outcome, Found)
    counts = {gene: str(number) for gene, number in outcome.value.counts.items()}
    data = {"genes": counts, "count": str(outcome.value.count)}
    return is_same(certificate.data, data) and certificate.in_words == _trajectory_words(item)


def _networks_differ(item: TrajectoryItem, certificate: Certificate) -> bool:
    assert certificate.data.keys() == {"first", "second"}
    networks = [parse_model(certificate.data[key]) for key in ("first", "second")]
    shares = []
    for network in networks:
        if class_violation(network, item.task) or not fits(network, item.task):
            return False
        shares.append(answer_question(network, item.task))
    return shares[0] != shares[1] and certificate.in_words == _trajectory_words(item)


FORGERS = {
    "logic-count": Forger(_counts, _other_counts, _count_is_true),
    "logic-open": Forger(_opens, nothing_forged, _open_is_true),
    "logic-better": Forger(_betters, nothing_forged, _better_is_true),
    "logic-missing": Forger(_missings, nothing_forged, _missing_is_true),
    "trajectory-count": Forger(lambda: _of_claim("trajectory-count"), nothing_forged, _networks_are_counted),
    "trajectory-open": Forger(lambda: _of_claim("trajectory-open"), nothing_forged, _networks_differ),
}
