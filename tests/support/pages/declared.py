"""What the pages leave open: numbers that are smaller here, files that readers have, and what is not run, and why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark_of, bundled_files
from tests.support.commands import CHECKOUT, called
from tests.support.models import Model, write_random_model
from tests.support.pages.blocks import Unit, write_layered_programs, write_score_program, write_state


@dataclass(frozen=True)
class NotRun:
    """A unit that the tests of the project do not run; with packages, those in tests/integrations do."""

    page: str
    start: str  # of the unit's text
    reason: str
    packages: tuple[str, ...] = ()

    def matches(self, unit: Unit) -> bool:
        return unit.page == self.page and unit.text.startswith(self.start)


@dataclass(frozen=True)
class PageSetup:
    """How the commands of a page differ here from what it prints, and what its reader has before."""

    smaller: dict[str, str] = field(default_factory=dict)  # a text of the page -> what is run in its place
    files: dict[str, Callable[[Path], None]] = field(default_factory=dict)  # written when a unit first names them
    written: dict[str, str] = field(default_factory=dict)  # file -> start of the block that is its text
    exits: dict[str, int] = field(default_factory=dict)  # start of a command -> its exit code, if that is not 0
    variables: dict[str, str] = field(default_factory=dict)  # of the environment
    model: Callable[[Path], Model] = field(default=lambda _: lambda messages: "no idea")  # behind the page's endpoint
    after: Callable[[Path], None] = field(default=lambda _: None)  # what holds of the files that the page leaves


def bundled(name: str) -> Callable[[Path], None]:
    """Return what copies a bundled pool."""

    def write(path: Path) -> None:
        (source,) = (pool for pools in bundled_files().values() for pool in pools if pool.name == name)
        shutil.copy(source, path)

    return write


def example(path: Path) -> None:
    """Write the file of that name in docs/examples."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(CHECKOUT / "docs" / "examples" / path.name, path)


def first_items(name: str, count: int) -> Callable[[Path], None]:
    """Return what writes the first items of a bundled pool."""

    def write(path: Path) -> None:
        bundled(name)(path)
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[: count + 1]), encoding="utf-8")

    return write


def right_answers(pool: str) -> Callable[[Path], None]:
    """Return what writes a right answer to each item of a pool beside it."""

    def write(path: Path) -> None:
        benchmark = benchmark_of(path.parent / pool)
        items = benchmark.items.read_pool(path.parent / pool).items
        answers = [(item.id, benchmark.training.gold(item)) for item in items]
        lines = [json.dumps({"id": name, "model": "m", "response": json.dumps(answer)}) for name, answer in answers]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return write


def right_sets(pool: str) -> Callable[[Path], None]:
    """Return what writes a set of one right answer to each item of a pool beside it."""

    def write(path: Path) -> None:
        right_answers(pool)(path)
        answers = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines = [{"id": a["id"], "model": a["model"], "hypotheses": [a["response"]]} for a in answers]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    return write


def text(*lines: str) -> Callable[[Path], None]:
    """Return what writes these lines."""

    def write(path: Path) -> None:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return write


def export_of_one_suite(path: Path) -> None:
    """Write an export with gold, whose rows the TRL example loads."""
    for line in (
        "generate --benchmark causalab --seed 1 --strata 3nodes --per-stratum 2 --out exported.jsonl",
        f"export exported.jsonl --out {path} --license cc-by-4.0",
    ):
        assert called(*line.split()).returncode == 0


def require_right_logs(folder: Path) -> None:
    """Require that every item is right in its logs, also where they are scored again, as the page states."""
    paths = sorted((folder / "logs").glob("*.eval"))
    if paths:  # Inspect is there
        from inspect_ai.log import read_eval_log

        assert len(paths) == 3
        for path in paths:
            results = read_eval_log(path, header_only=True).results
            assert results is not None
            assert [score.metrics["mean"].value for score in results.scores if score.name == "correct"] in (
                [1.0],
                [1.0, 1.0],
            )


def knowing_model(folder: Path) -> Model:
    """Return a model that gives the right answer to each prompt of the folder's pool.jsonl."""

    def reply(messages: list[dict[str, Any]]) -> str:
        benchmark = benchmark_of(folder / "pool.jsonl")
        items = benchmark.items.read_pool(folder / "pool.jsonl").items
        right = {benchmark.items.prompt(item): json.dumps(benchmark.training.gold(item)) for item in items}
        return right[messages[-1]["content"]]

    return reply


def require_right_scores(folder: Path) -> None:
    lines = (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(json.loads(line)["correct"] for line in lines)


def require_cluster_records(folder: Path) -> None:
    for name in ("runs", "secure"):
        lines = (folder / name / "records.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["outcome"] for line in lines] == ["found"] * 2


EXAMPLE_FILES = ("switches.jsonl", "switches.csv", "answers.jsonl", "prior.sif", "cells.csv", "feedback.bnet")
COMMANDS = PageSetup(
    files={
        **dict.fromkeys(EXAMPLE_FILES, example),
        "detectors.jsonl": bundled("sample_blickets.jsonl"),
        "causim.jsonl": bundled("sample_causim.jsonl"),
    },
    exits={"calibrant play": 1},  # standard input is empty
    variables={"COLUMNS": "80", "NO_COLOR": "1"},  # the pages are generated with them
)


def sampled_pool(path: Path) -> None:
    """Write the pool that the example of `sample` writes."""
    line = f"sample --seed 1 --per-stratum 1 --strata hs_n6_easy_calibration --out {path}"
    assert called(*line.split()).returncode == 0


SETUPS: dict[str, PageSetup] = {
    "README.md": PageSetup(files={f"docs/examples/{name}": example for name in EXAMPLE_FILES}),
    **{
        f"docs/commands/{group}.md": COMMANDS
        for group in ("start", "score_answers", "run_solvers", "judge_items", "make_items", "publish")
    },
    "docs/commands/files.md": replace(COMMANDS, files={**COMMANDS.files, "pool.jsonl": sampled_pool}),
    "docs/tutorials/teacher.md": PageSetup(
        written={
            "lamp.csv": "left,right,lamp\n0,0,0\n0,1,0\n1,1",
            "whole.csv": "left,right,lamp\n0,0,0\n0,1,0\n1,0",
            "held.csv": "left,right,lamp,set",
        }
    ),
    "docs/releases.md": PageSetup(written={"suite.toml": 'name = "two-pools"'}),
    "CONTRIBUTING.md": PageSetup(
        smaller={
            "--count 1000000": "--count 20",
            "--count 200000": "--count 2",
            "--count 10000": "--count 10",
            "--count 150000": "--count 20",
            "--count 515000": "--count 10",
        }
    ),
    "docs/causalab.md": PageSetup(
        smaller={"--per-stratum 50": "--per-stratum 2", "--count 1000": "--count 1"},
        files={"predictions.jsonl": right_answers("lab.jsonl")},
        exits={"calibrant play": 1},  # nobody answers
    ),
    "docs/causim.md": PageSetup(
        smaller={"--per-stratum 20": "--per-stratum 4", "tree-0004-s1-v10-": "tree-0000-s1-v02-"},
        files={
            "responses.jsonl": right_answers("pool.jsonl"),
            "programs.jsonl": write_layered_programs,
            "program.py": write_score_program,
            "state.json": write_state,
        },
        written={"pain.py": "import random"},
        exits={
            "calibrant harden": 1,  # abductions that nothing decides stay
        },
    ),
    "docs/cluster.md": PageSetup(
        smaller={
            # with records in `runs` nothing would be left to do
            "--out runs --cluster tls": "--out secure --cluster tls",
            "POOL": "pool.jsonl",
            "HOST": "127.0.0.1",
            "--nworkers 2 --nthreads 1": "--nthreads 1",
            "--nthreads 1 &": "--nthreads 1 --no-nanny &",
        },
        files={"pool.jsonl": first_items("sample_ordered.jsonl", 2)},
        after=require_cluster_records,
    ),
    # generating 108 problems twice and running two rows on them takes 28 s of a processor
    "docs/findings.md": PageSetup(smaller={"--per-stratum 12": "--per-stratum 1 --strata hs_n6_easy_calibration"}),
    "docs/difficulty.md": PageSetup(
        exits={"calibrant pool subset": 2},  # of a few items, which is too little
        files={
            "pool.jsonl": first_items("sample_hidden_order.jsonl", 6),
            "verdicts.jsonl": right_answers("pool.jsonl"),
            "families.csv": text("system,family", "m,f"),
        },
    ),
    "docs/engines.md": PageSetup(
        written={"a.txt": "# a comment has a line of its own"},
        files={
            "pool.jsonl": first_items("sample_hidden_order.jsonl", 2),
            "table.csv": text("rain,wet,slippery", "0,0,0", "1,1,1", "0,1,1"),
            "b.txt": text("increasing rain -> wet"),
        },
    ),
    "docs/sets.md": PageSetup(
        files={"pool.jsonl": first_items("sample_ordered.jsonl", 2), "sets.jsonl": right_sets("pool.jsonl")},
    ),
    "docs/logic.md": PageSetup(
        exits={"calibrant family pkn.sif data.csv --time 30 --fit 0.5 --of": 1},  # the list has one of the members
        smaller={"--per-stratum 10": "--per-stratum 2"},
        files={
            "pkn.sif": text("a 1 c", "b 1 c", "c 1 d"),
            "responses.jsonl": right_answers("logic.jsonl"),
            "data.csv": text("TR:a,TR:b,DA:ALL,DV:d", "1,0,30,0.6", "0,1,30,0.5", "0,0,30,0", "1,1,30,1"),
            "setup.json": text('{"stimuli": ["a", "b"], "inhibitors": [], "readouts": ["d"]}'),
            "networks.csv": text("d<-a,d<-b", "1,0"),
            "model.bnet": text("targets, factors", "c, a", "d, c"),
            "series.csv": text("series,a,b,c,d", "1,0,1,0,0", "1,0,1,1,0", "1,0,1,1,1"),
        },
    ),
    "docs/networks.md": PageSetup(files={"model.bnet": text("targets, factors", "PI3K, EGF & !PTEN")}),
    "docs/answers.md": PageSetup(
        files={
            "pool.jsonl": bundled("sample_causim.jsonl"),
            "answers.jsonl": text(
                '{"id": "chain-0000-s20-v02-deduction-000", "response": null, "error": "batch_expired"}',
                '{"id": "chain-0000-s20-v02-deduction-000", "model": "m", "response": "", "finish_reason": "length"}',
            ),
        },
    ),
    "docs/index.md": PageSetup(
        smaller={"POOL": "pool.jsonl"},
        files={
            "pool.jsonl": first_items("sample_ordered.jsonl", 2),
            "predictions.jsonl": right_answers("pool.jsonl"),
        },
    ),
    "docs/inspect.md": PageSetup(
        files={
            "other.jsonl": right_answers("pool.jsonl"),
            # a log of all items takes half a minute; tests/integrations/inspect has those of every kind
            "sample_ordered.jsonl": first_items("sample_ordered.jsonl", 4),
            "sample_blickets.jsonl": first_items("sample_blickets.jsonl", 4),
        },
        after=require_right_logs,
    ),
    "docs/models.md": PageSetup(
        files={"pool.jsonl": first_items("sample_causim.jsonl", 4)},
        written={"ask.py": "import json, os, sys"},
        model=knowing_model,
        after=require_right_scores,
    ),
    "docs/own_rows.md": PageSetup(
        smaller={"POOL": "pool.jsonl"},
        files={"pool.jsonl": first_items("sample_ordered.jsonl", 2)},
        written={"my_search.py": "from itertools import combinations", "pyproject.toml": "[build-system]"},
    ),
    "docs/replayscm_episodes.md": PageSetup(
        written={"own.jsonl": '{"format": "calibrant-pool", "version": 1, "name": "own"'},
    ),
    "docs/pools.md": PageSetup(
        written={
            "mine.jsonl": '{"format": "calibrant-pool", "version": 1, "name": "mine"',
            "complete.jsonl": '{"format": "calibrant-pool", "version": 1, "name": "complete"',
            "extended.jsonl": '{"format": "calibrant-pool", "version": 1, "name": "extended"',
        },
        smaller={
            "large_n20,large_n30,large_n40 --per-stratum 2": "large_n20 --per-stratum 1",
            "--per-stratum 5": "--per-stratum 1",
        },
    ),
    "docs/training.md": PageSetup(
        smaller={
            'model="my-model"': 'model="random-model"',
            'output_dir="out"': 'output_dir="out", use_cpu=True, bf16=False, report_to=[]',
            "-n 8": "-n 1",
            "-n 2 -r 4": "-n 1 -r 1",
            '"count": 20': '"count": 2',
        },
        files={
            "dataset": export_of_one_suite,
            "random-model": write_random_model,
            "pool.jsonl": first_items("sample_causim.jsonl", 2),
            "mine.jsonl": right_answers("pool.jsonl"),
        },
        model=lambda _: lambda messages: json.dumps({"check": {"rule": "conjunctive", "blickets": ["A"]}}),
    ),
}
ITSELF = "runs the tests or the demonstration, in an environment that it makes"
PEOPLE = "needs people; tests/bench/play runs the same lines"
MINUTES = "takes minutes to hours"
SUITES = "needs the released suites, which are not distributed with the project"
USAGE = "a usage line"
INSPECT = ("inspect_ai",)
HUB = ("pyarrow", "datasets")
TRL = (*HUB, "torch", "trl")
NOT_RUN: tuple[NotRun, ...] = (
    NotRun("docs/audits.md", "open     DIR/ID.json", "test_written_certificates compares it with verify"),
    NotRun("README.md", "make demo", ITSELF),
    NotRun("README.md", "make test", ITSELF),
    NotRun("CONTRIBUTING.md", "dsl  <-  solvers", "a picture; tests/test_layout.py holds the sources to it"),
    NotRun("CONTRIBUTING.md", "ORDER_SEED=7 python3 tasks.py test-newcomer", ITSELF),
    NotRun("CONTRIBUTING.md", "python3 tasks.py test-ci", ITSELF),
    NotRun("CONTRIBUTING.md", "python3 tasks.py test-lowest", ITSELF),
    NotRun("CONTRIBUTING.md", "SOAK_MINUTES=60 python3 tasks.py soak", ITSELF),
    NotRun("CONTRIBUTING.md", "python3 tasks.py coverage", MINUTES),
    NotRun("CONTRIBUTING.md", "python3 tasks.py release-check", ITSELF),
    NotRun("CONTRIBUTING.md", "python -m calibrant.bench.lab.speed", MINUTES),
    NotRun("CONTRIBUTING.md", "python -m calibrant.bench.lab.limits", MINUTES),
    NotRun("CONTRIBUTING.md", "python -m tests.people", MINUTES),
    NotRun("CONTRIBUTING.md", "python -m tests.faults", MINUTES),
    NotRun("docs/causalab.md", "python -m calibrant.bench.lab.causalab rows DIR", SUITES),
    NotRun("docs/causalab.md", "python -m calibrant.bench.lab.causalab findings DIR", SUITES),
    NotRun("docs/cluster.md", "Killed ", "printed by `python -m tests.faults`, which takes minutes"),
    NotRun("docs/cluster.md", "#!/bin/bash\n#SBATCH", "needs SLURM"),
    NotRun("docs/cluster.md", "apiVersion: v1", "needs Kubernetes"),
    NotRun("docs/hub.md", "calibrant export", "needs pyarrow", HUB),
    NotRun("docs/hub.md", "from datasets import load_dataset", "needs datasets", HUB),
    NotRun("docs/hub.md", "from calibrant.datasets import exported_items", "needs pyarrow", HUB),
    NotRun("docs/index.md", "pip install .", "installs"),
    NotRun("docs/index.md", "calibrant demo", ITSELF),
    NotRun("docs/inspect.md", "pip install", "installs; the extras are compared with pyproject.toml"),
    NotRun(
        "docs/inspect.md", "inspect eval calibrant/causim -T pool=pool.jsonl --model openai/", "needs a model's key"
    ),
    NotRun("docs/inspect.md", "inspect eval calibrant/causim -T pool=pool.jsonl --solver", "needs Inspect", INSPECT),
    NotRun("docs/inspect.md", "inspect eval calibrant/replayscm", "needs Inspect", INSPECT),
    NotRun("docs/inspect.md", "inspect eval calibrant/blickets", "needs Inspect", INSPECT),
    NotRun("docs/inspect.md", "from inspect_ai.log", "needs Inspect", INSPECT),
    NotRun("docs/inspect.md", "inspect score", "needs Inspect", INSPECT),
    NotRun("docs/inspect.md", "calibrant score", "needs a log of Inspect", INSPECT),
    NotRun("docs/inspect.md", "calibrant report", "needs a log of Inspect", INSPECT),
    NotRun("docs/limits.md", "python -m calibrant.bench.lab.limits [SWEEP ...]", USAGE),
    NotRun("docs/semantics.md", "expr := NAME", "a grammar"),
    NotRun("docs/speed.md", "python -m calibrant.bench.lab.speed [NAME ...]", USAGE),
    NotRun("docs/studies.md", "calibrant play detectors.jsonl", PEOPLE),
    NotRun("docs/studies.md", "calibrant play --serve detectors.jsonl", PEOPLE),
    NotRun("docs/studies.md", "calibrant play --study study.toml --serve", PEOPLE),
    NotRun("docs/studies.md", "[study]", PEOPLE),
    NotRun("docs/studies.md", 'title = "About the instructions"', PEOPLE),
    NotRun("docs/studies.md", "[[question]]", PEOPLE),
    NotRun("docs/studies.md", 'title = "Afterwards"', PEOPLE),
    NotRun("docs/studies.md", "calibrant play --study study.toml --static", PEOPLE),
    NotRun("docs/studies.md", "calibrant play --study study.toml --import", PEOPLE),
    NotRun("docs/studies.md", "calibrant table pilot runs", PEOPLE),
    NotRun("docs/studies.md", "calibrant report pilot runs", PEOPLE),
    NotRun("docs/studies.md", "calibrant show detectors.jsonl", PEOPLE),
    NotRun("docs/studies.md", "calibrant score detectors.jsonl pilot", PEOPLE),
    NotRun("docs/studies.md", "calibrant play --study study.toml --results", PEOPLE),
    NotRun("docs/studies.md", "calibrant play --study study.toml --participant p017 --review", PEOPLE),
    NotRun("docs/testing.md", "make coverage", MINUTES),
    NotRun("docs/testing.md", "python -m tests.mutation FILE", USAGE),
    NotRun("docs/testing.md", "python -m calibrant.bench.lab.speed NAME", USAGE),
    NotRun("docs/testing.md", "python -m calibrant.bench.lab.speed.report", "tests/bench/lab/test_speed.py plots it"),
    NotRun("docs/testing.md", "make release-check", ITSELF),
    NotRun("docs/training.md", "from datasets import load_dataset", "needs TRL", TRL),
    NotRun("docs/training.md", "trainer = GRPOTrainer(", "needs a template with tools; tests/integrations/trl runs it"),
    NotRun("docs/training.md", "vf-validate", "needs verifiers", ("verifiers",)),
    NotRun("docs/training.md", "vf-eval", "needs verifiers", ("verifiers",)),
    NotRun("docs/training.md", "lm_eval --model dummy", "needs lm-evaluation-harness", ("lm_eval",)),
    NotRun("docs/training.md", "lm_eval --model local", "needs lm-evaluation-harness", ("lm_eval",)),
)
