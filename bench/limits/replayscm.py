"""ReplaySCM: least SCMs, members, engines and formulas against variables, parents, rows and candidates.

Problems are drawn by the project's sampler without the checks that pools make, which large ones would not pass:
three roots, mechanisms of up to three parents, eight training worlds of 16 rows, in Hidden-order form.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from bench.limits.sweep import Ask, Curve, Sweep
from bench.speed.replayscm.engines import scaling_problem
from bench.speed.replayscm.synthesis import planted_tables
from dsl.replayscm.problem import Problem, Task
from dsl.replayscm.sampling.evidence import sample_evidence
from dsl.replayscm.sampling.problems import disclosed, problem_of
from dsl.replayscm.sampling.scms import sample_scm
from dsl.replayscm.sampling.strata import NUM_ROOTS, Stratum
from solvers.formulas.least import least_formula
from solvers.outcome import OutOfBudget
from solvers.replayscm.engines.contract import Counted
from solvers.replayscm.engines.registry import ENGINES, engine
from solvers.replayscm.exact import solve
from solvers.replayscm.version_space import ModelClass, VersionSpace

VARIABLES = (8, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
PARENTS = (1, 2, 3, 4, 5, 6)
UNITS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
CANDIDATES = (10, 20, 30, 40, 50, 60)
AT_PARENTS, AT_VARIABLES = 3, 12
NAMES = "ABCDEF"


def sweeps() -> tuple[Sweep, ...]:
    return (
        Sweep(
            "least-variables",
            f"least SCM, up to {AT_PARENTS} parents",
            "variables",
            [
                Curve("order hidden", VARIABLES, partial(_least, "hidden-order")),
                Curve("order told", VARIABLES, partial(_least, "ordered")),
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
            "a member, another one, and how many up to 2",
            "variables",
            [Curve(name, VARIABLES, partial(_members, name)) for name in ENGINES],
        ),
        Sweep(
            "count-variables",
            f"number of members, up to {AT_PARENTS} parents",
            "variables",
            [Curve("order hidden", VARIABLES, _count_variables)],
        ),
        Sweep("formulas", "least formula of a partial table", "parents", [Curve("least_formula", PARENTS, _formula)]),
    )


def _task(num_variables: int, seed: int, setting: str = "hidden-order") -> Task:
    return disclosed(_told(scaling_problem(num_variables - NUM_ROOTS, seed)), setting).task


def _told(problem: Problem) -> Problem:
    """With the label that says of which latent SCM it is, which forms of disclosure are named by."""
    labels = {**problem.sealed.labels, "latent": problem.id}
    return replace(problem, sealed=replace(problem.sealed, labels=labels))


def _solving(task: Task, max_parents: int) -> Ask:
    def ask() -> str | None:
        outcome = solve(task, max_parents=max_parents)
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask


def _least(setting: str, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, setting), AT_PARENTS)


def _least_parents(max_parents: int, seed: int) -> Ask:
    return _solving(_task(AT_VARIABLES, seed), max_parents)


def _least_candidates(max_parents: int, num_variables: int, seed: int) -> Ask:
    return _solving(_task(num_variables, seed, "ordered"), max_parents)


def _wide(num_units: int, seed: int) -> Task:
    """A problem with that many rows a world."""
    name = f"limits_{num_units}_rows"
    stratum = Stratum(
        name,
        name,
        AT_VARIABLES,
        num_units,
        AT_PARENTS,
        (4, 9),
        (0.6, 0.3, 0.1),
        0.5,
        max_survivors=AT_VARIABLES - NUM_ROOTS,
    )
    rng = Random(f"{name}:{seed}")
    latent = sample_scm(stratum, rng)
    return problem_of(stratum, name, seed, latent, sample_evidence(stratum, latent, rng)).task


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


def _members(name: str, num_variables: int, seed: int) -> Ask:
    chosen, task, model_class = engine(name), _task(num_variables, seed), ModelClass(AT_PARENTS)

    def ask() -> str | None:
        first = chosen.first(task, model_class)
        if isinstance(first, OutOfBudget):
            return first.reached
        counted = chosen.count_up_to(task, model_class, 2)
        return None if isinstance(counted, Counted) else counted.reached

    return ask


def _formula(num_parents: int, seed: int) -> Ask:
    table = planted_tables(num_parents, seed + 1)[seed]

    def ask() -> str | None:
        outcome = least_formula(table, NAMES[:num_parents])
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask
