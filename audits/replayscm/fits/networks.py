"""Recounts of claims about networks on a table: the highest score, the score of one network, the size of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import fsum, lgamma, log, prod
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from calibrant.audits.claims import Certificate, checkpoint
from calibrant.audits.replayscm.fits.evidence import GAP, ReadingRecord, TableEvidence
from calibrant.dsl.knowledge import CheckedKnowledge, Knowledge, Statement
from calibrant.dsl.text import plural

Arc: TypeAlias = tuple[str, str]
Score: TypeAlias = Literal["bde", "bds", "bdj", "k2", "bic", "aic"]
MAX_IMAGINARY_ROWS = 1_000_000  # with 1e10 of 24 rows rounding moved a score by 1e-3
ImaginaryRows = Annotated[float, Meta(gt=0, le=MAX_IMAGINARY_ROWS)]
Dag: TypeAlias = list[int]
"""Parents of each column, as a mask."""

MAX_OPTIMUM_COLUMNS = 8  # all parent sets of all columns: 1,024 local scores
MAX_ARCS = 12  # 4,096 orientations
MAX_DENSE_COLUMNS = 18  # with more, at most DEFAULT_PARENTS are allowed unless the knowledge has a limit
DEFAULT_PARENTS = 3
TIE = 1e-9  # scores that differ by less are equal
ROUNDING = 2.0**-46  # error of a score by the sum of the sizes of its terms: 64 units in the last place


class StatementRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of knowledge; see `dsl.knowledge.Statement`."""

    word: Literal["require", "forbid", "tiers", "order", "roots", "max-parents", "max-parents-of"]
    arcs: list[Arc] = []
    tiers: list[list[str]] = []
    names: list[str] = []
    limits: list[tuple[str, int]] = []


STATED_FIELDS: Mapping[str, str] = {
    "require": "arcs",
    "forbid": "arcs",
    "tiers": "tiers",
    "order": "names",
    "roots": "names",
    "max-parents": "limits",
    "max-parents-of": "limits",
}


class NetworkScoreData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network that the knowledge admits, and its score."""

    reading: ReadingRecord
    score: Score
    iss: ImaginaryRows
    knowledge: list[StatementRecord]
    arcs: list[Arc]
    best_score: float


class NetworkOptimumData(NetworkScoreData, frozen=True, forbid_unknown_fields=True):
    """A network of highest score; `optimal_networks`: how many have this score, to 1e-9, None if not counted."""

    optimal_networks: Annotated[int, Meta(ge=1)] | None


class ClassSizeData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The interventional equivalence class of a network, given the sets of columns that were set together.

    members: number of networks; directed: arcs of one direction in all of them; undirected: other arcs
    """

    reading: ReadingRecord
    knowledge: list[StatementRecord]
    arcs: list[Arc]
    members: Annotated[int, Meta(ge=1)]
    directed: list[Arc]
    undirected: list[Arc]


# --- Knowledge --------------------------------------------------------------------------------------------------------


def check_knowledge(evidence: TableEvidence, records: Sequence[StatementRecord]) -> CheckedKnowledge:
    """Return the knowledge about the columns; a column that was set in every row may have no parents.

    `ValueError` for a statement with fields that its word does not use: they would be in its words, and not be checked.
    """
    for record in records:
        stated = [name for name in ("arcs", "tiers", "names", "limits") if getattr(record, name)]
        is_general = [not name for name, _ in record.limits] == [True]
        if stated != [STATED_FIELDS[record.word]] or is_general != (record.word == "max-parents"):
            raise ValueError(f"{record.word} states {STATED_FIELDS[record.word]} of its form alone")
    statements = [
        Statement(
            record.word,
            "the certificate",
            tuple(record.arcs),
            tuple(map(tuple, record.tiers)),
            tuple(record.names),
            tuple(record.limits),
        )
        for record in records
    ]
    checked = Knowledge(tuple(statements)).check(evidence.names)
    limits = checked.limits
    if len(evidence.names) > MAX_DENSE_COLUMNS and not any(record.word == "max-parents" for record in records):
        defaults = [max(mask.bit_count(), DEFAULT_PARENTS) for mask in checked.required]
        limits = tuple(min(limit, default) for limit, default in zip(limits, defaults, strict=True))
    always = [bool(column.all()) for column in evidence.is_set.T]
    allowed = tuple(0 if always[v] else mask for v, mask in enumerate(checked.allowed))
    return replace(checked, limits=limits, allowed=allowed)


def _dag_of(evidence: TableEvidence, arcs: Sequence[Arc]) -> Dag:
    """Return the parents of each column; `ValueError` for an arc stated twice, to itself, or a cycle."""
    dag = [0] * len(evidence.names)
    for parent, child in arcs:
        u, v = evidence.position(parent), evidence.position(child)
        if u == v or dag[v] >> u & 1:
            raise ValueError(f"{parent} -> {child} is no arc, or stated twice")
        dag[v] |= 1 << u
    if not _is_acyclic(dag):
        raise ValueError("the arcs have a cycle")
    return dag


def _is_acyclic(dag: Sequence[int]) -> bool:
    remaining = (1 << len(dag)) - 1
    while remaining:
        roots = sum(1 << v for v in range(len(dag)) if remaining >> v & 1 and not dag[v] & remaining)
        if not roots:
            return False
        remaining &= ~roots
    return True


def _admits(knowledge: CheckedKnowledge, dag: Sequence[int]) -> bool:
    """Return whether the parents of each column are allowed."""
    return all(knowledge.admits(v, parents) for v, parents in enumerate(dag))


# --- Scores -----------------------------------------------------------------------------------------------------------


def local_score(evidence: TableEvidence, score: Score, iss: float, child: int, parents: int) -> float:
    """Return a local score by its definition."""
    return fsum(_local_terms(evidence, score, iss, child, parents))


def _local_terms(evidence: TableEvidence, score: Score, iss: float, child: int, parents: int) -> list[float]:
    """Return the terms of a local score, over the rows in which the child was not set.

    iss: imaginary sample size of bde and bds, in rows; parents: as a mask
    """
    free = ~evidence.is_set[:, child]
    chosen = [u for u in range(len(evidence.names)) if parents >> u & 1]
    r = len(evidence.words[child])
    q = prod(len(evidence.words[u]) for u in chosen)
    _, group = np.unique(evidence.codes[free][:, chosen], axis=0, return_inverse=True)
    num_groups = int(group.max(initial=-1)) + 1  # observed configurations of the parents
    cells = np.zeros((num_groups, r), np.int64)
    np.add.at(cells, (group.ravel(), evidence.codes[free, child]), evidence.counts[free])
    counts = [[n for n in row if n] for row in cells.tolist()]
    if score in ("bic", "aic"):
        price = log(evidence.num_rows) / 2 if score == "bic" else 1.0
        return [-price * q * (r - 1), *(n * log(n / sum(row)) for row in counts for n in row)]
    if score in ("bde", "bds"):
        cell = iss / (q if score == "bde" else max(1, num_groups)) / r
    else:
        cell = 1.0 if score == "k2" else 0.5
    rows = (lgamma(cell * r) - lgamma(cell * r + sum(row)) for row in counts)
    return [*rows, *(lgamma(cell + n) - lgamma(cell) for row in counts for n in row)]


def _require_complete(evidence: TableEvidence) -> None:
    if (evidence.codes == GAP).any():
        raise ValueError("the table has gaps, over which no score is recounted")


def _check_score(evidence: TableEvidence, data: NetworkScoreData, knowledge: CheckedKnowledge) -> str:
    """Return why the network is not admitted or has another score, "" if neither."""
    _require_complete(evidence)
    dag = _dag_of(evidence, data.arcs)
    violations = knowledge.violations(dag)
    if violations:
        return violations[0]
    terms = _network_terms(evidence, data, dag)
    if not abs(fsum(terms) - data.best_score) <= ROUNDING * fsum(map(abs, terms)):  # NaN is no score either
        return f"the network has the score {fsum(terms)}"
    return ""


def _network_terms(evidence: TableEvidence, data: NetworkScoreData, dag: Dag) -> list[float]:
    return [t for v, parents in enumerate(dag) for t in _local_terms(evidence, data.score, data.iss, v, parents)]


def check_network_score(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, NetworkScoreData)
    return _check_score(evidence, data, check_knowledge(evidence, data.knowledge))


def check_optimum(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, NetworkOptimumData)
    if len(evidence.names) > MAX_OPTIMUM_COLUMNS:
        return f"{len(evidence.names)} columns; optima are recounted up to {MAX_OPTIMUM_COLUMNS}"
    knowledge = check_knowledge(evidence, data.knowledge)
    reason = _check_score(evidence, data, knowledge)
    if reason:
        return reason
    best, num_optimal = find_optimum(evidence, data.score, data.iss, knowledge)
    if best > fsum(_network_terms(evidence, data, _dag_of(evidence, data.arcs))) + TIE:
        return f"the highest score is {best:.9f}"
    if data.optimal_networks not in (None, num_optimal):
        return f"{plural(num_optimal, 'networks')} have the highest score"
    return ""


def find_optimum(evidence: TableEvidence, score: Score, iss: float, knowledge: CheckedKnowledge) -> tuple[float, int]:
    """Return the highest score of any admitted network, and how many networks have it to 1e-9.

    Dynamic programming over sets of columns: a network on a set is a set of sinks, whose parents lie in the remainder,
    and a network on the remainder. Inclusion and exclusion counts a network with several sinks once.
    """
    num_columns = len(evidence.names)
    not_admitted = -float("inf")
    local = [[not_admitted] * (1 << num_columns) for _ in range(num_columns)]
    for v in range(num_columns):
        for parents in range(1 << num_columns):
            if not parents >> v & 1 and knowledge.admits(v, parents):
                checkpoint(f"scores of {evidence.names[v]}", parents, 1 << num_columns)
                local[v][parents] = local_score(evidence, score, iss, v, parents)
    options = [_best_by_candidates(scores, v, num_columns) for v, scores in enumerate(local)]
    best, counts = [0.0], [1]
    for placed in range(1, 1 << num_columns):
        terms: list[tuple[float, int]] = []
        for sinks in range(1, placed + 1):
            if sinks & ~placed:
                continue
            below = placed & ~sinks
            total, product_of_counts = best[below], counts[below]
            for v in range(num_columns):
                if sinks >> v & 1:
                    total += options[v][below][0]
                    product_of_counts *= options[v][below][1]
            terms.append((total, product_of_counts if sinks.bit_count() & 1 else -product_of_counts))
        highest = max((total for total, count in terms if count), default=not_admitted)
        best.append(highest)
        optimal = [count for total, count in terms if total >= highest - TIE]
        counts.append(sum(optimal) if highest > not_admitted else 0)
    return best[-1], counts[-1]


def _best_by_candidates(scores: Sequence[float], child: int, num_columns: int) -> list[tuple[float, int]]:
    """Return, for every set of candidates, the best score of a parent set in it, and how many parent sets have it."""
    options: list[tuple[float, int]] = []
    for allowed in range(1 << num_columns):
        inside = [parents for parents in _subsets(allowed & ~(1 << child)) if scores[parents] > -float("inf")]
        if not inside:
            options.append((-float("inf"), 0))
            continue
        best = max(scores[parents] for parents in inside)
        options.append((best, sum(scores[parents] >= best - TIE for parents in inside)))
    return options


def _subsets(mask: int) -> list[int]:
    subsets = [0]
    while mask:
        bit = mask & -mask
        mask ^= bit
        subsets += [subset | bit for subset in subsets]
    return subsets


# --- Classes ----------------------------------------------------------------------------------------------------------


def list_members(evidence: TableEvidence, dag: Dag, knowledge: CheckedKnowledge) -> list[Dag]:
    """Return the admitted networks of the interventional equivalence class of a network.

    They have the same skeleton and colliders for every set of columns that were set together, without arcs into it.
    """
    targets = sorted({sum(1 << int(v) for v in np.flatnonzero(row)) for row in evidence.is_set})
    always = [bool(column.all()) for column in evidence.is_set.T]
    edges = [(u, v) for v, parents in enumerate(dag) for u in range(len(dag)) if parents >> u & 1]
    shapes = [_shape(dag, target) for target in targets]
    members = []
    for index, turned in enumerate(product((False, True), repeat=len(edges))):
        checkpoint("orientations", index, 1 << len(edges))
        turned_dag = [0] * len(dag)
        for (u, v), is_turned in zip(edges, turned, strict=True):
            parent, child = (v, u) if is_turned else (u, v)
            turned_dag[child] |= 1 << parent
        if any(parents and always[v] for v, parents in enumerate(turned_dag)) or not _is_acyclic(turned_dag):
            continue
        if _admits(knowledge, turned_dag) and [_shape(turned_dag, target) for target in targets] == shapes:
            members.append(turned_dag)
    return members


def _shape(dag: Sequence[int], target: int) -> tuple[set[frozenset[int]], set[tuple[int, frozenset[int]]]]:
    """Return the skeleton and colliders without the arcs into the target columns (a mask)."""
    arcs = [(u, v) for v, p in enumerate(dag) if not target >> v & 1 for u in range(len(dag)) if p >> u & 1]
    skeleton = {frozenset(arc) for arc in arcs}
    colliders = {
        (v, frozenset((a, b)))
        for a, v in arcs
        for b, w in arcs
        if w == v and a != b and frozenset((a, b)) not in skeleton
    }
    return skeleton, colliders


def check_class(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ClassSizeData)
    if len(data.arcs) > MAX_ARCS:
        return f"{len(data.arcs)} arcs; classes are recounted up to {MAX_ARCS}"
    dag, knowledge = _dag_of(evidence, data.arcs), check_knowledge(evidence, data.knowledge)
    if knowledge.violations(dag):
        return knowledge.violations(dag)[0]
    members = list_members(evidence, dag, knowledge)
    if len(members) != data.members:
        return f"the class has {plural(len(members), 'members')}"
    names = evidence.names
    directions = {
        (names[u], names[v])
        for turned_dag in members
        for v, p in enumerate(turned_dag)
        for u in range(len(dag))
        if p >> u & 1
    }
    undirected = {frozenset(arc) for arc in directions if (arc[1], arc[0]) in directions}
    directed = {arc for arc in directions if frozenset(arc) not in undirected}
    if sorted(data.directed) != sorted(directed) or sorted(map(sorted, data.undirected)) != sorted(
        map(sorted, undirected)
    ):
        arcs = ", ".join(f"{a} -> {b}" for a, b in sorted(directed)) or "none"
        return f"arcs of one direction in all members: {arcs}"
    return ""


# --- Classes in words -------------------------------------------------------------------------------------------------


def _knowledge_words(knowledge: Sequence[StatementRecord]) -> str:
    return f" that keep: {'; '.join(map(_statement_text, knowledge))}" if knowledge else ""


def _statement_text(record: StatementRecord) -> str:
    parts = [f"{parent} -> {child}" for parent, child in record.arcs]
    parts += [" < ".join(", ".join(tier) for tier in record.tiers)] if record.tiers else []
    parts += [*record.names, *(f"{name}={limit}" if name else str(limit) for name, limit in record.limits)]
    return f"{record.word} {', '.join(parts)}"


def _limit_words(evidence: TableEvidence, knowledge: Sequence[StatementRecord]) -> str:
    has_limit = any(record.word == "max-parents" for record in knowledge)
    is_limited = len(evidence.names) > MAX_DENSE_COLUMNS and not has_limit
    return f" of at most {DEFAULT_PARENTS} parents a column" if is_limited else ""


def _score_words(data: NetworkScoreData) -> str:
    rows = "row" if data.iss == 1 else "rows"
    return f"{data.score}, {data.iss:g} imaginary {rows}" if data.score in ("bde", "bds") else data.score


def optimum_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, NetworkOptimumData)
    return (
        f"highest score ({_score_words(data)}) of all networks{_knowledge_words(data.knowledge)}; {evidence.in_words}"
    )


def network_score_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, NetworkScoreData)
    return (
        f"score ({_score_words(data)}) of a network{_limit_words(evidence, data.knowledge)}"
        f"{_knowledge_words(data.knowledge)}; that none scores higher is by HiGHS or a search, with a bound without"
        f" rounding, and is not recounted; {evidence.in_words}"
    )


def class_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ClassSizeData)
    return f"networks that no such rows tell apart{_knowledge_words(data.knowledge)}; {evidence.in_words}"
