"""Public item functions of ReplaySCM (`calibrant.score`, `solve`, ...), and what training needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from calibrant.bench.core.capabilities import Solution
from calibrant.bench.core.scoring import EvaluatorCache
from calibrant.bench.replayscm.items import ASSUME, require_plain
from calibrant.bench.scoring.answers import invalid_answer_message, parse_answer
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.knowledge import parse_knowledge
from calibrant.dsl.replayscm.extensions.evaluation import ExtendedScore
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator, Score
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.solvers.outcome import LEAST_SCM_STATES, BestSoFar, Found, Outcome

if TYPE_CHECKING:
    from calibrant.audits.replayscm.findings import Findings
    from calibrant.audits.replayscm.generation.generate import Generated
    from calibrant.audits.replayscm.hardening.harden import Hardening
    from calibrant.bench.episodes import TextEpisode
    from calibrant.bench.replayscm.audit.separations import SeparatedPair
    from calibrant.solvers.replayscm.space import VersionSpace


# --- Public item functions; modules that compile kernels or read YAML are imported at the call, to start fast ---------


class ReplayScmFunctions:
    """Implements ItemFunctions (bench.core.capabilities)."""

    def __init__(self) -> None:
        self._evaluators: EvaluatorCache[Evaluator] = EvaluatorCache()

    def load_pool(self, path: Path) -> Pool[Problem]:
        from calibrant.dsl.replayscm.pools.files import read_pool

        contents = read_pool(path)
        return Pool(contents.name, "replayscm", contents.problems, contents.metadata, path)

    def score(
        self,
        item: Problem,
        answer: object,
        *,
        steps: Sequence[Step[Any]] = (),
    ) -> Score:
        """Return the score of an answer; the paper's rule extracts the answer from a text.

        steps: steps of an episode before the answer, which are replayed first; a submission among them is the answer
        """
        problem, parsed = _require_problem(item), parse_answer(answer)
        if problem.task.extension is not None:
            from calibrant.bench.replayscm.episodes import score_extended

            return score_extended(problem, parsed or {}, steps)
        if steps:
            raise CalibrantError(f"{in_one_line(problem.id)} is answered at once: it has no steps")
        evaluator = self._evaluators.get_for(problem, lambda: Evaluator(problem))
        if parsed is None:
            return Score(item, None, Rejection("extracted", invalid_answer_message(answer)))
        return evaluator.score_text(parsed) if isinstance(parsed, str) else evaluator.score_answer(parsed)

    def record(self, verdict: Score) -> Mapping[str, Any]:
        from calibrant.bench.replayscm.verdict import score_record

        if isinstance(verdict, ExtendedScore):
            from calibrant.bench.replayscm.episodes import ExtendedVerdicts

            return ExtendedVerdicts(verdict.problem).record(verdict, ())
        return score_record(verdict)

    def solve(
        self,
        item: Problem,
        *,
        max_parents: int | None = None,
        nested_roots: bool | None = None,
        states: int | None = LEAST_SCM_STATES,
        engine: str = "auto",
        seconds: float | None = None,
        assume: str | None = None,
    ) -> Outcome[Solution[Scm]]:
        """Return the smallest SCM that replays the training worlds, with its certificate.

        An Alternative-SCM item is solved to optimality by one engine; `states`, `engine` and `seconds` have no effect.

        max_parents: number of variables that a mechanism may mention; by default 5, for Alternative-SCM 4
        assume: lines that the SCM has to satisfy (dsl.knowledge); other arguments: see solvers.replayscm.exact
        """
        from calibrant.bench.replayscm.rows.exact import alternative_answer, scm_answer
        from calibrant.solvers.replayscm.alternative import find_alternative
        from calibrant.solvers.replayscm.canonical import canonical_task
        from calibrant.solvers.replayscm.exact import solve

        if assume is not None:
            knowledge = parse_knowledge(assume, "assume")
            ASSUME.check(_require_problem(item), knowledge)
            item = ASSUME.assume(item, knowledge)
        task = _require_problem(item).task
        if task.extension is not None:
            if (max_parents, nested_roots, states, engine, seconds) != (None, None, LEAST_SCM_STATES, "auto", None):
                raise CalibrantError(f"{in_one_line(item.id)} states its class: `solve` has no options on it")
            from calibrant.bench.replayscm.episodes import solve_extended

            return solve_extended(item)
        canonical = canonical_task(task)  # ties are broken by canonical order, so that names have no effect
        if task.kind is TaskKind.ALTERNATIVE:
            alternative = find_alternative(canonical.task, max_parents=max_parents or 4)
            if not isinstance(alternative, Found):
                return alternative
            explanation = alternative.value
            answer = canonical.restore(alternative_answer(explanation))
            model = canonical.restore_scm(explanation.model)
            return Found(Solution(answer, model, explanation.size, explanation.provenance))
        outcome = solve(
            canonical.task,
            max_parents=max_parents or 5,
            nested_roots=nested_roots,
            states=states,
            engine=engine,
            seconds=seconds,
        )
        if not isinstance(outcome, Found | BestSoFar):
            return outcome
        solved = outcome.value if isinstance(outcome, Found) else outcome.incumbent
        model = canonical.restore_scm(solved.model)
        solution = Solution(scm_answer(task.kind, model), model, solved.size, solved.provenance)
        return replace(outcome, incumbent=solution) if isinstance(outcome, BestSoFar) else Found(solution)

    def version_space(
        self,
        item: Problem,
        *,
        max_parents: int = 4,
        max_size: int | None = None,
        nested_roots: bool = False,
        terms: int | None = None,
        steps: Sequence[Step[Any]] = (),
    ) -> VersionSpace:
        """Return the space of the SCMs of a class that replay the training worlds.

        max_parents: limit of functional parents; max_size: limit of a formula's size; nested_roots: see ModelClass
        terms: limit of the terms of a sum; None: the limits of solvers.acyclic.count
        steps: steps of an episode; its item states the class, so the other arguments are refused
        """
        from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

        if _require_problem(item).task.extension is not None:
            if (max_parents, max_size, nested_roots, terms) != (4, None, False, None):
                raise CalibrantError(f"{in_one_line(item.id)} states its class: `version_space` has no options on it")
            from calibrant.bench.replayscm.episodes import fitting_space

            return fitting_space(item, steps)
        if steps:
            raise CalibrantError(f"{in_one_line(item.id)} is answered at once: it has no steps")
        return VersionSpace(_require_problem(item).task, ModelClass(max_parents, max_size, nested_roots), terms=terms)

    def audit(self, item: Problem, *, max_parents: int | None = None, nested_roots: bool = False) -> Findings:
        """Return the findings of an audit.

        max_parents: parent limit of the class that the verdict is about; by default the smallest class with gold
        """
        from calibrant.audits.replayscm.items import AuditOptions, audit_instance

        require_plain([_require_problem(item)], "`audit` from Python")
        return audit_instance(_require_problem(item), AuditOptions(max_parents, nested_roots=nested_roots))

    def separate(
        self, item: Problem, answers: Sequence[object], *, members: int = 2, max_parents: int = 4, targets: int = 1
    ) -> tuple[SeparatedPair, ...]:
        """Return interventions that separate every pair of answers; one answer is paired with the reference or gold.

        Without answers, the smallest SCMs of a class are separated.

        members: number of these SCMs; max_parents: parent limit of their class
        targets: largest number of variables that one intervention sets
        """
        from calibrant.bench.replayscm.audit.separations import (
            known_model,
            member_pairs,
            separate_pair,
            smallest_of_class,
        )

        problem = _require_problem(item)
        require_plain([problem], "`separate`")
        if not answers:
            return tuple(member_pairs(smallest_of_class(problem, members, max_parents).models, max_targets=targets))
        named_models = [(f"answer {i}", self._model(problem, answer)) for i, answer in enumerate(answers, 1)]
        if len(named_models) == 1:
            named_models.insert(0, known_model(problem))
        pairs = combinations(named_models, 2)
        return tuple(separate_pair((a, b), (first, second), max_targets=targets) for (a, first), (b, second) in pairs)

    def _model(self, problem: Problem, answer: object) -> Scm:
        if isinstance(answer, Scm):
            return answer
        score = self.score(problem, answer)
        if score.model is None:
            raise CalibrantError(f"{in_one_line(problem.id)}: not a valid answer: {score.failure}")
        return score.model

    def harden(
        self,
        item: Problem,
        seed: int,
        *,
        goal: Literal["one-member", "heldout-agreement", "no-discovered"] = "one-member",
        max_parents: int | None = None,
        searches: str = "staged-exact-search,bnlearn+dsl",
        seeds: int = 50,
    ) -> Hardening:
        """Return the item with worlds added until the goal is reached.

        goal: one member remains, one held-out behaviour remains, or the searches find no alternative
        searches: methods of `run` for the goal no-discovered; seeds: number of runs of each method that has a seed
        max_parents: parent limit of the counted class; by default the least one of at least 4 that gold needs
        """
        from calibrant.audits.replayscm.hardening.harden import counterexample_worlds
        from calibrant.bench.replayscm.hardening import GOALS, NamedSearches
        from calibrant.solvers.replayscm.space import ModelClass

        model_class = None if max_parents is None else ModelClass(max_parents)
        require_plain([_require_problem(item)], "`harden`")
        problem = _require_problem(item)
        search = NamedSearches(searches, seeds).search(problem) if goal == "no-discovered" else None
        return counterexample_worlds(problem, seed, model_class=model_class, goal=GOALS[goal], search=search)

    def generate(
        self,
        seed: int,
        *,
        stratum: str = "hs_n6_easy_calibration",
        setting: Literal["ordered", "block", "hidden-order", "hidden-roots"] = "hidden-order",
        max_added: int | None = None,
    ) -> Generated:
        """Return a generated item.

        stratum: a named distribution of SCMs and worlds; setting: the disclosure
        """
        from calibrant.audits.replayscm.generation.generate import generate
        from calibrant.audits.replayscm.generation.published import MAX_ADDED_WORLDS
        from calibrant.dsl.replayscm.generation.strata import stratum as named_stratum

        limit = MAX_ADDED_WORLDS if max_added is None else max_added
        return generate(named_stratum(stratum), seed, setting=setting, max_added=limit)

    def text_episode(self, item: Problem, *, thoughts: Thoughts = "strip") -> TextEpisode:
        """Return an episode in messages.

        thoughts: how thoughts are separated from the rest of a reply (dsl.answer_text)
        """
        from calibrant.bench.replayscm.episodes import text_episode
        from calibrant.bench.replayscm.play import PLAY

        PLAY.open(_require_problem(item))  # refuses an item that is answered at once
        return text_episode(item, thoughts)


def _require_problem(item: object) -> Problem:
    if not isinstance(item, Problem):
        raise CalibrantError(f"{short_repr(type(item).__name__)} is no item of ReplaySCM")
    return item


FUNCTIONS = ReplayScmFunctions()


# --- ReplaySCM for trainers -------------------------------------------------------------------------------------------
MIN_LOSS = 0.01  # least loss of a wrong forecast in bits per cell, so that its share stays below 1


class ReplayScmTraining:
    """Implements Trainable (bench.core.capabilities); `share` is over scored cells of training and held-out worlds."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(f"{stratum.name}/hidden-order" for stratum in NAMED_STRATA)

    def difficulty(self, item: Problem) -> Mapping[str, int]:
        gold = item.sealed.gold
        parents = [] if gold is None else [len(local.parents) for local in gold.local_functions.values()]
        graph_labels = {} if gold is None else {"edges": sum(parents), "parents": max(parents, default=0)}
        return {"variables": len(item.task.variables), "worlds": len(item.task.training.worlds), **graph_labels}

    def gold(self, item: Problem) -> dict[str, Any] | None:
        """Return gold as an answer; for Alternative-SCM, the alternative of a search. None if there is none."""
        from calibrant.bench.replayscm.rows.exact import alternative_answer, scm_answer

        if item.task.kind is TaskKind.ALTERNATIVE:
            from calibrant.solvers.replayscm.alternative import find_alternative

            alternative = find_alternative(item.task)
            return alternative_answer(alternative.value) if isinstance(alternative, Found) else None
        return None if item.sealed.gold is None else scm_answer(item.task.kind, item.sealed.gold)

    def share(self, item: Problem, verdict: Score) -> float:
        """Return the share of scored cells that are right; .5 if all are right but the answer is not correct.

        For items with a stated class see `extended_share`.
        """
        if isinstance(verdict, ExtendedScore):
            return extended_share(verdict)
        splits = [split for split in (verdict.train, verdict.heldout) if split is not None]
        cells, wrong = sum(split.num_cells for split in splits), sum(split.num_wrong for split in splits)
        if cells and not wrong:
            return 1.0 if verdict.correct else 0.5
        return (cells - wrong) / cells if cells else 0.0

    def fits(self, verdict: Score) -> bool:
        """Return whether an answer is train-exact; under noise, where every SCM is possible, whether it is valid."""
        if isinstance(verdict, ExtendedScore) and verdict.is_noisy:
            return verdict.valid
        return verdict.train_exact

    def agrees(self, verdict: Score) -> bool:
        return verdict.heldout_exact


def extended_share(verdict: ExtendedScore) -> float:
    """Return 1 for a correct answer, 0 for an invalid one, else partial credit.

    For an SCM: the mean of the shares of matched training cells and of exact held-out worlds. For a forecast: 1 minus
    its excess log loss over gold's distribution, in bits per cell, at least 0.
    """
    if verdict.correct or not verdict.valid:
        return float(verdict.correct is True)
    if verdict.replay is None:
        loss = 1.0 if verdict.forecast is None else verdict.forecast.excess_log_loss
        return max(0.0, 1.0 - max(loss, MIN_LOSS))
    shares = [verdict.replay.train_match, verdict.replay.world_accuracy]
    defined = [float(share) for share in shares if share is not None]
    return sum(defined) / len(defined) if defined else 0.0


TRAINING = ReplayScmTraining()
