"""A second judge of accepted answers, that shares with the scorer neither parser, nor packed replay, nor separation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from calibrant.dsl.formulas.formula import Formula, apply, constant, var
from calibrant.dsl.replayscm.alternatives import as_bit
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.reference import Cell, first_mismatch, replay_row
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Score
from calibrant.dsl.replayscm.world import Intervention, World


class WrongVerdictError(Exception):
    """A score claims what is not so."""


def require(claim: bool, what: str) -> None:
    if not claim:
        raise WrongVerdictError(what)


def spelled(text: str) -> Formula:
    """Return the formula of a legal text, by recursive descent over the grammar."""
    tokens = re.findall(r"[()]|[^\s()]+", text)
    position = 0

    def atom(token: str) -> Formula:
        return constant(token == "1") if token in "01" else var(token)

    def expression() -> Formula:
        nonlocal position
        token = tokens[position]
        position += 1
        if token != "(":
            return atom(token)
        head = tokens[position]
        position += 1
        arguments = []
        while tokens[position] != ")":
            arguments.append(expression())
        position += 1
        return apply(head, arguments) if arguments else atom(head)

    found = expression()
    require(position == len(tokens), f"accepted with {tokens[position:][:3]} after its end")
    return found


def submitted(problem: Problem, answer: Mapping[str, Any]) -> Scm:
    """Return the SCM that an answer spells; roots are named or are what has no mechanism."""
    inner = answer["alternative"] if problem.task.kind is TaskKind.ALTERNATIVE else answer
    mechanisms = {variable: spelled(text) for variable, text in inner["mechanisms"].items()}
    return Scm(tuple(v for v in problem.task.variables if v not in mechanisms), mechanisms)


class Judge:
    """Checks what scores of one problem claim."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._replayed: dict[tuple[Formula, ...], tuple[Cell | None, Cell | None]] = {}

    def check(self, score: Score, *, thorough: bool) -> None:
        """`WrongVerdictError` if the answer is not legal, or if a claimed exactness is none.

        thorough: also replay maps that are said to be inexact
        """
        require(score.valid == (score.submission is not None), "valid without a map, or not valid with one")
        if score.answer is None or score.submission is None:
            require(not (score.correct or score.train_exact or score.heldout_exact), "exact but not valid")
            return
        model = submitted(self.problem, score.answer)
        require(dict(model.mechanisms) == dict(score.submission.candidate.mechanisms), "another map was replayed")
        self._check_legality(model)
        if score.train_exact or score.heldout_exact or score.correct or thorough:
            self._check_exactness(score, model)
        if score.correct:
            self._check_task(score, model)

    def _check_legality(self, model: Scm) -> None:
        disclosure = self.problem.task.disclosure
        require(len(model.roots) == disclosure.num_roots, f"accepted with {len(model.roots)} roots")
        violation = disclosure.violation(model.mechanisms)
        require(violation is None, f"accepted although {violation and violation.reason}")

    def _check_exactness(self, score: Score, model: Scm) -> None:
        key = tuple(model.mechanisms.values())
        if self.problem.task.disclosure.roots is None:
            key = (*key, *map(var, model.roots))
        if key not in self._replayed:
            splits = self.problem.task.training.worlds, self.problem.sealed.heldout.worlds
            train, heldout = (first_mismatch(model, worlds, _order(score)) for worlds in splits)
            self._replayed[key] = train, heldout
        train, heldout = self._replayed[key]
        scored = [_has_cells(model, w) for w in self.problem.worlds]
        num_training = len(self.problem.task.training.worlds)
        exact = train is None and any(scored[:num_training])
        require(score.train_exact == exact, f"train exact {score.train_exact}, replayed {train}")
        heldout_exact = exact and heldout is None and any(scored[num_training:])
        require(score.heldout_exact == heldout_exact, f"held-out exact {score.heldout_exact}, replayed {heldout}")
        require(score.train is not None and score.train.first_mismatch == train, "another first mismatch")

    def _check_task(self, score: Score, model: Scm) -> None:
        require(score.train_exact, "correct without being train-exact")
        gold, reference = self.problem.sealed.gold, self.problem.task.reference
        if self.problem.task.kind is TaskKind.ROOTS:
            require(gold is not None and model.roots == gold.roots, "correct with other roots")
        if self.problem.task.kind is TaskKind.ALTERNATIVE:
            require(reference is not None and score.answer is not None, "correct without a reference")
            assert reference is not None
            assert score.answer is not None
            require(_shows_difference(reference, model, score.answer), "correct without a difference that is shown")


def _order(score: Score) -> tuple[str, ...]:
    assert score.submission is not None
    return score.submission.candidate.order


def _has_cells(model: Scm, world: World) -> bool:
    return world.num_rows > 0 and not world.intervention.targets.issuperset(model.mechanisms)


def _shows_difference(reference: Scm, model: Scm, answer: Mapping[str, Any]) -> bool:
    """Whether replaying both at the claimed roots under the claimed experiment gives one of the claimed differences."""
    ((variable, value),) = answer["experiment"]["assignments"].items()
    bit = as_bit(value)
    assert bit is not None
    given = answer["witness"]["rootAssignment"]
    row = {root: as_bit(given[root]) or 0 for root in model.roots}
    world = World("w", Intervention({variable: bit}), tuple(row), ("u",), tuple(row.values()))
    one, other = (replay_row(m, world, row) for m in (reference, model))
    return any(
        variable != claim["variable"] in model.mechanisms
        and one[claim["variable"]] == as_bit(claim.get("reference"))
        and other[claim["variable"]] == as_bit(claim.get("alternative"))
        and one[claim["variable"]] != other[claim["variable"]]
        for claim in answer["witness"]["differences"]
        if isinstance(claim, dict) and isinstance(claim.get("variable"), str)
    )
