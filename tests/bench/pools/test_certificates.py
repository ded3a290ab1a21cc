"""Certificates of every kind of claim: written ones verify, forged ones do not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from calibrant.audits import claims
from calibrant.audits.causim.training import harden_item
from calibrant.audits.claims import Certificate, ClaimKind, Refused, evidence_digest, verify
from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.bench.cli import main
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark, benchmarks, bundled_pool
from calibrant.bench.pools.findings_audit import Verdict, check_certificate, check_file, parse_certificate
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, MAX_JSON_TOKENS
from calibrant.dsl.replayscm.generation.problems import SETTINGS as DISCLOSURES
from calibrant.dsl.replayscm.generation.problems import disclose_problem, sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.space import ModelClass
from tests.support.commands import CHECKOUT, called
from tests.support.effort import effort
from tests.support.forgery import blickets, causalab, causim, logic
from tests.support.forgery.forger import Forger, Genuine, doubled_fields, one_place_mutants
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem

# --- Every certificate that an audit writes verifies, of all suites of all benchmarks; what `verify` does at limits ---
SEEDS = (9, 1, 2, 3)


def refusals(name: str, items: Iterator[Any]) -> tuple[int, list[str]]:
    """How many certificates the audit of these items writes, and what `verify` says of those that it refuses."""
    written, lines = 0, []
    for item in items:
        for finding in benchmark(name).require(FINDINGS).findings(item):
            if finding.certificate is not None:
                written += 1
                text = json.dumps({"instance": item.id, "certificate": msgspec.to_builtins(finding.certificate)})
                holds, line = check_certificate(benchmark(name), parse_certificate(text.encode()), {item.id: item})
                lines += [] if holds else [f"{item.id}: {finding.certificate.claim}: {line}"]
    return written, lines


@pytest.mark.soak
@pytest.mark.parametrize("suite", SUITES)
def test_certificates_of_blickets_verify(suite: str) -> None:
    """Ten of four seeds where submissions are late, three of others; three times that in a soak."""
    number = effort(1, 3) * (10 if suite.startswith("forced") else 3)
    _, lines = refusals("blickets", (i for seed in SEEDS for i in islice(sample_items(SUITES[suite], seed), number)))
    assert lines == []


def test_late_submissions_noise_and_switches_by_moves_have_certificates() -> None:
    suites = ("forced-moves", "forced-exposure", "noisy-switch", "switch-by-steps")
    for suite in suites:
        written, lines = refusals("blickets", islice(sample_items(SUITES[suite], 9), 10))
        assert written > 0
        assert lines == []


@pytest.mark.soak
@pytest.mark.parametrize("suite", PLANS)
def test_certificates_of_laboratories_verify(suite: str) -> None:
    """Two of four seeds; ten in a soak."""
    written, lines = refusals(
        "causalab", (i for seed in SEEDS for i in generate_items(PLANS[suite], seed, effort(2, 10)))
    )
    assert lines == []
    assert written or suite == "4nodes_quad_hard"


@pytest.mark.soak
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_certificates_of_causim_verify(topology: str) -> None:
    """A program of one seed, of findings and of hardened items; four seeds in a soak."""
    items = [i for s in SEEDS[: effort(1, 4)] for i in generated_items(s, topology, 1, nodes=5, num_questions=2)]
    _, lines = refusals("causim", iter(items))
    assert lines == []
    causim = benchmark("causim")
    for item in items:
        outcome = harden_item(item)
        if isinstance(outcome, Found):
            file = {"instance": item.id, "certificate": msgspec.to_builtins(outcome.value[1])}
            holds, line = check_certificate(causim, json.loads(json.dumps(file)), {item.id: item})
            assert holds, line


@pytest.mark.soak
@pytest.mark.parametrize(("setting", "seed"), list(zip(SETTINGS, SEEDS, strict=True)))
def test_certificates_of_counts_verify(setting: str, seed: int, tmp_path: Path) -> None:
    """Of one seed for each setting; of all for each in a soak."""
    seeds = effort((seed,), SEEDS)
    problems = tuple(gold_problem(one, setting, Shape(endogenous=3, training=4)) for one in seeds)
    write_pool(Pool("drawn", problems), tmp_path / "pool.jsonl")
    assert main(["audit", str(tmp_path / "pool.jsonl"), "--certificates", str(tmp_path / "c"), "--workers", "1"]) == 0
    files = sorted((tmp_path / "c").glob("*.json"))
    assert len(files) == len(seeds)
    assert main(["verify", *map(str, files), str(tmp_path / "pool.jsonl")]) == 0


def laboratory(folder: Path) -> tuple[Path, list[Path]]:
    """Return a pool of a laboratory in which two mechanisms are left, and its certificates."""
    pool = folder / "lab.jsonl"
    line = ["generate", "--benchmark", "causalab", "--seed", "1", "--strata", "4nodes_freqparent"]
    assert main([*line, "--per-stratum", "6", "--out", str(pool)]) == 0
    assert main(["audit", str(pool), "--certificates", str(folder / "c")]) == 0
    return pool, sorted((folder / "c").glob("*.json"))


def test_a_malformed_file_is_one_line_and_hides_no_other(tmp_path: Path) -> None:
    pool, files = laboratory(tmp_path)
    made = json.loads(next(file for file in files if "causalab-ambiguous" in file.read_text()).read_text())
    made["certificate"]["data"]["members"] = "xy"
    hostile: dict[str, str | bytes] = {
        "members": json.dumps(made),
        "nested": "[" * 100_000,
        "objects": '{"instance":' * 100_000,
        "digits": '{"instance": ' + "9" * 100_000 + "}",
        "nan": '{"instance": NaN}',
        "infinite": '{"instance": 1e999}',
        "lists": "[" + "[]," * (MAX_JSON_TOKENS // 2) + "[]]",
        "numbers": '{"instance": [' + "0," * MAX_JSON_TOKENS + "0]}",
        "strings": '{"instance": "' + '","'.join(["a"] * (MAX_JSON_TOKENS // 2)) + '"}',
        "long": b'{"instance":"' + b"x" * MAX_JSON_BYTES + b'"}',
        "surrogate": '{"instance": "\\ud800", "certificate": {"claim": "\\ud800"}}',
        "claim": json.dumps({**made, "certificate": {**made["certificate"], "claim": "\x1b[31m\n" + "c" * 10**6}}),
        "binary": b"\xff\xfe\x00\xd8",
        "empty": "",
        "list": "[1]",
    }
    for name, text in hostile.items():
        (tmp_path / f"{name}.json").write_bytes(text.encode() if isinstance(text, str) else text)
    forged = [tmp_path / f"{name}.json" for name in hostile]
    done = called("verify", *forged, *files, pool)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert len(lines) == len(forged) + len(files)
    assert [line.split()[0] for line in lines] == ["refused"] * len(forged) + ["ok"] * len(files)
    assert all(len(line) < 1_000 and line.isprintable() for line in lines)
    reasons = dict(zip(hostile, lines, strict=False))
    for name in ("lists", "numbers", "strings"):
        assert f"more than {MAX_JSON_TOKENS} strings, lists, objects and commas" in reasons[name]
    assert f"more than {MAX_JSON_BYTES} bytes" in reasons["long"]


@pytest.mark.parametrize("setting", DISCLOSURES)
def test_a_recount_beyond_the_budget_is_neither_verified_nor_refuted(setting: str, tmp_path: Path) -> None:
    problem = disclose_problem(sample_problem(stratum("large_n20"), 0), setting)
    write_pool(Pool("large", (problem,)), tmp_path / "pool.jsonl")
    file = tmp_path / "count.json"
    file.write_text(to_json(build_certificate(problem, ModelClass(3))), encoding="utf-8")
    line = ("verify", file, tmp_path / "pool.jsonl", "--budget", "0.01")
    done = called(*line)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        f"open     {file}: neither verified nor refuted in 0.01 seconds (--budget): recounted: "
    )
    assert "not recounted: " in done.stdout
    (verdict,) = json.loads(called(*line, "--json").stdout)
    assert (verdict["verified"], verdict["verdict"]) == (False, "open")


def test_a_hidden_order_with_more_variables_in_a_cycle_than_are_counted_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the budget; 18 are counted, here 2, and docs/audits.md has the line."""
    monkeypatch.setattr("calibrant.audits.replayscm.certificates.counting.MAX_GROUP", 2)
    problem = read_pool(bundled_pool("hidden-order")).problems[0]
    file = tmp_path / "count.json"
    file.write_text(to_json(build_certificate(problem, ModelClass(3))), encoding="utf-8")
    done = called("verify", file, bundled_pool("hidden-order"))
    assert done.returncode == 1
    line = done.stdout.replace(str(file), "DIR/ID.json")
    page = (CHECKOUT / "docs" / "audits.md").read_text(encoding="utf-8")
    shown = re.search(r"^    open .*?counted$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert re.sub(r"\d+", "N", line.strip()) == re.sub(r"\d+", "N", re.sub(r"\s*\n\s*", " ", shown[0].strip()))


def test_counts_of_forty_variables_in_a_told_order_are_verified_and_their_steps_are_shown(tmp_path: Path) -> None:
    """Two parents; the recurrence over all sets of variables would need 3^37 steps."""
    problem = disclose_problem(sample_problem(stratum("large_n40"), 0), "ordered")
    write_pool(Pool("large", (problem,)), tmp_path / "pool.jsonl")
    made = build_certificate(problem, ModelClass(2))
    (tmp_path / "right.json").write_text(to_json(made), encoding="utf-8")
    (tmp_path / "wrong.json").write_text(to_json({**made, "count": str(int(made["count"]) + 1)}), encoding="utf-8")
    done = called("verify", tmp_path / "right.json", tmp_path / "wrong.json", tmp_path / "pool.jsonl")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok", "refused"]
    steps: list[tuple[str, int, int]] = []

    def check(read: Any) -> tuple[bool, str]:
        from calibrant.audits.replayscm.certificates.verify import verify

        return True, verify(read, problem)

    shown = check_file(tmp_path / "right.json", check, 600, lambda part, done, total: steps.append((part, done, total)))
    assert shown.verdict is Verdict.VERIFIED
    assert len({part for part, _, _ in steps}) > 30
    assert all(0 <= done <= total for _, done, total in steps)


def test_the_budget_holds_for_the_other_benchmarks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, files = laboratory(tmp_path)
    # such a check may be done in .001 s, so the clock says at once that the time is over
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: inf))
    graph = next(file for file in files if "causalab-graph-decided" in file.read_text())
    done = called("verify", graph, pool, "--budget", "0.001")
    assert done.returncode == 1
    assert "neither verified nor refuted in 0.001 seconds" in done.stdout


# --- Forged certificates of every kind of claim: none that is false verifies, and every kind has a forger -------------
# Each kind gets changes at drawn places, changes that know the claim, the certificate of one item carried to another,
# the words of one claim under the name of another, and doubled fields.
FORGERS: Mapping[str, Mapping[str, Forger]] = {
    "blickets": blickets.FORGERS,
    "causalab": causalab.FORGERS,
    "causim": causim.FORGERS,
    "logic": logic.FORGERS,
}
OF_NO_ITEM = {"causalab-not-a-mean"}  # about a printed figure: checked as a claim, not as a file beside a pool
KINDS = [(name, claim) for name, forgers in FORGERS.items() for claim in forgers]
ENOUGH = 50


def test_every_kind_of_claim_has_a_forger() -> None:
    others = [known.name for known in benchmarks() if known.capability(FINDINGS)]
    assert {name: set(benchmark(name).require(FINDINGS).verifiers) for name in others} == {
        n: set(f) for n, f in FORGERS.items()
    }


def test_every_verifier_declares_its_data_and_derives_its_class() -> None:
    for name in FORGERS:
        for claim, verifier in benchmark(name).require(FINDINGS).verifiers.items():
            assert isinstance(verifier, ClaimKind), claim
            assert verifier.data.__struct_config__.forbid_unknown_fields, claim


def written(certificate: Certificate, instance: str) -> dict[str, Any]:
    """Return the content of a certificate file."""
    made: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(certificate)))
    return {"instance": instance, "certificate": made}


class Bench:
    """The items and certificates of one kind, what its checker says of a file, and what is true."""

    def __init__(self, name: str, claim: str) -> None:
        self.name, self.claim = name, claim
        self.forger = FORGERS[name][claim]
        self.genuine = list(self.forger.genuine())
        lone = claim in OF_NO_ITEM
        self.items = {f"row {i}": g.item for i, g in enumerate(self.genuine)} if lone else self._by_id()
        self.ids = {id(item): key for key, item in self.items.items()}

    def _by_id(self) -> dict[str, Any]:
        return {genuine.item.id: genuine.item for forger in FORGERS[self.name].values() for genuine in self._of(forger)}

    def _of(self, forger: Forger) -> list[Genuine]:
        return [genuine for genuine in forger.genuine() if hasattr(genuine.item, "id")]

    def id_of(self, genuine: Genuine) -> str:
        return self.ids[id(genuine.item)] if self.claim in OF_NO_ITEM else str(genuine.item.id)

    def evidence(self, item: Any) -> object:
        return item if self.claim in OF_NO_ITEM else benchmark(self.name).require(FINDINGS).evidence(item)

    def is_accepted(self, text: str) -> bool:
        try:
            made = parse_certificate(text.encode())
        except Refused:
            return False
        if self.claim not in OF_NO_ITEM:
            holds, line = check_certificate(benchmark(self.name), made, self.items)
            assert line
            assert len(line) < 1_000
            return holds
        try:
            certificate = msgspec.convert(made.get("certificate"), Certificate, strict=True)
        except (msgspec.ValidationError, ValueError):
            return False
        item = self.items.get(str(made.get("instance")))
        return item is not None and verify(certificate, item, benchmark(self.name).require(FINDINGS).verifiers).holds

    def is_true(self, file: Any) -> bool:
        """Whatever cannot even be read as a claim is not."""
        try:
            made = dict(file["certificate"])
            item = self.items[file["instance"]]
            if file.keys() != {"instance", "certificate"} or type(made.get("version", 1)) is not int:
                return False
            certificate = Certificate(**made)
            envelope = (certificate.format, certificate.version) == ("calibrant-claim", 1)
            bound = certificate.evidence == evidence_digest(self.evidence(item))
            return envelope and bound and FORGERS[self.name][certificate.claim].is_true(item, certificate)
        except Exception:  # an oracle that stumbles over data has seen that they are none
            return False

    def forgeries(self, rng: Random) -> Iterator[Any]:
        """Files, not all of them false."""
        for genuine in self.genuine[:: effort(2, 1) if len(self.genuine) > 3 else 1]:
            file = written(genuine.certificate, self.id_of(genuine))
            drawn = effort(12, 200)
            yield from one_place_mutants(file, rng, drawn // 2)
            for data in one_place_mutants({"data": file["certificate"]["data"]}, rng, drawn):
                yield {**file, "certificate": {**file["certificate"], **data}}
            for data in self.forger.forged(genuine, rng):
                yield {**file, "certificate": {**file["certificate"], "data": data}}
            for words in ("", "everything", f"{genuine.certificate.in_words} "):
                yield {**file, "certificate": {**file["certificate"], "in_words": words}}
            for claim in FORGERS[self.name]:
                yield {**file, "certificate": {**file["certificate"], "claim": claim}}
            for other in rng.sample(sorted(self.items), min(len(self.items), 8)):
                yield {**file, "instance": other}
                bound = {**file["certificate"], "evidence": evidence_digest(self.evidence(self.items[other]))}
                yield {"instance": other, "certificate": bound}


@pytest.mark.soak
@pytest.mark.parametrize(("name", "claim"), KINDS)
def test_no_false_certificate_verifies(name: str, claim: str) -> None:
    """Of every second genuine certificate a dozen changes at drawn places beside all that know the claim.

    In a soak of each of them 200.
    """
    bench, rng = Bench(name, claim), Random(f"{name} {claim}")
    assert len(bench.genuine) > 1
    for genuine in bench.genuine:
        file = written(genuine.certificate, bench.id_of(genuine))
        assert bench.is_accepted(json.dumps(file)), file
        assert bench.is_true(file), file
    false = 0
    for forged in bench.forgeries(rng):
        accepted = bench.is_accepted(json.dumps(forged))
        if accepted or false < ENOUGH:  # whether what is refused is false matters for their number alone
            true = bench.is_true(forged)
            false += not true
            assert true or not accepted, forged
    assert false >= ENOUGH
    for genuine in bench.genuine[:3]:
        for text in doubled_fields(json.dumps(written(genuine.certificate, bench.id_of(genuine)))):
            with pytest.raises(Refused, match="twice in one object"):
                parse_certificate(text.encode())
