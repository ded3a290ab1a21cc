"""Judges that share nothing with the scorer, and the verdict on a response in the slowest and plainest way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.formulas.formula import Formula, apply, constant, var
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.alternatives import as_bit
from calibrant.dsl.replayscm.evaluator import Candidate, mismatches
from calibrant.dsl.replayscm.extraction import EXTRACTORS
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.reference import Cell, first_mismatch, replay_row, replay_world
from calibrant.dsl.replayscm.scm import Scm, topological_order
from calibrant.dsl.replayscm.score import BLOAT_SLACK, Score
from calibrant.dsl.replayscm.submission import STAGES, Rejection, Submission, SubmissionChecker
from calibrant.dsl.replayscm.world import Column, Intervention, Panel, World


# --- A second judge of accepted answers, that shares with the scorer neither parser, nor packed replay, nor
# separation
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


# --- The verdict on a response in the slowest and plainest way, to compare whatever is faster with --------------------
# Nothing is kept from one response to the next, texts are found by the rules of dsl.replayscm.extraction and read by
# the parser that explains errors, candidates are replayed anew, and every count is made cell by cell.
class _Explained(frozenset[str]):
    """Variables that may occur, of which dsl.formulas.text.parse thinks that ordinary spellings need no haste."""

    def __bool__(self) -> bool:
        return False


def verdict(problem: Problem, text: str, extractor: str, *, by_rows: bool) -> dict[str, Any]:
    """Return the published keys, the funnel and whether it is strict JSON, for a problem that asks for a map.

    by_rows: replayed row by row by dsl.replayscm.reference, else by bit columns
    """
    kind = "roots" if problem.task.kind is TaskKind.ROOTS else "scm"
    extraction = EXTRACTORS[extractor](text, "roots" if kind == "roots" else "scm")
    found = None
    for answer in extraction.candidates:
        judged = _judged(problem, answer, by_rows=by_rows)
        if found is None or judged["valid"]:
            found = judged
        if judged["valid"]:
            break
    if found is None:
        rejection = Rejection("extracted", extraction.failure or "no JSON object found")
        found = _refused(problem, rejection, {})
    return {**found, "strictJson": extraction.strict_json}


def _judged(problem: Problem, answer: Mapping[str, Any], *, by_rows: bool) -> dict[str, Any]:
    checker = SubmissionChecker(problem)
    if problem.task.kind is not TaskKind.ROOTS:
        checked = checker.mechanisms(answer)
        candidate = _candidate(problem, answer["mechanisms"], checked) if isinstance(checked, Submission) else checked
        return _told(problem, candidate, {}, by_rows=by_rows, right_roots=True)
    roots = checker.roots(answer)
    if isinstance(roots, Rejection):
        return _refused(problem, roots, {})
    gold = problem.sealed.gold
    true = [] if gold is None else [v for v in problem.sealed.latent_order if v in gold.roots]
    common = len(set(roots) & set(true))
    about_roots = {
        "rootSetExact": set(roots) == set(true),
        "rootPrecision": common / len(roots) if true else None,
        "rootRecall": common / len(true) if true else None,
        "predictedRoots": list(roots),
        "goldRoots": true,
    }
    checked = checker.given_roots(roots, answer["mechanisms"])
    candidate = _candidate(problem, answer["mechanisms"], checked) if isinstance(checked, Submission) else checked
    return _told(problem, candidate, about_roots, by_rows=by_rows, right_roots=set(roots) == set(true))


def _candidate(problem: Problem, texts: Mapping[str, str], checked: Submission) -> Candidate:
    """Return a legal map as it is replayed, read from its texts; an error for what the parser refuses."""
    rooted = problem.task.disclosure.given_roots(checked.roots)
    latent = problem.sealed.latent_order
    variables = [variable for variable in latent if variable not in checked.roots]
    formulas = {
        variable: parse(texts[variable].strip(), problem.task.grammar, _Explained(rooted.admissible_parents(variable)))
        for variable in variables
    }
    if rooted.order is not None:
        return Candidate(formulas, tuple(variables))
    return Candidate(formulas, topological_order(formulas, lambda v: (rooted.group_index(v), latent.index(v))))


def _told(
    problem: Problem, checked: Candidate | Rejection, about_roots: dict[str, Any], *, by_rows: bool, right_roots: bool
) -> dict[str, Any]:
    if isinstance(checked, Rejection):
        return _refused(problem, checked, about_roots)
    made = _valid(problem, checked, by_rows=by_rows)
    made["correct"] = made["trainExact"] and right_roots
    if not right_roots:
        known = bool(about_roots["goldRoots"])
        reason = "the predicted root set is not the true one" if known else "the true root set is not known"
        made["failureExplanation"] = reason
    return made | _with_map(about_roots, made)


def _with_map(about_roots: dict[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    if not about_roots:
        return {}
    return about_roots | {
        "mechanismTrainExact": made.get("trainExact", False),
        "mechanismHeldoutAllWorldsExact": made.get("heldoutAllWorldsExact", False),
        "mechanismHeldoutExact": made.get("heldoutExact", False),
    }


def _refused(problem: Problem, rejection: Rejection, about_roots: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"valid": False, "correct": False, "taskName": problem.task.kind.value}
    made |= {"failureExplanation": rejection.reason, "parseError": None}
    made |= {key: value for key, value in rejection.fields.items() if key != "variable"}
    made |= {"stage": rejection.stage} | _with_map(about_roots, {})
    passed = STAGES.index(rejection.stage)
    return made | {"funnel": {stage: index < passed for index, stage in enumerate(STAGES)}}


def _valid(problem: Problem, candidate: Candidate, *, by_rows: bool) -> dict[str, Any]:
    formulas, order = candidate
    model = Scm(tuple(v for v in problem.task.variables if v not in formulas), formulas)
    stats = _stats(formulas)
    training, heldout = problem.task.training, problem.sealed.heldout
    made: dict[str, Any] = {"valid": True, "taskName": problem.task.kind.value}
    made |= {"failureExplanation": None, "parseError": None, "candidateStats": stats}
    made |= {"funnel": dict.fromkeys(STAGES, True)}
    for panel, lower, upper in ((training, "train", "Train"), (heldout, "heldout", "Heldout")):
        wrong = _by_rows(model, panel, order) if by_rows else mismatches(candidate, panel)
        made |= _counts(wrong, panel, order, lower, upper)
    exact, heldout_exact = made["trainExact"], made.pop("heldoutExact")
    made |= {"heldoutExact": exact and heldout_exact, "heldoutAllWorldsExact": heldout_exact}
    size, gold = stats["astSize"], problem.sealed.gold_size
    within = {f"delta_{slack}": exact and size <= (gold or 0) + slack for slack in problem.sealed.budget_deltas}
    bloat = gold is not None and exact and size > gold + BLOAT_SLACK
    return made | {
        "goldAstSize": gold,
        "accGoldPlus": None if gold is None else within,
        "bloat": None if gold is None else bloat,
    }


def _by_rows(model: Scm, panel: Panel, order: Sequence[str]) -> dict[str, Column]:
    wrong = dict.fromkeys(order, 0)
    for world, start in zip(panel.worlds, panel.starts, strict=False):
        for cell in replay_world(model, world, order):
            wrong[cell.variable] |= (cell.predicted != cell.expected) << start + cell.row
    return wrong


def _counts(wrong: Mapping[str, Column], panel: Panel, order: Sequence[str], lower: str, upper: str) -> dict[str, Any]:
    scored, right = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    num_worlds = exact_worlds = 0
    first: dict[str, Any] | None = None
    for world, start in zip(panel.worlds, panel.starts, strict=False):
        cells = [(row, variable) for row in range(world.num_rows) for variable in _scored(world, order)]
        mistakes = [(row, variable) for row, variable in cells if wrong[variable] >> start + row & 1]
        for _, variable in cells:
            scored[variable] += 1
        for _, variable in mistakes:
            right[variable] -= 1
        num_worlds += bool(cells)
        exact_worlds += bool(cells) and not mistakes
        if mistakes and first is None:
            row, variable = mistakes[0]
            bit = world.row(row)[variable]
            first = {"worldId": world.id, "rowIndex": row, "variable": variable, "predicted": 1 - bit, "expected": bit}
    num_cells = sum(scored.values())
    num_right = num_cells + sum(right.values())
    return {
        f"{lower}Exact": num_cells > 0 and num_right == num_cells,
        f"{lower}Accuracy": num_right / num_cells if num_cells else None,
        f"{lower}WorldExactAccuracy": exact_worlds / num_worlds if num_worlds else None,
        f"{lower}Worlds": num_worlds,
        f"{lower}WorldExactCount": exact_worlds,
        f"first{upper}Mismatch": first,
        f"perVariable{upper}Accuracy": {v: (n + right[v]) / n if n else None for v, n in scored.items()},
    }


def _scored(world: World, order: Sequence[str]) -> list[str]:
    return [variable for variable in order if variable not in world.intervention.targets]


def _stats(formulas: Mapping[str, Formula]) -> dict[str, Any]:
    each = {
        variable: {
            "astSize": one.size,
            "maxDepth": one.depth,
            "parentCount": len(one.mentioned),
            "operatorCounts": one.operator_counts,
            "containsIf": "if" in one.operator_counts,
            "variables": list(one.variables),
        }
        for variable, one in formulas.items()
    }
    total: dict[str, int] = {}
    for one in formulas.values():
        for name, count in one.operator_counts.items():
            total[name] = total.get(name, 0) + count
    return {
        "astSize": sum(one.size for one in formulas.values()),
        "maxDepth": max((one.depth for one in formulas.values()), default=0),
        "parentCount": sum(len(one.mentioned) for one in formulas.values()),
        "operatorCounts": total,
        "equationCount": len(each),
        "perVariable": each,
        "parentsByVar": {variable: list(one.variables) for variable, one in formulas.items()},
    }
