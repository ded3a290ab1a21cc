"""Limits of ReplaySCM: solvers and whole commands against variables."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp

from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.cli import BAD_INPUT, main
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.bench.lab.speed.replayscm.synthesis import planted_tables
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import StagedExactSearch
from calibrant.bench.replayscm.rows.listed import MostPosterior
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.dsl.replayscm.generation.problems import disclose_problem, problem_of, sample_evidence, sample_problem
from calibrant.dsl.replayscm.generation.scms import sample_scm
from calibrant.dsl.replayscm.generation.strata import Stratum, stratum, worlds_for
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.acyclic.optimum import ENGINES
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import OutOfBudget
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- ReplaySCM: least SCMs, counts, engines and formulas against variables, parents and rows --------------------------
# Problems are those of the strata `large_n12` to `large_n40`, and of sizes between them: three roots, mechanisms of up
# to four parents, worlds of ten rows, each variable intervened on as often as with ten variables; in Hidden-order form.
# A least SCM has the smallest formulas among the consistent ones; "members" in captions are the consistent SCMs.
VARIABLES = (8, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
PARENTS = (1, 2, 3, 4, 5, 6)
ROWS_PER_WORLD = (2, 4, 8, 16, 32, 64, 128, 256, 512)
CANDIDATES = (10, 20, 30, 40, 50)
FIXED_MAX_PARENTS, FIXED_VARIABLES = 4, 12
NAMES = "ABCDEF"


def sweeps() -> tuple[Sweep, ...]:
    return (
        Sweep(
            "least-variables",
            f"least SCM, up to {FIXED_MAX_PARENTS} parents",
            "variables",
            [
                Curve("order hidden", VARIABLES, partial(_ask_least, "hidden-order")),
                Curve("order told", VARIABLES, partial(_ask_least, "ordered")),
            ],
        ),
        Sweep(
            "least-parents",
            f"least SCM, {FIXED_VARIABLES} variables, order hidden",
            "parents, at most",
            [Curve("least SCM", PARENTS, _least_parents), Curve("number of members", PARENTS, _count_parents)],
        ),
        Sweep(
            "least-rows",
            f"{FIXED_VARIABLES} variables, order hidden, up to {FIXED_MAX_PARENTS} parents",
            "rows of a world",
            [Curve("least SCM", ROWS_PER_WORLD, _least_rows), Curve("number of members", ROWS_PER_WORLD, _count_rows)],
        ),
        Sweep(
            "least-candidates",
            "least SCM, order told: any earlier variable may be a parent",
            "variables",
            [Curve(f"up to {k} parents", CANDIDATES, partial(_least_candidates, k)) for k in (2, 3, 4)],
        ),
        Sweep(
            "engines",
            f"least SCM by engine, order hidden, up to {FIXED_MAX_PARENTS} parents",
            "variables",
            [Curve(name, VARIABLES, partial(_by_engine, name)) for name in ENGINES],
        ),
        Sweep(
            "count-variables",
            f"number of members, up to {FIXED_MAX_PARENTS} parents",
            "variables",
            [
                Curve("order hidden", VARIABLES, _count_variables),
                Curve("and shares of parent sets, each variable", VARIABLES, _shares),
                Curve("estimate, a third of the worlds", VARIABLES, _estimate),
            ],
        ),
        Sweep("formulas", "least formula of a partial table", "parents", [Curve("least_formula", PARENTS, _formula)]),
    )


def _stratum(num_variables: int, num_units: int | None = None) -> Stratum:
    base = stratum(f"large_n{FIXED_VARIABLES}")
    return replace(
        base,
        name=f"limits_n{num_variables}_{num_units or base.num_units}",
        num_variables=num_variables,
        num_worlds=worlds_for(num_variables),
        num_units=num_units or base.num_units,
    )


def sample_sized_problem(num_variables: int, seed: int, setting: str = "hidden-order") -> Problem:
    """Return a problem with its gold, drawn from the stratum `large_n12` with another number of variables."""
    return disclose_problem(sample_problem(_stratum(num_variables), seed), setting)


def _task(num_variables: int, seed: int, setting: str = "hidden-order") -> Task:
    return sample_sized_problem(num_variables, seed, setting).task


def _task_with_rows(num_units: int, seed: int) -> Task:
    """Return a problem with that many rows a world; its shortcuts are not filtered out, because few rows leave some."""
    stratum = _stratum(FIXED_VARIABLES, num_units)
    rng = Random(f"{stratum.name}:{seed}")
    latent = sample_scm(stratum, rng)
    return problem_of(stratum, stratum.name, seed, latent, sample_evidence(stratum, latent, rng)).task


def _solving(task: Task, max_parents: int, engine: str = "auto") -> Ask:
    def ask() -> str | None:
        outcome = solve(task, max_parents=max_parents, engine=engine)
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask


def _ask_least(setting: str, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, setting), FIXED_MAX_PARENTS)


def _by_engine(engine: str, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed), FIXED_MAX_PARENTS, engine)


def _least_parents(max_parents: int, seed: int) -> Ask:
    return _solving(_task(FIXED_VARIABLES, seed), max_parents)


def _least_candidates(max_parents: int, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, "ordered"), max_parents)


def _least_rows(num_units: int, seed: int) -> Ask:
    return _solving(_task_with_rows(num_units, seed), FIXED_MAX_PARENTS)


def _counting(task: Task, max_parents: int) -> Ask:
    def ask() -> str | None:
        _ = VersionSpace(task, ModelClass(max_parents)).count
        return None

    return ask


def _count_parents(max_parents: int, seed: int) -> Ask:
    return _counting(_task(FIXED_VARIABLES, seed), max_parents)


def _count_rows(num_units: int, seed: int) -> Ask:
    return _counting(_task_with_rows(num_units, seed), FIXED_MAX_PARENTS)


def _count_variables(num_variables: int, seed: int) -> Ask:
    return _counting(_task(num_variables, seed), FIXED_MAX_PARENTS)


def _shares(num_variables: int, seed: int) -> Ask:
    """Return a call that computes each variable's distribution over parent sets."""
    task = _task(num_variables, seed)

    def ask() -> str | None:
        space = VersionSpace(task, ModelClass(FIXED_MAX_PARENTS))
        for variable in task.variables:
            space.parent_set_marginals(variable)
        return None

    return ask


def _estimate(num_variables: int, seed: int) -> Ask:
    """Return a call that estimates, with the usual effort, the number of members that fit a third of the worlds."""
    task = _task(num_variables, seed)
    worlds = task.training.worlds[: -(-len(task.training.worlds) // 3)]
    fewer = replace(task, training=Panel(task.training.variables, worlds))

    def ask() -> str | None:
        # terms=1: no exact sum is within the budget
        VersionSpace(fewer, ModelClass(FIXED_MAX_PARENTS), terms=1).estimate(seed)
        return None

    return ask


def _formula(num_parents: int, seed: int) -> Ask:
    *_, table = planted_tables(num_parents, seed + 1)  # of one generator: table `seed` is its last

    def ask() -> str | None:
        outcome = least_formula(table, NAMES[:num_parents])
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask


# --- ReplaySCM: a whole audit, and answers of methods with budgets or without proof, against variables -----------
METHOD_VARIABLES = (10, 12, 16, 20, 30, 40)
MAX_SECONDS = 120.0
NUM_PROBLEMS = 3
METHODS: tuple[Protocol, ...] = (StagedExactSearch(), BnlearnThenFit(), MostPosterior())


def method_sweeps() -> tuple[Sweep, ...]:
    methods = [Curve(method.name, METHOD_VARIABLES, partial(_answer, method)) for method in METHODS]
    audit = [Curve("audit", METHOD_VARIABLES, _audit)]
    return (
        Sweep("audit", "a whole audit, order hidden", "variables", audit, NUM_PROBLEMS, MAX_SECONDS),
        Sweep("rows", "rows that are not exact, order hidden", "variables", methods, NUM_PROBLEMS, MAX_SECONDS),
    )


def _audit(num_variables: int, seed: int) -> Ask:
    problem = sample_sized_problem(num_variables, seed)

    def ask() -> str | None:
        audit_instance(problem, AuditOptions())
        return None

    return ask


def _answer(method: Protocol, num_variables: int, seed: int) -> Ask:
    task = sample_sized_problem(num_variables, seed).task

    def ask() -> str | None:
        result = method.answer(task)
        return None if result.answer is not None else result.outcome.replace("_", " ")

    return ask


# --- ReplaySCM: whole commands on a pool of one problem, against variables --------------------------------------------
# Problems are those of `calibrant generate`, their order hidden; a command has MAX_SECONDS. What comes before a
# command, such as the run whose records it reads, is not timed.
COMMAND_VARIABLES = (12, 20, 30, 40)


def command_sweeps() -> tuple[Sweep, ...]:
    curves = [Curve(name, COMMAND_VARIABLES, partial(_ask_on_pool, make)) for name, make in COMMANDS.items()]
    title = "commands on one problem, order hidden"
    return (Sweep("commands", title, "variables", curves, NUM_PROBLEMS, MAX_SECONDS, apart=True),)


def _show(pool: Path, out: Path) -> list[str]:
    name = json.loads(pool.read_text(encoding="utf-8").splitlines()[1])["id"]
    return ["show", str(pool), name, "--gold"]


def _run(pool: Path, out: Path) -> list[str]:
    return ["run", "exact", str(pool), "--out", str(out / "run"), "--workers", "1"]


def _score(pool: Path, out: Path) -> list[str]:
    predictions = out / "predictions.jsonl"
    records = [json.loads(line) for line in _write_answers(pool).read_text(encoding="utf-8").splitlines()]
    lines = [
        {"instanceId": entry["instance"], "model": "exact", "response": json.dumps(entry["answer"])}
        for entry in records
    ]
    predictions.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return ["score", str(pool), str(predictions), "--workers", "1"]


def _alternatives(pool: Path, out: Path) -> list[str]:
    return ["alternatives", str(_write_answers(pool).parent), "--out", str(out / "alternatives.jsonl")]


def _pairs(pool: Path, out: Path) -> list[str]:
    return ["pool", "alternatives", str(pool), str(out / "items.jsonl")]


def _audit_command(pool: Path, out: Path) -> list[str]:
    return ["audit", str(pool), "--workers", "1"]


def _harden(pool: Path, out: Path, *more: str) -> list[str]:
    return ["harden", str(pool), "--out", str(out / "hardened.jsonl"), "--workers", "1", *more]


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "show": _show,
    "run exact": _run,
    "score": _score,
    "alternatives": _alternatives,
    "pool alternatives": _pairs,
    "audit": _audit_command,
    "harden --mode extra-worlds": lambda pool, out: _harden(pool, out, "--mode", "extra-worlds"),
    "harden --mode cex": _harden,
    "harden --goal heldout-agreement": lambda pool, out: _harden(pool, out, "--goal", "heldout-agreement"),
}


def _ask_on_pool(make: Callable[[Path, Path], list[str]], num_variables: int, seed: int) -> Ask:
    arguments = make(_pool(num_variables, seed), Path(mkdtemp(dir=_folder().name)))
    return lambda: _refusal_of(arguments)


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return a folder that is removed when this process ends."""
    return TemporaryDirectory(prefix="limits-")


@cache
def _pool(num_variables: int, seed: int) -> Path:
    pool = Path(mkdtemp(dir=_folder().name)) / "pool.jsonl"
    arguments = ["--strata", f"large_n{num_variables}", "--per-stratum", "1", "--seed", str(seed)]
    if why := _refusal_of(["generate", *arguments, "--out", str(pool), "--workers", "1"]):
        raise ValueError(why)
    return pool


@cache
def _write_answers(pool: Path) -> Path:
    """Run the exact method on the pool; return the path of its records."""
    if why := _refusal_of(_run(pool, pool.parent)):
        raise ValueError(why)
    return pool.parent / "run" / "records.jsonl"


def _refusal_of(arguments: list[str]) -> str | None:
    """Run a command; return why it refused, or None if it ended with an answer, even one that fails a check."""
    output = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(output):
        code = main(arguments)
    return output.getvalue().strip().splitlines()[-1] if code >= BAD_INPUT else None
