"""Audits of extended items, and calibration of noise rates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from calibrant.audits.claims import ClaimStatus, Refused
from calibrant.audits.replayscm.extended.items import Finding, audit_extended, decide_extended, item_evidence
from calibrant.audits.replayscm.extended.verify import (
    FORMAT,
    MAX_ENDOGENOUS,
    CertificateError,
    clairvoyant_certificate,
    class_record,
    mass_certificate,
    verify_certificate,
)
from calibrant.baselines.replayscm.rows import answer_hidden_blind, answer_noise_blind
from calibrant.bench.answers.rates import Forecast, Reliability, reliability
from calibrant.bench.pools.findings_audit import FindingRecord
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.episodes import is_episode
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.bench.replayscm.rows.exact import present_episode
from calibrant.bench.replayscm.verdict import has_heldout
from calibrant.bench.runs.records import config_digest, folder_records
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, task_class
from calibrant.dsl.replayscm.extensions.evaluation import ExtendedEvaluator
from calibrant.dsl.replayscm.extensions.extension import Contexts, MechanismClass, NoiseKind
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import BudgetSpent, Found
from calibrant.solvers.replayscm.canonical import canonical_problem
from calibrant.solvers.replayscm.experiments.candidates import posterior_bits
from calibrant.solvers.replayscm.experiments.clairvoyant import ClairvoyantMinimum, ClairvoyantSearch
from calibrant.solvers.replayscm.experiments.policies import episode_evidence, is_settled, play_worlds, stop_worlds
from calibrant.solvers.replayscm.noise.posterior import Posterior

# --- Calibration of the ceilings on a pool, and the distance of answers from them -------------------------------------
# A ceiling is the probability, under a prior, that the best possible answer is held-out exact. It is calibrated if the
# best answer is right for a share p of the instances with ceiling p. Answers are compared with the mean ceiling of the
# same instances, so that an unfinished run is compared fairly.
WEIGHTS = {None: "uniform", 1: "by size"}  # size penalty -> name of the weights of members
PRIORS = {
    "generator": "gold drawn by the published process; an estimate",
    "uniform": "every member alike, as no pool is drawn; certified",
    "by size": "members weighed by 2^-size, as no pool is drawn; certified",
}  # name -> assumption about gold, and whether the ceiling is an estimate or certified


class Bounds(NamedTuple):
    """Bounds of a ceiling, equal if it is exact. realised: whether gold agrees with the best answer; None: unknown."""

    lower: float
    upper: float
    realised: bool | None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The answers of one protocol, with one set of options, to instances that have a ceiling under a prior.

    number: number of answers; heldout_exact: number of these that are held-out exact
    ceiling: mean lower and mean upper bound of the ceilings of the same instances
    """

    protocol: str
    config: dict[str, Any]
    prior: str
    number: int
    heldout_exact: int
    ceiling: tuple[float, float]

    @property
    def rate(self) -> float:
        return self.heldout_exact / self.number

    @property
    def below(self) -> float:
        """Mean upper bound of the ceiling minus the rate; negative if the rate is above it."""
        return self.ceiling[1] - self.rate

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rate": self.rate, "below": self.below}


@dataclass(frozen=True)
class Calibration:
    """Calibration of the priors on a pool.

    means: prior -> (number of instances with a ceiling, mean lower bound, mean upper bound)
    reliability: prior -> predicted against realised frequencies; rows: answers compared with each ceiling
    """

    means: dict[str, tuple[int, float, float]]
    reliability: dict[str, Reliability]
    rows: tuple[AnswerRow, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("number", "lower", "upper")
        means = {prior: dict(zip(names, values, strict=True)) for prior, values in self.means.items()}
        reliability = {prior: asdict(values) for prior, values in self.reliability.items()}
        return {"ceilings": means, "reliability": reliability, "answers": [row.to_dict() for row in self.rows]}


def calibration(records: Sequence[AuditRecord], runs: Sequence[Path] = ()) -> Calibration:
    """Compute the calibration from the audits of one pool, and folders of runs on the same pool file."""
    ceilings = _ceilings(records)
    means = {
        prior: (len(bounds), fmean(c.lower for c in bounds.values()), fmean(c.upper for c in bounds.values()))
        for prior, bounds in ceilings.items()
        if bounds
    }
    forecasts = {
        prior: reliability(Forecast(Fraction(c.lower), c.realised) for c in bounds.values() if c.realised is not None)
        for prior, bounds in ceilings.items()
    }
    return Calibration(
        means,
        {prior: forecast for prior, forecast in forecasts.items() if forecast.number},
        tuple(row for folder in runs for row in _answer_rows(folder, records, ceilings)),
    )


def ceiling_under(prior: str, record: AuditRecord) -> Bounds | None:
    """Return the ceiling of one instance under one of PRIORS; None if its audit has none."""
    if record.findings is None or record.generator is None:
        return None
    if prior == "generator":
        share = record.generator.probability
        return None if share is None else Bounds(share, share, record.generator.realised)
    ceilings = (c for c in record.findings.ceilings if WEIGHTS[c.size_penalty] == prior)
    return next((Bounds(c.lower, c.upper, c.realised) for c in ceilings), None)


def _ceilings(records: Iterable[AuditRecord]) -> dict[str, dict[str, Bounds]]:
    """Return prior -> instance -> ceiling, for instances that have one."""
    ceilings: dict[str, dict[str, Bounds]] = {prior: {} for prior in PRIORS}
    for record in records:
        for prior, by_instance in ceilings.items():
            bounds = ceiling_under(prior, record)
            if bounds is not None:
                by_instance[record.instance] = bounds
    return ceilings


def _answer_rows(
    folder: Path, records: Sequence[AuditRecord], ceilings: dict[str, dict[str, Bounds]]
) -> list[AnswerRow]:
    """Return a row for each protocol with its options and each prior; held-out exact answers have the right roots."""
    audited = {(record.pool_digest, record.instance) for record in records}
    exact: dict[tuple[str, str], dict[str, bool]] = {}
    configs: dict[tuple[str, str], dict[str, Any]] = {}
    for record in folder_records(folder):
        if (record.pool_digest, record.instance) in audited and has_heldout(record.score, record.setting):
            group = record.protocol, config_digest(record.config)
            configs[group] = record.config
            exact.setdefault(group, {})[record.instance] = record.score.get("heldoutExact") is True
    if not exact:
        raise CalibrantError(f"{folder}: no answers to this pool's instances; was it run on the same file?")
    return [
        _answer_row(group[0], configs[group], prior, {i: answers[i] for i in answers if i in bounds}, bounds)
        for group, answers in sorted(exact.items())
        for prior, bounds in ceilings.items()
        if not bounds.keys().isdisjoint(answers)
    ]


def _answer_row(
    protocol: str, config: dict[str, Any], prior: str, answers: dict[str, bool], bounds: dict[str, Bounds]
) -> AnswerRow:
    mean = fmean(bounds[i].lower for i in answers), fmean(bounds[i].upper for i in answers)
    return AnswerRow(protocol, config, prior, len(answers), sum(answers.values()), mean)


# --- Audits of extended items: findings, their text and certificates, and labels of generated items -------------------
# Labels are computed on the canonical form of an item, as methods see it, so they do not depend on names and row order.
#
# bits_start: posterior entropy after the start, in bits
# greedy_worlds: number of worlds that greedy requests, `more than N` if the allowance stops it
# bayes_error: 1 minus the share of the most probable held-out behaviour given all evidence
# blind: methods that are right although they ignore noise or hidden variables
# clairvoyant: fewest worlds that rule out as many SCMs as all worlds; floor: number of SCMs that these worlds leave
# hidden_needed: posterior mass, at the start, of SCMs in which a hidden variable has a child
OPEN = (Finding.AMBIGUOUS.value, Finding.UNWINNABLE.value)  # several held-out behaviours remain

# --- Labels of generated extended items: ambiguity, results of greedy and of blind methods, least number of worlds
UNKNOWN = "out of budget"


def label_problem(problem: Problem) -> Problem:
    """Return the item with `item_labels` among its sealed labels."""
    sealed = replace(problem.sealed, labels={**problem.sealed.labels, **dict(item_labels(problem))})
    return replace(problem, sealed=sealed)


def item_labels(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield the labels of an item with their values as text."""
    if not is_episode(problem):
        problem = canonical_problem(problem)
        yield from _evidence_labels(problem, task_class(problem.task), task_evidence(problem.task), ())
        return
    original, problem = problem, present_episode(problem).content
    scm_class, episode = task_class(problem.task), ScmEpisode(problem)
    start = Posterior(scm_class).condition(*episode_evidence(episode))
    try:
        yield "bits_start", f"{posterior_bits(start, f'{problem.id}|bits').value:.2f}"
    except BudgetSpent:
        yield "bits_start", UNKNOWN
    if scm_class.hidden_parents:
        yield "hidden_needed", _hidden_needed(original)
    evidence: Sequence[EvidenceWorld] | None = None
    try:
        evidence = play_worlds(episode, "greedy", problem.id)
        yield "greedy_worlds", _num_worlds(episode, evidence, problem)
    except BudgetSpent:
        yield "greedy_worlds", UNKNOWN
    search = clairvoyant_search(problem)
    if search is not None:
        minimum = search.fewest()  # without the certificate, so that HiGHS is not needed
        yield "clairvoyant", str(len(minimum.worlds))
        yield "floor", str(minimum.floor)
    if evidence is None:
        # the other labels depend on the worlds that greedy requests
        yield "bayes_error", UNKNOWN
    else:
        yield from _evidence_labels(problem, scm_class, evidence, episode.steps)


def _num_worlds(episode: ScmEpisode, evidence: Sequence[EvidenceWorld], problem: Problem) -> str:
    num_worlds = len(evidence) - 1
    if episode.left:
        return str(num_worlds)
    posterior = Posterior(task_class(problem.task)).condition(*evidence)
    settled = is_settled(posterior, stop_worlds(problem.task), Random(f"{problem.id}|stop|{len(evidence)}"))
    return str(num_worlds) if settled else f"more than {num_worlds}"


def _hidden_needed(problem: Problem) -> str:
    """Return a text with each hidden variable and the posterior mass of its having a child, under the item's names."""
    scm_class = task_class(problem.task)
    start = Posterior(scm_class).condition(*episode_evidence(ScmEpisode(problem)))
    try:
        return " ".join(f"{h} {float(1 - start.without_children(h)):.3g}" for h in scm_class.hidden_parents)
    except BudgetSpent:
        return UNKNOWN


def _evidence_labels(
    problem: Problem, scm_class: MechanismClass, evidence: Sequence[EvidenceWorld], steps: Sequence[Step[Any]]
) -> Iterator[tuple[str, str]]:
    decision = decide_extended(problem, steps)
    yield "bayes_error", UNKNOWN if decision is None else f"{float(1 - decision.verdict.share):.3g}"
    rows = right_blind_methods(problem, scm_class, evidence)
    if rows is not None:
        yield "blind", " ".join(rows) or "none"


def right_blind_methods(
    problem: Problem, scm_class: MechanismClass, evidence: Sequence[EvidenceWorld]
) -> list[str] | None:
    """Return the blind methods whose answers are right on noise-free held-out worlds; None if none applies."""
    answer_functions = {}
    if not scm_class.noise.is_noiseless:
        answer_functions["noise-blind"] = answer_noise_blind
    if scm_class.hidden_parents:
        answer_functions["hidden-blind"] = answer_hidden_blind
    if not answer_functions:
        return None
    evaluator = ExtendedEvaluator(problem)
    right_names = []
    for name, answer in answer_functions.items():
        outcome = answer(problem.task, evidence)
        if isinstance(outcome, Found):
            replay = evaluator.score_answer(dict(outcome.value.submission)).replay
            if replay is not None and replay.heldout_exact:
                right_names.append(name)
    return right_names


def clairvoyant_minimum(problem: Problem) -> ClairvoyantMinimum | None:
    """Return the clairvoyant minimum of an episode; None under noise, with hidden variables or sampled contexts."""
    search = clairvoyant_search(problem)
    return None if search is None else search.solve()


def clairvoyant_search(problem: Problem) -> ClairvoyantSearch | None:
    """Return the search of `clairvoyant_minimum`; None under the same conditions."""
    gold, worlds = problem.sealed.gold, _clairvoyant_worlds(problem)
    if gold is None or worlds is None:
        return None
    return ClairvoyantSearch(problem.task, task_class(problem.task), gold.local_functions, worlds)


def _clairvoyant_worlds(problem: Problem) -> list[dict[str, int]] | None:
    """Return the worlds to choose from; None except for episodes of all contexts without noise and hidden variables."""
    scm_class, extension = task_class(problem.task), problem.task.extension
    assert extension is not None
    allowance = extension.allowance
    if allowance is None or allowance.contexts is not Contexts.ALL:
        return None
    if scm_class.hidden_parents or not scm_class.noise.is_noiseless:
        return None
    return candidate_worlds(scm_class.observed, allowance.max_targets)


# --- Audits of extended items: findings as records, with the blind methods that labels or evidence name ---------------
BLIND = "trivial"


def finding_records(problem: Problem) -> Iterator[FindingRecord]:
    """Yield the findings about an extended item; none without gold."""
    if problem.sealed.gold is None:
        return
    for finding in audit_extended(problem):
        data: dict[str, int | float | str] = {} if finding.share is None else {"share": float(finding.share)}
        status = ClaimStatus.PROVED if finding.is_proved else ClaimStatus.OPEN
        yield FindingRecord(problem.id, finding.kind.value, status, finding.reason, data, None)
    rows = _stated_blind_methods(problem)
    if rows:
        claim = f"right without what the item adds: {', '.join(rows)}"
        yield FindingRecord(problem.id, BLIND, ClaimStatus.PROVED, claim, {"rows": " ".join(rows)}, None)


def _stated_blind_methods(problem: Problem) -> list[str]:
    """Return the blind methods that are right: computed for a passive item, from the labels for an episode."""
    if is_episode(problem):
        stated = problem.sealed.labels.get("blind", "none")
        return [] if stated == "none" else stated.split()
    canonical = canonical_problem(problem)  # as methods see it, because their choices depend on the order of rows
    return right_blind_methods(canonical, task_class(canonical.task), task_evidence(canonical.task)) or []


# --- Certificates of extended items: written for a pool, and checked against its items --------------------------------
MAX_LINE_CHARS = 200
MAX_ASSIGNMENTS = 3_000_000  # parent-set assignments that a check may list, in about a minute


def minimum_certificate(problem: Problem) -> dict[str, Any] | None:
    """Return the certificate of the fewest worlds of an item; None for items without that minimum.

    `MissingExtraError` without HiGHS.
    """
    search = clairvoyant_search(problem)
    return None if search is None else {"instance": problem.id, **clairvoyant_certificate(search, search.solve())}


def evidence_certificate(problem: Problem) -> dict[str, Any]:
    """Return the certificate of the mass of an item's evidence; for an episode the mass at its start.

    `ValueError` or `BudgetSpent` where the mass cannot be recounted.
    """
    scm_class = task_class(problem.task)
    num_endogenous = len(scm_class.endogenous) + len(scm_class.hidden_parents)
    if num_endogenous > MAX_ENDOGENOUS:
        raise ValueError(f"masses are recounted for up to {MAX_ENDOGENOUS} endogenous variables, not {num_endogenous}")
    document = {"instance": problem.id, **mass_certificate(Posterior(scm_class).condition(*_evidence(problem)))}
    num_assignments = count_assignments(document)
    if num_assignments > MAX_ASSIGNMENTS:
        raise ValueError(
            f"recounting its mass would list {num_assignments:,} choices of parent sets; at most {MAX_ASSIGNMENTS:,}"
        )
    return document


def count_assignments(document: Mapping[str, Any]) -> int:
    """Count the parent-set assignments that the check of a mass lists."""
    terms = (term for column in document["columns"] for term in column["terms"])
    return sum(prod(len(sets) for sets in term["weights"].values()) for term in terms)


def _evidence(problem: Problem) -> list[Any]:
    return item_evidence(problem, ScmEpisode(problem).steps if is_episode(problem) else ())


def write_item_certificates(problem: Problem, folder: Path, stem: str) -> Iterator[str]:
    """Write an item's certificates; yield a line for each that cannot be built."""
    for claim, build in (("fewest worlds", minimum_certificate), ("mass", evidence_certificate)):
        try:
            document = build(problem)
        except (ValueError, BudgetSpent, MissingExtraError) as error:
            yield f"no certificate of the {claim} of {problem.id}: {error}"
            continue
        if document is not None:
            text = json.dumps(document, indent=1, sort_keys=True)
            write_atomically(folder / f"{stem}.{document['claim']}.json", f"{text}\n")


def is_extended_certificate(document: Mapping[str, object]) -> bool:
    """Return whether a document is a certificate of an extended item."""
    return document.get("format") == FORMAT


def check_certificate(document: Mapping[str, Any], problem: Problem) -> str:
    """Return a text on what was checked; `Refused` if the certificate is of another item or does not hold."""
    if problem.task.extension is None:
        raise Refused("the instance is a plain one")
    scm_class = task_class(problem.task)
    stated, actual = (json.dumps(c, sort_keys=True) for c in (document.get("class"), class_record(scm_class)))
    if stated != actual:  # as text: 1 is not true there, and not 1.0
        raise Refused("its class is not the item's")
    try:
        if document.get("claim") == "mass":
            if scm_class.noise.kind is NoiseKind.EACH:
                raise Refused("each variable has its own rate; a mass is recounted for a common one")
            _require_rows(document, problem)
            if count_assignments(document) > MAX_ASSIGNMENTS:
                raise Refused(f"to recount it would list more than {MAX_ASSIGNMENTS:,} choices of parent sets")
        elif document.get("claim") == "clairvoyant":
            _require_candidates(document, problem)
        return verify_certificate(document)[:MAX_LINE_CHARS]  # a mass under noise has hundreds of digits
    except (CertificateError, KeyError, TypeError, AttributeError) as error:
        raise Refused(str(error) or "malformed") from None


def _require_rows(document: Mapping[str, Any], problem: Problem) -> None:
    rows = [
        {"row": row, "targets": [v for v in task_class(problem.task).observed if v in world.constants], "clean": False}
        for world in _evidence(problem)
        for row in world.rows
    ]

    def key(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...], bool]:
        return row["row"], tuple(row["targets"]), bool(row["clean"])

    if sorted(map(key, document["rows"])) != sorted(map(key, rows)):
        raise Refused("its rows are not the item's")


def _require_candidates(document: Mapping[str, Any], problem: Problem) -> None:
    gold, candidates = problem.sealed.gold, _clairvoyant_worlds(problem)
    if gold is None or candidates is None:
        raise Refused("it is for episodes of all contexts, without noise and hidden variables; the item is none")
    if document["candidates"] != candidates:
        raise Refused("its candidates are not the item's")
    tables = {
        v: "".join(str(f.table.bits >> row & 1) for row in range(1 << len(f.parents)))
        for v, f in gold.local_functions.items()
    }
    truth = {v: {"parents": list(f.parents), "table": tables[v]} for v, f in gold.local_functions.items()}
    if document["truth"] != truth:
        raise Refused("its truth is not gold")
