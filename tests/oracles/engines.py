"""Engines beside each other: answers, sizes and counts of random items; certificates of bundled suites; forged claims.

    python -m tests.oracles.engines [items|certificates|forgeries ...] [--count 300] [--forged 120]

Needs z3. `items` compares the rows exact, exact-sat, exact-smt and exact-dp on random items, and counts of up to 20
by listing, greater ones by Ganak where pyganak is installed. `certificates` proves those of the bundled pools by SAT
and SMT. `forgeries` are claims of uniqueness, minimality, emptiness and of a number of hypotheses that are false by
one; each has to be refuted by SMT with a counterexample, which is read back from the line and replayed by the
reference. The exit code is 1 after a difference.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from calibrant.audits import claims
from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.audits.causalab.cross_examination import EXAMINERS as LAB_EXAMINERS
from calibrant.audits.causalab.items import after_every_setting
from calibrant.audits.causalab.verify import (
    FREQUENCY_DECIDED,
    GRAPH_DECIDED,
    UNWINNABLE,
    every_property_set,
    item_evidence,
    nonmember_reason,
    visible_data,
)
from calibrant.audits.causalab.verify import VERIFIERS as LAB_VERIFIERS
from calibrant.audits.causim.cross_examination import EXAMINERS as CAUSIM_EXAMINERS
from calibrant.audits.causim.verify import VERIFIERS as CAUSIM_VERIFIERS
from calibrant.audits.causim.verify import Evidence, answer_count, evidence_of, unique_answer
from calibrant.audits.claims import Certificate, EngineName, Refused
from calibrant.audits.logic.cross_examination import EXAMINERS as LOGIC_EXAMINERS
from calibrant.audits.logic.verify import VERIFIERS as LOGIC_VERIFIERS
from calibrant.audits.logic.verify import Case, model_from_texts
from calibrant.audits.replayscm.certificates.cross_examination import Claim, examine
from calibrant.audits.search import MAX_LISTED
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.bench.pools.findings_audit import VERIFY, Verdict, check_file
from calibrant.bench.replayscm.rows.exact import Exact, ExactDp, ExactSat, ExactSmt
from calibrant.dsl.causalab.configs import View
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Reactor, Term, winnable
from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.model import run, symbols
from calibrant.dsl.causim.question import project, question_from_record
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import model_size
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.canonical import canonical_task
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.commands import called
from tests.support.replayscm.random_problems import Limits, small_problems

ENGINES: tuple[EngineName, ...] = ("sat", "smt")
BY_COUNTING: tuple[EngineName, ...] = ("sat",) if find_spec("pyganak") else ()  # of more members than are listed
REPLAYSCM = ("ordered", "block", "hidden-order", "hidden-roots")
OTHERS = ("causim", "blickets", "logic", "causalab")


# --- Random items: four rows, and counts ------------------------------------------------------------------------------


def item_differences(task: Task, max_parents: int) -> Iterator[str]:
    """Yield where rows answer otherwise than `exact`, or an engine does not prove the count."""
    results = {row.name: row.answer(task) for row in (Exact(), ExactSat(), ExactSmt(), ExactDp())}
    plain = results["exact"]
    for name, result in results.items():
        if (result.outcome, result.answer) != (plain.outcome, plain.answer):
            yield f"{name}: {result.outcome} {result.answer}, exact: {plain.outcome} {plain.answer}"
    outcomes = [solve(task, engine=engine) for engine in ("auto", "subset_dp", "sat", "smt")]
    if len({outcome.value.size if isinstance(outcome, Found) else repr(outcome) for outcome in outcomes}) > 1:
        yield f"sizes by engine differ: {outcomes}"
    number = VersionSpace(task, ModelClass(max_parents)).count
    for engine in ENGINES if number <= MAX_LISTED else BY_COUNTING:
        try:
            examine(Claim(task, max_parents, task.variables, number), engine)
        except Refused as refusal:
            yield f"{engine}: {refusal}"


def compare_items(number: int) -> tuple[Counter[str], list[str]]:
    """Return what was compared, and the differences."""
    totals: Counter[str] = Counter()
    lines = []
    for k, problem in enumerate(small_problems(4600, number, Limits(variables=5, endogenous=4, rows=20))):
        task, max_parents = canonical_task(problem.task).task, 1 + k % 3
        counted = VersionSpace(task, ModelClass(max_parents)).count
        totals["items"] += 1
        totals["counts of at most 20, by both engines"] += counted <= MAX_LISTED
        totals["greater counts, by Ganak"] += counted > MAX_LISTED and bool(BY_COUNTING)
        totals["items without an SCM"] += counted == 0
        lines += [f"{problem.id}: {line}" for line in item_differences(task, max_parents)]
    return totals, lines


# --- Certificates of the bundled suites -------------------------------------------------------------------------------


def bundled_certificates(folder: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield pool, folder of certificates and name of each bundled pool, audited; of ReplaySCM in two classes."""
    for name in REPLAYSCM:
        for parents in (2, 4):
            target = folder / f"{name}-{parents}"
            audit = ("audit", bundled_pool(name), "--max-parents", parents, "--certificates", target)
            assert called(*audit, "--workers", 2, "--out", folder / f"{name}-{parents}-audit").returncode == 0
            yield bundled_pool(name), target, f"{name}, at most {parents} parents"
    for name in OTHERS:
        target = folder / name
        record = folder / f"{name}-audit"
        assert called("audit", bundled_sample(name), "--certificates", target, "--out", record).returncode == 0
        yield bundled_sample(name), target, name


def compare_certificates() -> tuple[Counter[str], list[str]]:
    """Return verdicts by pool and engine, and the certificates that an engine refuses."""
    from calibrant.bench.core.registry import benchmark_of

    totals: Counter[str] = Counter()
    lines = []
    with TemporaryDirectory() as directory:
        for pool, folder, name in bundled_certificates(Path(directory)):
            for engine in ENGINES:
                check = benchmark_of(pool).require(VERIFY).check_against(pool, engine)
                for path in sorted(folder.glob("*.json")):
                    result = check_file(path, check, 600)
                    totals[f"{name}, {engine}: {result.verdict}"] += 1
                    if result.verdict is Verdict.REFUSED:
                        lines.append(f"{name}, {engine}: {path.name}: {result.reason}")
    return totals, lines


# --- Forged claims ----------------------------------------------------------------------------------------------------


class Forgery(NamedTuple):
    """A false claim that SMT has to refute. kind: what it claims; refusal: the line; replays: whether it shows why."""

    kind: str
    refusal: str
    replays: bool


def printed_scm(refusal: str, task: Task) -> Scm:
    """Return the SCM that a refusal prints last."""
    text = refusal.rpartition(" than ")[2] if "no other than " in refusal else refusal.rpartition(": ")[2]
    parts, roots = text.split("; "), task.disclosure.roots
    if roots is None:
        roots = tuple(parts.pop(0).removeprefix("roots ").split())
    return Scm(roots, {v: parse(formula, ALL_OPERATORS) for v, formula in (part.split(" = ") for part in parts)})


def scm_forgeries(seed: int) -> Iterator[Forgery]:
    """Yield counts of random items that are wrong: uniqueness, emptiness, k fit; and another only member."""
    for k, problem in enumerate(small_problems(seed, 10_000)):
        task, max_parents = problem.task, 1 + k % 3
        number = VersionSpace(task, ModelClass(max_parents)).count
        if not 0 < number <= MAX_LISTED:
            continue
        forged = [("emptiness", 0), ("k fit", number + 1)]
        forged += [("uniqueness", 1)] if number > 1 else []
        forged += [("k fit", number - 1)] if number > 2 else []
        for kind, claimed in forged:
            try:
                examine(Claim(task, max_parents, task.variables, claimed), "smt")
            except Refused as refusal:
                shown = printed_scm(str(refusal), task)
                yield Forgery(f"replayscm, {kind}", str(refusal), replays_exactly(shown, task.training.worlds))
            else:
                yield Forgery(f"replayscm, {kind}", "not refuted", replays=False)


def _refusal(certificate: Certificate, evidence: object, verifiers: Any, examiners: Any) -> str:
    try:
        claims.examine(certificate, evidence, verifiers, examiners, "smt")
    except Refused as refusal:
        return str(refusal)
    return "not refuted"


def causim_forgeries() -> Iterator[Forgery]:
    """Yield numbers of answers, only answers and least observations of bundled questions that are false by one."""
    import calibrant

    items: Iterable[Any] = calibrant.load_pool(bundled_sample("causim"))
    for item in items:
        source, question = item.task.source, item.task.question
        evidence, space = evidence_of(source, question, item.sealed.world), calibrant.version_space(item)
        number, model = space.count, load_source(source)
        if not 0 < number <= MAX_LISTED:
            continue
        forged = [("k fit", answer_count(source, question, number + 1))]
        forged += [("emptiness", answer_count(source, question, 0))]
        if number > 1:
            world = item.sealed.world
            answer = project(question, model, world, run(model, world, question.do))
            forged += [("uniqueness", unique_answer(source, question, answer))]
        for kind, certificate in forged:
            if claims.verify(certificate, evidence, CAUSIM_VERIFIERS).holds:
                continue  # several worlds, one answer: no forgery
            refusal = _refusal(certificate, evidence, CAUSIM_VERIFIERS, CAUSIM_EXAMINERS)
            yield Forgery(f"causim, {kind}", refusal, _world_replays(evidence, refusal))


def _world_replays(evidence: Evidence, refusal: str) -> bool:
    """Return whether the world that a refusal prints agrees with the evidence; true of one that proves exhaustion."""
    if "proves that there is no other" in refusal:
        return True
    assert evidence.question is not None
    model, text = load_source(evidence.program), refusal.rpartition(" in the world ")[2]
    world = symbols(json.loads(text)) if text.startswith("{") else {}
    if not world:
        return False
    question = question_from_record(evidence.question, evidence.type, model, with_noise=evidence.with_noise)  # type: ignore[arg-type]
    values = {**world, **run(model, world, {})}
    return all(values[name] == value for name, value in [*question.observed.items(), *question.fixed.items()])


def logic_forgeries(folder: Path) -> Iterator[Forgery]:
    """Yield numbers of models and optima of bundled items that are false by one: k fit, emptiness, minimality."""
    import calibrant
    from calibrant.audits.logic.verify import evidence_of as logic_evidence

    items: dict[str, Any] = {item.id: item for item in calibrant.load_pool(bundled_sample("logic"))}
    called("audit", bundled_sample("logic"), "--certificates", folder / "logic", "--out", folder / "logic-audit")
    for path in sorted((folder / "logic").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        certificate, evidence = document["certificate"], logic_evidence(items[document["instance"]].task)
        if certificate["claim"] != "logic-count":
            continue
        data, limits = certificate["data"], certificate["data"]["limits"]
        case = Case(evidence)
        forged = [("k fit", {**data, "count": str(int(data["count"]) - 1)}), ("emptiness", {**data, "count": "0"})]
        better = {**limits, "least_size": limits["least_size"] + 1}
        forged += [("minimality", {**data, "limits": better})]
        forged += [("minimality", {**data, "limits": {**limits, "least_misfit": limits["least_misfit"] + 1}})]
        for kind, changed in forged:
            refusal = _refusal(
                Certificate(**{**certificate, "data": changed}), evidence, LOGIC_VERIFIERS, LOGIC_EXAMINERS
            )
            text = refusal.partition(" has misfit ")[0] if " has misfit " in refusal else refusal.rpartition(": ")[2]
            model = model_from_texts([] if "empty model" in text else text.split())
            is_model = not reference.class_violation(model, case.task)
            figures = f" has misfit {case.misfit(model)} and size {model_size(model)}"
            yield Forgery(f"logic, {kind}", refusal, is_model and (" has misfit " not in refusal or figures in refusal))


def lab_forgeries() -> Iterator[Forgery]:
    """Yield graphs, frequencies and targets of generated laboratories that other mechanisms or the dial refute."""
    plan = replace(PLANS["4nodes_freqparent"], allowance=2, view=View.HIDE_ONE)
    plans = [plan, replace(plan, records=1), replace(PLANS["6nodes"], records=0, allowance=4), PLANS["3nodes"]]
    for item in chain.from_iterable(zip(*(generate_items(plan, 5, 60) for plan in plans), strict=True)):
        evidence, space = item_evidence(item), after_every_setting(item)
        assert space is not None
        settings = [[step.action["set"], step.action["value"]] for step in every_property_set(item)]
        edges = sorted(map(list, item.sealed.mechanism.edges))
        graphs = [edges[1:]] if space[0].graph_decided else [edges, edges[1:]]
        forged: list[tuple[str, str, dict[str, Any]]] = [
            ("uniqueness", GRAPH_DECIDED, {"edges": graph, "settings": settings}) for graph in graphs
        ]
        stated = item.sealed.target if decided_frequency(space_of(item.task)) is None else item.sealed.target + 1
        forged += [("uniqueness", FREQUENCY_DECIDED, {"frequency": stated})]
        if winnable(item.sealed.target, item.task.tries):
            forged += [("emptiness", UNWINNABLE, {"target": item.sealed.target})]
        for kind, claim, data in forged:
            certificate = claims.certify(claim, "", evidence, data)
            refusal = _refusal(certificate, evidence, LAB_VERIFIERS, LAB_EXAMINERS)
            yield Forgery(f"causalab, {kind}", refusal, _lab_replays(item, certificate, refusal))


def _lab_replays(item: LabItem, certificate: Certificate, refusal: str) -> bool:
    """Return whether the printed frequency activates the reactor, or the printed mechanism fits and contradicts."""
    if certificate.claim == UNWINNABLE:
        dialled = float(refusal.partition(" finds that ")[2].partition(" ")[0])
        return Reactor(item.sealed.target, item.task.tries).dial_frequency(dialled).activated
    printed = json.loads(refusal[refusal.index("{") :])
    equations = {}
    for node in item.task.nodes:
        terms = dict(printed.get(node, {}))
        base = terms.pop("base") if node == FREQUENCY else None
        equations[node] = Equation(tuple(Term(parent, 1, float(weight)) for parent, weight in terms.items()), base)
    member = Mechanism(equations)
    is_graph = certificate.claim == GRAPH_DECIDED
    if nonmember_reason(member, visible_data(item, every_property_set(item) if is_graph else ())):
        return False
    if is_graph:
        return sorted(map(list, member.edges)) != sorted(certificate.data["edges"])
    predicted = float(refusal.partition(" predicts ")[2].partition(":")[0])
    shown, parents = item.task.reactor, member.frequency.terms
    if any(term.parent not in shown for term in parents):
        return predicted != float(certificate.data["frequency"])  # the hidden value is free
    total = member.frequency_base + sum(term.weight * shown[term.parent] for term in parents)
    return abs(total - predicted) < 1e-6 and predicted != float(certificate.data["frequency"])


def compare_forgeries(number: int) -> tuple[Counter[str], list[str]]:
    """Return refuted claims by kind, and those that are not, or whose counterexample does not replay."""
    totals: Counter[str] = Counter()
    lines = []
    with TemporaryDirectory() as directory:
        streams = (logic_forgeries(Path(directory)), causim_forgeries(), scm_forgeries(77), lab_forgeries())
        for forgery in chain.from_iterable(islice(stream, number // len(streams)) for stream in streams):
            totals[f"{forgery.kind}: refuted, counterexample replays" if forgery.replays else forgery.kind] += 1
            if not forgery.replays:
                lines.append(f"{forgery.kind}: {forgery.refusal}")
    return totals, lines


def main() -> int:
    """Run the chosen comparisons; return 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.engines", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["items", "certificates", "forgeries"])
    parser.add_argument("--count", type=int, default=300, help="number of random items")
    parser.add_argument("--forged", type=int, default=120, help="number of forged claims")
    options = parser.parse_args()
    parts: dict[str, Callable[[], tuple[Counter[str], list[str]]]] = {
        "items": lambda: compare_items(options.count),
        "certificates": compare_certificates,
        "forgeries": lambda: compare_forgeries(options.forged),
    }
    num_failures = 0
    for part in options.parts:
        started = time.process_time()
        totals, lines = parts[part]()
        num_failures += len(lines)
        for name, value in sorted(totals.items()):
            print(f"{part}  {name}: {value}")
        for line in lines:
            print(f"{part}  differs: {line}")
        print(f"{part}  {len(lines)} differences, {time.process_time() - started:.0f} s of processor time")
    return 1 if num_failures else 0


if __name__ == "__main__":
    sys.exit(main())
