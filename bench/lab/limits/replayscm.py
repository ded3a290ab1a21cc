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

# --- ReplaySCM: least SCMs, members, engines, formulas, audits and answers against variables, parents and rows --------
# Problems are those of the strata `large_n12` to `large_n40`, and of sizes between them: three roots, mechanisms of up
# to four parents, worlds of ten rows, each variable a target as often as in ten variables; in Hidden-order form. An
# item has MAX_SECONDS.
VARIABLES = (8, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
PARENTS = (1, 2, 3, 4, 5, 6)
UNITS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
CANDIDATES = (10, 20, 30, 40, 50)
AT_PARENTS, AT_VARIABLES = 4, 12
NAMES = "ABCDEF"


def sweeps() -> tuple[Sweep, ...]:
    return (
        Sweep(
            "least-variables",
            f"least SCM, up to {AT_PARENTS} parents",
            "variables",
            [
                Curve("order hidden", VARIABLES, partial(_ask_least, "hidden-order")),
                Curve("order told", VARIABLES, partial(_ask_least, "ordered")),
            ],
        ),
        Sweep(
            "least-parents",
            f"least SCM, {AT_VARIABLES} variables, order hidden",
            "parents, at most",
            [Curve("least SCM", PARENTS, _least_parents), Curve("number of members", PARENTS, _count_parents)],
        ),
        Sweep(
            "least-rows",
            f"{AT_VARIABLES} variables, order hidden, up to {AT_PARENTS} parents",
            "rows of a world",
            [Curve("least SCM", UNITS, _least_rows), Curve("number of members", UNITS, _count_rows)],
        ),
        Sweep(
            "least-candidates",
            "least SCM, order told: any earlier variable may be a parent",
            "variables",
            [Curve(f"up to {k} parents", CANDIDATES, partial(_least_candidates, k)) for k in (2, 3, 4)],
        ),
        Sweep(
            "engines",
            f"least SCM by engine, order hidden, up to {AT_PARENTS} parents",
            "variables",
            [Curve(name, VARIABLES, partial(_by_engine, name)) for name in ENGINES],
        ),
        Sweep(
            "count-variables",
            f"number of members, up to {AT_PARENTS} parents",
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
    like = stratum(f"large_n{AT_VARIABLES}")
    return replace(
        like,
        name=f"limits_n{num_variables}_{num_units or like.num_units}",
        num_variables=num_variables,
        num_worlds=worlds_for(num_variables),
        num_units=num_units or like.num_units,
    )


def sampled(num_variables: int, seed: int, setting: str = "hidden-order") -> Problem:
    """Return a problem with its gold, drawn from the stratum `large_n12` with another number of variables."""
    return disclose_problem(sample_problem(_stratum(num_variables), seed), setting)


def _task(num_variables: int, seed: int, setting: str = "hidden-order") -> Task:
    return sampled(num_variables, seed, setting).task


def _wide(num_units: int, seed: int) -> Task:
    """Return a problem with that many rows a world; not filtered, because few rows leave shortcuts."""
    stratum = _stratum(AT_VARIABLES, num_units)
    rng = Random(f"{stratum.name}:{seed}")
    latent = sample_scm(stratum, rng)
    return problem_of(stratum, stratum.name, seed, latent, sample_evidence(stratum, latent, rng)).task


def _solving(task: Task, max_parents: int, engine: str = "auto") -> Ask:
    def ask() -> str | None:
        outcome = solve(task, max_parents=max_parents, engine=engine)
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask


def _ask_least(setting: str, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, setting), AT_PARENTS)


def _by_engine(engine: str, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed), AT_PARENTS, engine)


def _least_parents(max_parents: int, seed: int) -> Ask:
    return _solving(_task(AT_VARIABLES, seed), max_parents)


def _least_candidates(max_parents: int, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, "ordered"), max_parents)


def _least_rows(num_units: int, seed: int) -> Ask:
    return _solving(_wide(num_units, seed), AT_PARENTS)


def _counting(task: Task, max_parents: int) -> Ask:
    def ask() -> str | None:
        _ = VersionSpace(task, ModelClass(max_parents)).count
        return None

    return ask


def _count_parents(max_parents: int, seed: int) -> Ask:
    return _counting(_task(AT_VARIABLES, seed), max_parents)


def _count_rows(num_units: int, seed: int) -> Ask:
    return _counting(_wide(num_units, seed), AT_PARENTS)


def _count_variables(num_variables: int, seed: int) -> Ask:
    return _counting(_task(num_variables, seed), AT_PARENTS)


def _shares(num_variables: int, seed: int) -> Ask:
    """Return a measurement that computes, for each variable, the share of members with each parent set."""
    task = _task(num_variables, seed)

    def ask() -> str | None:
        space = VersionSpace(task, ModelClass(AT_PARENTS))
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
        VersionSpace(fewer, ModelClass(AT_PARENTS), terms=1).estimate(seed)
        return None

    return ask


def _formula(num_parents: int, seed: int) -> Ask:
    table = planted_tables(num_parents, seed + 1)[seed]

    def ask() -> str | None:
        outcome = least_formula(table, NAMES[:num_parents])
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask


# --- ReplaySCM: a whole audit, and answers of rows with budgets or without proof, against variables --------------
ROW_VARIABLES = (10, 12, 16, 20, 30, 40)
MAX_SECONDS = 120.0
PROBLEMS = 3
ROWS: tuple[Protocol, ...] = (StagedExactSearch(), BnlearnThenFit(), MostPosterior())


def row_sweeps() -> tuple[Sweep, ...]:
    rows = [Curve(row.name, ROW_VARIABLES, partial(_answer, row)) for row in ROWS]
    audit = [Curve("audit", ROW_VARIABLES, _audit)]
    return (
        Sweep("audit", "a whole audit, order hidden", "variables", audit, PROBLEMS, MAX_SECONDS),
        Sweep("rows", "rows that are not exact, order hidden", "variables", rows, PROBLEMS, MAX_SECONDS),
    )


def _audit(num_variables: int, seed: int) -> Ask:
    problem = sampled(num_variables, seed)

    def ask() -> str | None:
        audit_instance(problem, AuditOptions())
        return None

    return ask


def _answer(row: Protocol, num_variables: int, seed: int) -> Ask:
    task = sampled(num_variables, seed).task

    def ask() -> str | None:
        result = row.answer(task)
        return None if result.answer is not None else result.outcome.replace("_", " ")

    return ask


# --- ReplaySCM: whole commands on a pool of one problem, against variables --------------------------------------------
# Problems are those of `calibrant generate`, their order hidden; a command has MAX_SECONDS. What comes before a
# command, such as the run whose records it reads, is not timed.
COMMAND_VARIABLES = (12, 20, 30, 40)


def command_sweeps() -> tuple[Sweep, ...]:
    curves = [Curve(name, COMMAND_VARIABLES, partial(_ask_on_pool, make)) for name, make in COMMANDS.items()]
    title = "commands on one problem, order hidden"
    return (Sweep("commands", title, "variables", curves, PROBLEMS, MAX_SECONDS, apart=True),)


def _show(pool: Path, out: Path) -> list[str]:
    name = json.loads(pool.read_text(encoding="utf-8").splitlines()[1])["id"]
    return ["show", str(pool), name, "--gold"]


def _run(pool: Path, out: Path) -> list[str]:
    return ["run", "exact", str(pool), "--out", str(out / "run"), "--workers", "1"]


def _score(pool: Path, out: Path) -> list[str]:
    records, predictions = _write_answers(pool).read_text(encoding="utf-8").splitlines(), out / "predictions.jsonl"
    records_read = [json.loads(line) for line in records]
    lines = [
        {"instanceId": entry["instance"], "model": "exact", "response": json.dumps(entry["answer"])}
        for entry in records_read
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
    line = make(_pool(num_variables, seed), Path(mkdtemp(dir=_folder().name)))
    return lambda: _done(line)


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return a folder that is removed when this process ends."""
    return TemporaryDirectory(prefix="limits-")


@cache
def _pool(num_variables: int, seed: int) -> Path:
    pool = Path(mkdtemp(dir=_folder().name)) / "pool.jsonl"
    arguments = ["--strata", f"large_n{num_variables}", "--per-stratum", "1", "--seed", str(seed)]
    if why := _done(["generate", *arguments, "--out", str(pool), "--workers", "1"]):
        raise ValueError(why)
    return pool


@cache
def _write_answers(pool: Path) -> Path:
    """Return the records of a run on the pool."""
    if why := _done(_run(pool, pool.parent)):
        raise ValueError(why)
    return pool.parent / "run" / "records.jsonl"


def _done(line: list[str]) -> str | None:
    """Run a command; return why it refused, or None if it ended with an answer, even one that fails a check."""
    output = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(output):
        code = main(line)
    return output.getvalue().strip().splitlines()[-1] if code >= BAD_INPUT else None
