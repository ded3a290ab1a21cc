"""`generate --form network`: items of a folder, neutral and published names, and what the names tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.commands.demo import TOY_NETWORKS
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.variants import NamedPair, probe_names
from calibrant.datasets import bundled_pool
from calibrant.dsl.networks.network import fits
from calibrant.solvers.networks.network import parse_network
from tests.support.commands import called, refused

TOY = "Ras, GF\nRaf, Ras & !Akt\nErk, Raf\nAkt, PI3K\nPI3K, GF | Ras\nMyc, Erk | Akt\n"
LOOP = "Aa, Bb & !Dd\nBb, Cc | Ee\nCc, Aa\nDd, !Cc\nEe, Ee\nFf, Aa & Ee\n"
COMMAND = ("generate", "--seed", 3, "--per-stratum", 3, "--form", "network", "--strata", "network_n8_k2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    (path / "toy.bnet").write_text(TOY)
    (path / "loop.bnet").write_text(LOOP)
    (path / "levels.txt").write_text("a -> b\n")
    return path


@pytest.fixture(scope="module")
def pool(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "items.jsonl"
    done = called(*COMMAND, "-o", f"networks={folder}", "--out", path, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "2 networks; files with equal functions: 0\nnot used: levels.txt: no function of b" in done.stderr
    return path


def test_items_are_sound_solved_and_audited(pool: Path, tmp_path: Path) -> None:
    checked = called("pool", "check", pool)
    assert checked.returncode == 0
    assert "gold replays its held-out worlds: 3 of 3" in checked.stdout
    audits = [json.loads(line) for line in pool.with_name("items.audits.jsonl").read_text().splitlines()]
    items = benchmark_of(pool).items.read_pool(pool).items
    assert [audit["id"] for audit in audits] == [item.id for item in items]
    assert [item.sealed.labels["fits"] for item in items] == [audit["final"]["counts"]["4"] for audit in audits]
    assert called("run", "exact", pool, "--out", tmp_path / "runs").returncode == 0
    rows = json.loads(called("table", tmp_path / "runs", "--json").stdout)["rows"]
    assert rows[0]["train_exact"] == 1


def test_published_names_are_the_variants_of_neutral_ones(folder: Path, pool: Path, tmp_path: Path) -> None:
    real, copies = tmp_path / "real.jsonl", tmp_path / "copies.jsonl"
    done = called(*COMMAND, "-o", f"networks={folder}", "--names", "real", "--out", real, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert called("variants", pool, "--kinds", "names", "--out", copies).returncode == 0
    bench = benchmark_of(pool)
    neutral, named, varied = (bench.items.read_pool(path).items for path in (pool, real, copies))
    for item, published, copy in zip(neutral, named, varied, strict=True):
        assert copy.id == f"{item.id}~names-1"
        assert {**bench.items.record(copy), "id": item.id} == bench.items.record(published)
        names = item.sealed.labels["names"].split()
        assert item.task.variables == tuple(f"g{place}" for place in range(1, len(names) + 1))
        assert published.task.variables == tuple(sorted(names))
        assert not {*names} & {*bench.items.prompt(item).split()}
    assert called("variants", pool, "--check", copies).returncode == 0


def test_a_system_that_knows_names_has_prior_knowledge_and_one_that_infers_has_none(pool: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies.jsonl"
    assert called("variants", pool, "--kinds", "names", "--out", copies).returncode == 0
    bench, scores = benchmark_of(pool), []
    for path in (pool, copies):
        lines = []
        for item in bench.items.read_pool(path).items:
            gold = json.dumps(bench.training.gold(item))
            lines += [{"instanceId": item.id, "model": "infers", "response": gold}]
            lines += [{"instanceId": item.id, "model": "knows", "response": gold if path == copies else "{}"}]
        answers = tmp_path / f"{path.stem}.answers.jsonl"
        answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        scores.append(tmp_path / f"{path.stem}.scores.jsonl")
        done = called("score", path, answers, "--out", scores[-1])
        assert done.returncode == 0, done.stderr
    rows = _probes(called("table", *scores, "--consistency", copies, "--json").stdout)
    assert rows["infers"] | {"interval": None} == _probe("rate", 1.0, 1.0, 0.0)
    assert rows["knows"] | {"interval": None} == _probe("rate", 0.0, 1.0, 1.0)
    with_pool = _probes(called("table", *scores, "--consistency", copies, "--pool", pool, "--json").stdout)
    assert with_pool["infers"]["prior_knowledge"] == 0 < with_pool["knows"]["prior_knowledge"]
    assert {row["scale"] for row in with_pool.values()} == {"skill"}
    printed = called("table", *scores, "--consistency", copies).stdout
    assert "Prior knowledge" in printed
    report = called("report", *scores, "--pool", pool, "--pool", copies, "--table", "names")
    assert report.returncode == 0, report.stderr
    assert "Published names instead of neutral ones" in report.stdout


def _probes(text: str) -> dict[str, Any]:
    return {row["system"]: row["names"] for row in json.loads(text)}


def _probe(scale: str, neutral: float, real: float, prior_knowledge: float) -> dict[str, Any]:
    return {
        "scale": scale,
        "items": 3,
        "units": 2,
        "neutral": neutral,
        "real": real,
        "prior_knowledge": prior_knowledge,
        "interval": None,
    }


def test_skill_is_what_a_rate_gains_over_chance() -> None:
    """By hand: gains of .5 - .2 and 0 - .2 of a room of .8 + .3, then .9 - .2 and .5 - .2."""
    pairs = [NamedPair("a", 0.5, 0.9, (0.2, 1.0)), NamedPair("b", 0.0, 0.5, (0.2, 0.5))]
    probe = probe_names(pairs)
    assert probe is not None
    assert probe.scale == "skill"
    assert (probe.neutral, probe.real) == pytest.approx((0.1 / 1.1, 1.0 / 1.1))
    assert probe.interval is None
    without = probe_names([*pairs, NamedPair("c", 1.0, 1.0, None)])
    assert without is not None
    assert without.scale == "rate"
    assert (without.neutral, without.real) == pytest.approx((0.5, 0.8))
    assert probe_names([]) is None
    alike = probe_names([NamedPair(str(k), 0.25, 0.75, (0.0, 1.0)) for k in range(6)])
    assert alike is not None
    assert alike.interval == (0.5, 0.5)


def test_what_does_not_go_together_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", tmp_path / "x.jsonl")
    assert "go together" in refused(capsys, "generate", "--seed", 1, "--form", "network", *out)
    assert "go together" in refused(capsys, "generate", "--seed", 1, "-o", f"networks={folder}", *out)
    assert "--form network alone" in refused(capsys, "generate", "--seed", 1, "--names", "real", *out)
    strange = refused(capsys, *COMMAND[:-1], "network_n9", "-o", f"networks={folder}", *out)
    assert "unknown stratum 'network_n9' of networks" in strange
    far = refused(capsys, *COMMAND[:-1], "network_n30_k6", "-o", f"networks={folder}", *out)
    assert "none of 200 windows of the networks is of stratum network_n30_k6" in far
    assert "is no folder of network files" in refused(capsys, *COMMAND, "-o", f"networks={tmp_path / 'no'}", *out)
    assert not (tmp_path / "x.jsonl").exists()


# --- Series -----------------------------------------------------------------------------------------------------------
SERIES = ("generate", "--benchmark", "logic", "--form", "series", "--seed", 5, "--per-stratum", 8)
SIX = {
    f"net{index}.bnet": text
    for index, text in enumerate(
        (
            TOY,
            LOOP,
            "p, q & !s\nq, p | r\nr, !p\ns, q & r\n",
            "u, v\nv, !w\nw, u | x\nx, x\n",
            "k, !l & m\nl, k\nm, n | l\nn, !k\n",
            "a1, b1 | c1\nb1, !a1\nc1, a1 & d1\nd1, d1\n",
            "e1, f1 & g1\nf1, !g1 | h1\ng1, e1\nh1, f1\n",
        )
    )
}


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("six")
    for name, text in SIX.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def series(six: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "items.jsonl"
    strata = ("--strata", "series_n8_k2_decided,series_n8_k2_partly")
    done = called(*SERIES, *strata, "-o", f"networks={six}", "--out", path, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "7 networks; files with equal functions: 0" in done.stderr
    return path


@pytest.fixture(scope="module")
def copies(series: Path) -> Path:
    path = series.with_name("copies.jsonl")
    assert called("variants", series, "--kinds", "names", "--out", path).returncode == 0
    return path


def test_series_are_sound_and_rows_are_equal_under_both_names(
    six: Path, series: Path, copies: Path, tmp_path: Path
) -> None:
    checked = called("pool", "check", series)
    assert checked.returncode == 0, checked.stdout
    assert "the model behind the values fits: 16 of 16" in checked.stdout
    real, runs = tmp_path / "real.jsonl", tmp_path / "runs"
    strata = ("--strata", "series_n8_k2_decided,series_n8_k2_partly", "--names", "real")
    assert called(*SERIES, *strata, "-o", f"networks={six}", "--out", real, "--workers", 1).returncode == 0
    bench = benchmark_of(series)
    pairs = zip(bench.items.read_pool(copies).items, bench.items.read_pool(real).items, strict=True)
    assert all({**bench.items.record(copy), "id": item.id} == bench.items.record(item) for copy, item in pairs)
    assert called("run", "all", series, copies, "--out", runs, "--workers", 1).returncode == 0
    rows = json.loads(called("table", runs, "--consistency", copies, "--pool", series, "--json").stdout)
    assert {row["system"] for row in rows} == {"abstain", "copy", "exact", "majority", "random", "vote"}
    for row in rows:
        assert row["names"]["prior_knowledge"] == 0
        assert row["names"]["interval"] == [0, 0]
    by_row = {row["system"]: row["originals_mean"] for row in rows}
    assert by_row["abstain"] == 0
    assert min(by_row["exact"], by_row["vote"]) >= 0.5  # half of the items are decided


def test_bundled_series_are_what_their_seed_gives(tmp_path: Path) -> None:
    path, made = bundled_pool("series"), tmp_path / "sample_series.jsonl"
    strata = "series_n8_k2_decided,series_n8_k2_partly,series_n8_k4_partly"
    options = ("--form", "series", "-o", f"networks={TOY_NETWORKS}", "--strata", strata, "--per-stratum", 2)
    assert called("generate", "--benchmark", "logic", *options, "--seed", 1, "--out", made).returncode == 0
    assert made.read_bytes() == path.read_bytes()
    items = benchmark_of(path).items.read_pool(path).items
    assert len(items) == 6
    for item in items:
        networks = calibrant.version_space(item)
        assert networks.count == int(item.labels["fits"])
        drawn = parse_network(networks.witness().encode(), "", "bnet")
        assert fits(drawn, item.task)
        assert item.task.in_words in repr(networks)


def test_prior_knowledge_has_its_sign_and_an_interval(series: Path, copies: Path, tmp_path: Path) -> None:
    """One system knows the network by its names, one infers what the evidence decides, one is misled by names."""
    bench, scores = benchmark_of(series), []
    for path in (series, copies):
        lines = []
        for item in bench.items.read_pool(path).items:
            gold = json.dumps(bench.training.gold(item))
            decided = gold if item.labels["agree"] == "1" else "{}"
            for model, neutral, named in (("knows", "{}", gold), ("infers", decided, decided), ("misled", gold, "{}")):
                response = named if path == copies else neutral
                lines.append({"instanceId": item.id, "model": model, "response": response})
        answers = tmp_path / f"{path.stem}.answers.jsonl"
        answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        scores.append(tmp_path / f"{path.stem}.scores.jsonl")
        assert called("score", path, answers, "--out", scores[-1]).returncode == 0
    rows = _probes(called("table", *scores, "--consistency", copies, "--json").stdout)
    assert {row["scale"] for row in rows.values()} == {"rate"}
    assert {system: row["prior_knowledge"] for system, row in rows.items()} == {"knows": 1, "infers": 0, "misled": -1}
    networks = {item.labels["latent"] for item in bench.items.read_pool(series).items}
    assert {row["units"] for row in rows.values()} == {len(networks)} != {16}
    assert {system: row["interval"] for system, row in rows.items()} == {
        "knows": [1, 1],
        "infers": [0, 0],
        "misled": [-1, -1],
    }
    with_pool = _probes(called("table", *scores, "--consistency", copies, "--pool", series, "--json").stdout)
    assert {row["scale"] for row in with_pool.values()} == {"skill"}
    assert with_pool["knows"]["interval"][0] > 0 == with_pool["infers"]["prior_knowledge"]
    assert with_pool["misled"]["interval"][1] < 0
    printed = called("table", *scores, "--consistency", copies).stdout
    assert "+1.000           1.000 to 1.000" in printed
    report = called("report", *scores, "--pool", series, "--pool", copies, "--table", "names")
    assert report.returncode == 0, report.stderr
    assert "Published names instead of neutral ones" in report.stdout


def test_options_of_series_that_are_refused(six: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, networks = ("--out", tmp_path / "x.jsonl"), ("-o", f"networks={six}")
    assert "go together" in refused(capsys, *SERIES, *out)
    assert "go together" in refused(capsys, "generate", "--benchmark", "logic", "--seed", 1, *networks, *out)
    strange = refused(capsys, *SERIES, "--strata", "series_n9", *networks, *out)
    assert "unknown stratum 'series_n9' of series" in strange
    far = refused(capsys, *SERIES, "--strata", "series_n30_k6_partly", *networks, *out)
    assert "gives an item of series_n30_k6_partly" in far
    assert "loops is of --form experiments" in refused(capsys, *SERIES, "-o", "loops=1", *networks, *out)
    plain = ("generate", "--benchmark", "logic", "--seed", 1)
    assert "decoys is of --form series" in refused(capsys, *plain, "-o", "decoys=1", *out)
    assert "--form series alone" in refused(capsys, *plain, "--names", "real", *out)
    assert "'episode' is none of experiments, series" in refused(capsys, *plain, "--form", "episode", *out)
    assert "'series' is none of published" in refused(capsys, "generate", "--seed", 1, "--form", "series", *out)
    assert not (tmp_path / "x.jsonl").exists()
