"""Search by SAT and SMT: solutions against enumeration, steps, true and false claims of several benchmarks."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, islice, product
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from calibrant.audits.causim.cross_examination import EXAMINERS as CAUSIM_EXAMINERS
from calibrant.audits.causim.verify import VERIFIERS as CAUSIM_VERIFIERS
from calibrant.audits.causim.verify import evidence_of
from calibrant.audits.claims import (
    Certificate,
    EngineName,
    NotExaminedError,
    RecountLimitError,
    Refused,
    certify,
    examine,
)
from calibrant.audits.logic.cross_examination import EXAMINERS as LOGIC_EXAMINERS
from calibrant.audits.logic.verify import VERIFIERS as LOGIC_VERIFIERS
from calibrant.audits.logic.verify import evidence_of as logic_evidence
from calibrant.audits.search import BooleanSearch
from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import Assignment, run, symbols
from calibrant.dsl.causim.question import project
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.errors import CalibrantError
from tests.oracles.engines import compare_forgeries, compare_items
from tests.support.commands import called, refused
from tests.support.effort import cases, effort
from tests.support.forgery import causim, logic
from tests.support.packages import needs

NAMES = "abcde"


@pytest.fixture(params=["sat", "smt"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    if request.param == "smt":
        needs("z3")
    return "smt" if request.param == "smt" else "sat"


def _random_clauses(rng: Random) -> list[list[tuple[str, bool]]]:
    return [
        [(rng.choice(NAMES), rng.random() < 0.5) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(0, 9))
    ]


def _solutions(
    search: BooleanSearch, names: Iterable[str], holds: Callable[[dict[str, bool]], bool]
) -> tuple[set[frozenset[str]], set[frozenset[str]]]:
    """Return the solutions that a search lists, and those by trying all."""
    listed = set()
    while (true := search.find()) is not None:
        chosen = frozenset(str(key[0]) for key in true)
        assert chosen not in listed
        listed.add(chosen)
        search.add(*(-search.literal(name) if name in chosen else search.literal(name) for name in names))
    tried = (dict(zip(names, bits, strict=True)) for bits in product((False, True), repeat=len(list(names))))
    return listed, {frozenset(name for name in names if values[name]) for values in tried if holds(values)}


def test_solutions_are_those_of_enumeration(engine: EngineName) -> None:
    rng = Random(5)
    for _ in range(20):
        search, clauses = BooleanSearch(engine), _random_clauses(rng)
        for name in NAMES:
            search.literal(name)
        for clause in clauses:
            search.add(*(search.literal(name) if sign else -search.literal(name) for name, sign in clause))

        def holds(values: dict[str, bool], clauses: list[list[tuple[str, bool]]] = clauses) -> bool:
            return all(any(values[name] == sign for name, sign in clause) for clause in clauses)

        listed, expected = _solutions(search, NAMES, holds)
        assert listed == expected


def test_an_empty_clause_leaves_nothing_and_a_choice_one(engine: EngineName) -> None:
    search = BooleanSearch(engine)
    search.add_choice([search.literal(name) for name in NAMES])
    listed, expected = _solutions(search, NAMES, lambda values: sum(values.values()) == 1)
    assert listed == expected
    search = BooleanSearch(engine)
    search.add()
    assert search.find() is None


def test_weighted_sums_are_limited_by_smt_alone() -> None:
    needs("z3")
    rng = Random(6)
    for _ in range(20):
        weights, limit = [rng.randint(-4, 4) for _ in NAMES], rng.randint(-8, 8)
        search = BooleanSearch("smt")
        search.add_at_most([(search.literal(name), weight) for name, weight in zip(NAMES, weights, strict=True)], limit)

        def is_within(values: dict[str, bool], weights: list[int] = weights, limit: int = limit) -> bool:
            return sum(weight for name, weight in zip(NAMES, weights, strict=True) if values[name]) <= limit

        listed, expected = _solutions(search, NAMES, is_within)
        assert listed == expected
    with pytest.raises(NotExaminedError, match="take smt"):
        BooleanSearch("sat").add_at_most([], 3)


def _find_twice(search: BooleanSearch) -> None:
    search.find()
    search.find()


def test_steps_have_a_limit(engine: EngineName) -> None:
    search = BooleanSearch(engine, max_steps=1)
    pigeons = [[search.literal(i, j) for j in range(6)] for i in range(7)]
    for holes in pigeons:
        search.add(*holes)
    for column in zip(*pigeons, strict=True):
        for k, first in enumerate(column):
            for second in column[:k]:
                search.add(-first, -second)
    with pytest.raises(RecountLimitError, match=r"^by (sat|smt) .*: .* steps are over"):
        _find_twice(search)


@pytest.mark.soak
def test_engines_agree_on_random_items() -> None:
    """Answers, sizes and counts; `python -m tests.oracles.engines items` compares 300."""
    needs("z3")
    totals, differences = compare_items(cases(100))
    assert differences == []
    assert 0 < totals["items without an SCM"] < totals["items"]
    assert totals["counts of at most 20, by both engines"] > totals["items"] / 3


@pytest.mark.soak
def test_forged_claims_are_refuted_with_a_counterexample_that_replays() -> None:
    """Of every kind in four benchmarks; `python -m tests.oracles.engines forgeries` has 120."""
    needs("z3")
    totals, differences = compare_forgeries(cases(150))
    assert differences == []
    kinds = {name.partition(":")[0].partition(", ")[2] for name in totals}
    assert kinds == {"uniqueness", "minimality", "emptiness", "k fit"}


@pytest.fixture(scope="module")
def bundled_certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of the certificates of a benchmark's bundled sample, audited once for both engines."""

    @cache
    def write(benchmark: str) -> Path:
        folder = tmp_path_factory.mktemp(benchmark)
        audit = ("audit", bundled_sample(benchmark), "--certificates", folder / "certs", "--out", folder / "audit")
        assert called(*audit).returncode == 0
        return folder / "certs"

    return write


@pytest.mark.parametrize("benchmark", ["causim", "blickets", "logic", "causalab"])
def test_bundled_certificates_are_proved_again(
    benchmark: str, engine: EngineName, bundled_certificates: Callable[[str], Path]
) -> None:
    files = sorted(bundled_certificates(benchmark).glob("*.json"))[:: effort(6, 1)]
    done = called("verify", *files, bundled_sample(benchmark), "--engine", engine)
    lines = done.stdout.splitlines()
    assert lines
    assert not [line for line in lines if line.startswith("refused")]
    unread = [line for line in lines if line.startswith("open")]
    if benchmark == "blickets":  # scripts are replayed, not searched
        assert all("counting-decides" in line or "full-marks-before-the-switch" in line for line in unread)
        assert 0 < len(unread) < len(lines)
    elif benchmark == "causalab":
        assert all("edges-cannot-matter" in line or (engine == "sat" and "take smt" in line) for line in unread)
        assert len(unread) > 0
        assert (len(unread) == len(lines)) == (engine == "sat")
    else:
        assert (len(unread) == len(lines)) == (benchmark == "logic" and engine == "sat")
        assert not unread or all("take smt" in line for line in unread)


# --- Claims of CauSim and logic models, true and false, by all worlds and by all models -----------------------------


def _causim_claims(claim: str) -> Iterator[tuple[CausimItem, Certificate]]:
    """Yield a claim with genuine and with forged data; of edges, and where it has no data, about every sixth item.

    A soak takes every third and up to 16 forgeries a claim; two have true and false ones of each kind too.
    """
    forger, rng = causim.FORGERS[claim], Random(7)
    genuine = forger.genuine()
    for source in genuine:
        yield source.item, source.certificate
        forged = list(forger.forged(source, rng))
        several = _other_observations(source.certificate) if claim == "minimal_evidence" else []
        for data in [*forged[:: len(forged) // effort(2, 16) + 1], *several]:
            # the worlds that a certificate brings are for the check without a search
            if data.get("against") == source.certificate.data.get("against"):
                yield source.item, msgspec.structs.replace(source.certificate, data=dict(data))
    for item in causim.items()[:: effort(6, 3)]:
        evidence = evidence_of(item.task.source, item.task.question)
        edges = [{"parent": parent, "child": node.name} for node in item.task.model.nodes for parent in node.parents]
        for data in edges if claim == "vacuous_edge" else [{}]:
            if set(data) == set(genuine[0].certificate.data):
                yield item, certify(claim, genuine[0].certificate.in_words, evidence, data)


def _other_observations(certificate: Certificate) -> Iterator[dict[str, Any]]:
    """Yield the data with other sets of candidates as observations: one fewer, as many, one more."""
    size, candidates = len(certificate.data["observe"]), certificate.data["candidates"]
    for k in (size - 1, size, size + 1):
        for names in islice(combinations(candidates, k), effort(2, 4)):
            yield {**certificate.data, "observe": list(names)}


def _refusal(item: CausimItem, certificate: Certificate, engine: EngineName) -> str:
    evidence = evidence_of(item.task.source, item.task.question, item.sealed.world)
    try:
        line = examine(certificate, evidence, CAUSIM_VERIFIERS, CAUSIM_EXAMINERS, engine)
    except Refused as refusal:
        return str(refusal)
    assert "proved again by" in line
    return ""


@cache
def _refusals(claim: str, engine: EngineName) -> list[tuple[CausimItem, Certificate, str]]:
    return [(item, certificate, _refusal(item, certificate, engine)) for item, certificate in _causim_claims(claim)]


# both engines read one encoding, of which these claims have every part
ENCODED: list[tuple[str, EngineName]] = [
    *((claim, "sat") for claim in sorted(causim.FORGERS)),
    *((claim, "smt") for claim in ("answer_count", "minimal_evidence", "vacuous_edge")),
]


@pytest.mark.soak
@pytest.mark.parametrize(("claim", "engine"), ENCODED)
def test_causim_claims_are_proved_or_refuted_as_all_worlds_decide(claim: str, engine: EngineName) -> None:
    if engine == "smt":
        needs("z3")
    verdicts = Counter[bool]()
    for item, certificate, refusal in _refusals(claim, engine):
        holds = causim.FORGERS[claim].is_true(item, certificate)
        assert (refusal == "") is holds, (item.id, certificate.data, refusal)
        verdicts[holds] += 1
    assert min(verdicts[True], verdicts[False]) >= 4


def _opposing_worlds(item: CausimItem, names: Iterable[str]) -> list[dict[str, str]]:
    """Return the worlds that fit, give the true values of these names and another answer."""
    model, question, truth = item.task.model, item.task.question, item.sealed.world

    def reading(noise: Assignment) -> dict[str, str]:
        return {**noise, **run(model, noise, {})}

    def answer(noise: Assignment) -> dict[str, str]:
        return dict(project(question, model, noise, run(model, noise, question.do)))

    shown = {**question.observed, **{name: reading(truth)[name] for name in names}}
    return [
        dict(noise)
        for noise, _ in worlds(model, question.fixed)
        if shown.items() <= reading(noise).items() and answer(noise) != answer(truth)
    ]


@pytest.mark.soak
def test_minimal_evidence_is_refuted_by_a_world_or_by_fewer_observations(engine: EngineName) -> None:
    refuted = Counter[str]()
    for item, certificate, refusal in _refusals("minimal_evidence", engine):
        if " leaves the world " in refusal:
            world = dict(symbols(json.loads(refusal.partition(" leaves the world ")[2])))
            assert world in _opposing_worlds(item, certificate.data["observe"])
            refuted["world"] += 1
        elif " is enough, which is less" in refusal:
            names = refusal.removeprefix("observing ").partition(" is enough")[0]
            fewer = [] if names == "nothing" else names.split(", ")
            assert len(fewer) < len(certificate.data["observe"])
            assert _opposing_worlds(item, fewer) == []
            refuted["fewer"] += 1
        elif not refusal:
            assert _opposing_worlds(item, certificate.data["observe"]) == []
            refuted["no"] += 1
    assert min(refuted["world"], refuted["fewer"], refuted["no"]) >= 4


@pytest.mark.soak
def test_a_vacuous_edge_is_refuted_by_two_rows(engine: EngineName) -> None:
    refuted = 0
    pattern = r"(\w+) changes from (.+) to (.+) as (\w+) does from (.+) to (.+), at (\{.*\})"
    for item, _, refusal in _refusals("vacuous_edge", engine):
        if (match := re.fullmatch(pattern, refusal)) is None:
            continue
        child, first, second, parent, before, after, rest = match.groups()
        node, context = item.task.model.nodes[item.task.model.position[child]], symbols(json.loads(rest))
        for value, parent_value in ((first, before), (second, after)):
            row = [parent_value if name == parent else context[name] for name in node.parents]
            assert node.value(tuple(row), context[node.noise]) == value
        assert first != second
        refuted += 1
    assert refuted > 10


def test_a_better_logic_model_is_proved_or_refuted_as_the_reference_decides() -> None:
    needs("z3")
    forger, verdicts = logic.FORGERS["logic-better"], Counter[bool]()
    for genuine in forger.genuine():
        item, data = genuine.item, genuine.certificate.data
        first, second = data["model"], data["better"]
        forged = [data, {"model": second, "better": first}, {"model": second, "better": second}]
        forged += [{"model": first, "better": second[1:]}, {"model": first, "better": second[:1]}]
        forged += [{"model": second[1:], "better": second}, {"model": first, "better": [*second, "n1<-n2&n3"]}]
        for changed in forged:
            certificate = msgspec.structs.replace(genuine.certificate, data=changed)
            holds = _better_holds(item, certificate)
            evidence = logic_evidence(item.task)
            try:
                line = examine(certificate, evidence, LOGIC_VERIFIERS, LOGIC_EXAMINERS, "smt")
            except Refused as refusal:
                line = str(refusal)
            except CalibrantError:  # a text that is no clause
                line = ""
            assert ("proved again by" in line) is holds, (item.id, changed, line)
            verdicts[holds] += 1
            if changed["model"] == second and not holds:
                assert "proves that no model of the class has misfit below" in line
    assert min(verdicts[True], verdicts[False]) >= 4


def _better_holds(item: Any, certificate: Certificate) -> bool:
    try:
        return logic.FORGERS["logic-better"].is_true(item, certificate)
    except CalibrantError:
        return False


def test_a_changed_certificate_is_refused(
    engine: EngineName, tmp_path: Path, bundled_certificates: Callable[[str], Path]
) -> None:
    pool = bundled_sample("causim")
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda certificate: certificate.update(evidence="0" * 64),
        lambda certificate: certificate.update(in_words="all worlds"),
        lambda certificate: certificate["data"].update(answer={}),
        lambda certificate: certificate.update(claim="no-such-claim"),
    ]
    certificates = sorted(bundled_certificates("causim").glob("*.json"))
    source = next(path for path in certificates if "unique_answer" in path.read_text("utf-8"))
    for k, change in enumerate(changes):
        document = json.loads(source.read_text("utf-8"))
        change(document["certificate"])
        forged = tmp_path / f"{k}.json"
        forged.write_text(json.dumps(document), "utf-8")
        done = called("verify", forged, pool, "--engine", engine)
        assert (done.returncode, done.stdout.partition(" ")[0]) == (1, "refused"), done.stdout


def test_smt_without_z3_names_the_extra(
    bundled_certificates: Callable[[str], Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, certificate = bundled_sample("causim"), min(bundled_certificates("causim").glob("*.json"))
    monkeypatch.setitem(sys.modules, "z3", None)
    assert "pip install 'calibrant[smt]'" in refused(capsys, "verify", certificate, pool, "--engine", "smt")
    assert called("verify", certificate, pool, "--engine", "sat").returncode == 0
