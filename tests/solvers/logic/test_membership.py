"""Networks judged against a family: drawn members rewritten, and changed functions against listing of all models."""

from __future__ import annotations

import random
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from itertools import product

import numpy as np
import pytest

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import Model, Task, model_size
from calibrant.dsl.networks.formulas import NetworkError
from calibrant.solvers.networks.network import BooleanNetwork, parse_network
from tests.support.benchmarks.logic import family_of, random_tasks
from tests.support.benchmarks.networks import SPELLINGS, RandomFormula
from tests.support.effort import effort

Table = tuple[int, ...]
"""A value a row; rows are all assignments of all names, in `itertools.product` order."""


def _written(model: Model, task: Task, generator: random.Random) -> BooleanNetwork:
    """Return a model as a file: nested formulas, helper nodes, any order, one of three formats."""
    format_name = generator.choice(("bnet", "booleannet", "rules"))
    head, equals, negation, conjunction, disjunction = SPELLINGS[format_name]
    lines = [f"{name}{equals}{name}" for name in task.setup.stimuli]
    helpers: dict[str, str] = {}
    for target in sorted({clause.target for clause in model}):
        terms = []
        for clause in sorted(clause for clause in model if clause.target == target):
            literals = [name if sign == 1 else f"{negation}({name})" for name, sign in clause.literals]
            term = f" {conjunction} ".join(f"({literal})" for literal in literals)
            if generator.random() < 0.4:
                helper = f"helper{len(helpers)}"
                helpers[helper] = term
                term = helper
            terms.append(f"{negation}({negation}({term}))" if generator.random() < 0.3 else f"({term})")
        if generator.random() < 0.3:
            inner = f" {conjunction} ".join(f"{negation}({term})" for term in terms)
            lines.append(f"{target}{equals}{negation}({inner})")
        else:
            lines.append(f"{target}{equals}{f' {disjunction} '.join(terms)}")
    lines += [f"{helper}{equals}{term}" for helper, term in helpers.items()]
    generator.shuffle(lines)
    return parse_network((head + "\n".join(lines) + "\n").encode(), chosen=format_name)


def test_members_stay_members_however_they_are_written() -> None:
    generator, rng = random.Random(4), np.random.default_rng(4)
    judged = 0
    for task in random_tasks(49, effort(30, 500)):
        family = family_of(task)
        (member,) = family.draw(rng, 1)
        names = sorted({name for clause in member for name in (clause.target, *clause.sources)})
        if any(all(table) for table in _tables(names, member).values()):
            continue  # `v<-a, v<-!a` is 1 whatever the stimuli
        judgement = family.judge(_written(member, task, generator))
        assert judgement.is_member, (judgement, task)
        assert judgement.num_members
        assert judgement.prediction is not None
        assert judgement.model is not None
        assert judgement.prediction.misfit == reference.misfit(member, task)
        assert model_size(judgement.model) <= model_size(member)
        assert reference.misfit(judgement.model, task) == judgement.prediction.misfit
        judged += len(member) > 1
    assert judged > effort(5, 30)


def _tables(names: list[str], model: Model) -> dict[str, Table]:
    rows = [dict(zip(names, values, strict=True)) for values in product((0, 1), repeat=len(names))]
    targets = {clause.target for clause in model}
    return {
        target: tuple(
            int(any(all(row[s] == (sign == 1) for s, sign in c.literals) for c in model if c.target == target))
            for row in rows
        )
        for target in targets
    }


def _essential(names: list[str], table: Table) -> set[str]:
    essential = set()
    for position, name in enumerate(names):
        step = 1 << (len(names) - 1 - position)
        if any(table[row] != table[row ^ step] for row in range(len(table))):
            essential.add(name)
    return essential


def _reduced(names: list[str], tables: dict[str, Table], task: Task) -> dict[str, Table] | None:
    """Return the functions with what is constantly 0 put in, of what leads to a readout; None for a cycle."""
    try:
        TopologicalSorter(
            {name: _essential(names, table) - {*task.setup.stimuli} for name, table in tables.items()}
        ).prepare()
    except CycleError:
        return None
    zeros = {name for name in names if name not in tables and name not in task.setup.stimuli}
    while True:
        rows = [*product((0, 1), repeat=len(names))]
        where = {row: i for i, row in enumerate(rows)}
        put = [where[tuple(0 if n in zeros else v for n, v in zip(names, row, strict=True))] for row in rows]
        tables = {name: tuple(table[i] for i in put) for name, table in tables.items() if name not in zeros}
        fresh = {name for name, table in tables.items() if not any(table)}
        if not fresh:
            break
        zeros |= fresh
    used, waiting = {*task.setup.readouts}, [*task.setup.readouts]
    while waiting:
        name = waiting.pop()
        for source in _essential(names, tables[name]) if name in tables else ():
            if source not in used:
                used.add(source)
                waiting.append(source)
    return {name: table for name, table in tables.items() if name in used}


def test_a_changed_function_against_listing_of_all_models() -> None:
    generator, rng = random.Random(5), np.random.default_rng(5)
    reasons = Counter[str]()
    for task in random_tasks(50, effort(30, 500)):
        family = family_of(task)
        (member,) = family.draw(rng, 1)
        nodes = sorted({e.target for e in task.edges} | {*task.setup.readouts} - {*task.setup.stimuli})
        names = sorted({*nodes, *task.setup.stimuli, *(e.source for e in task.edges)})
        tables = _tables(names, member)
        changed = generator.choice([name for name in nodes if name not in task.setup.stimuli] or ["n0"])
        if changed not in names:
            continue
        formula = RandomFormula(generator, names, 2)
        rows = [dict(zip(names, values, strict=True)) for values in product((0, 1), repeat=len(names))]
        tables[changed] = tuple(formula.value(row) for row in rows)
        if tables[changed] == tuple(row[changed] for row in rows):
            del tables[changed]  # it keeps its value, which nothing drives
        lines = [
            "targets, factors",
            f"{changed}, {formula.text('bnet')}",
            *(f"{name}, {name}" for name in task.setup.stimuli),
        ]
        for target in sorted({clause.target for clause in member} - {changed}):
            terms = (
                " & ".join(("" if sign == 1 else "!") + source for source, sign in clause.literals)
                for clause in member
                if clause.target == target
            )
            lines.append(f"{target}, {' | '.join(f'({term})' for term in terms)}")
        judgement = family.judge(parse_network("\n".join(lines).encode(), chosen="bnet"))
        reduced = _reduced(names, tables, task)
        if reduced is None:
            assert judgement.reason == "cycle"
            reasons["cycle"] += 1
            continue
        if any(all(table) for table in reduced.values()):
            assert judgement.reason == "constant"
            reasons["constant"] += 1
            continue
        equal = [model for model in reference.all_models(task) if _tables(names, model) == reduced]
        members = [model for model in equal if family.fits(model)]
        reasons[judgement.reason or "member"] += 1
        assert (judgement.num_formulas or 0, judgement.num_members or 0) == (len(equal), len(members))
        assert judgement.is_member == bool(members)
        if equal:
            least = min(equal, key=lambda model: (model_size(model), sorted(map(str, model))))
            assert judgement.model == least
        else:
            assert judgement.model is None
            assert judgement.reason in ("edge", "sign", "clause")
    assert {"cycle", "member", "edge", "sign", "misfit"} <= reasons.keys()


def test_what_the_prior_forbids_is_said() -> None:
    network = parse_network(b"targets, factors\nn, maj(%s)\n" % b",".join(b"x%d" % i for i in range(17)), chosen="bnet")
    family = family_of(next(random_tasks(1, 1)))
    assert family.judge(network).left_out == ()  # a helper that nothing reads
    wide = parse_network(
        f"{family.task.setup.readouts[0]}, maj({','.join(f'x{i}' for i in range(17))})\n".encode(), chosen="bnet"
    )
    assert isinstance(family.judge(wide).reason, str)  # all inputs are 0
    stimuli = f"{family.task.setup.readouts[0]}, maj({','.join(f'x{i}' for i in range(17))})\n" + "".join(
        f"x{i}, {family.task.setup.stimuli[0]}\n" for i in range(17)
    )
    assert family.judge(parse_network(stimuli.encode(), chosen="bnet")).prediction is not None
    with pytest.raises(NetworkError, match="no function"):
        family.judge(parse_network(b"a -> b\n", chosen="aeon"))
