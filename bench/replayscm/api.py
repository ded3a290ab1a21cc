"""ReplaySCM behind the public names, and for trainers."""

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


# --- ReplaySCM behind the public names. What compiles or reads YAML is imported when it is needed ---------------------


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
        """Return the score of an answer, of a text by the paper's rule.

        steps: of an episode, before the answer; they are replayed first, and what they submit counts
        """
        problem, parsed = _problem(item), parse_answer(answer)
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
        """Return the SCM of least size that fits the training worlds, with its certificate.

        max_parents: mentions in a mechanism, by default 5; the others: see solvers.replayscm.exact
        assume: lines that the SCM has to satisfy (dsl.knowledge)
        An alternative explanation is sought to its end, whatever `states` is, and by no other engine.
        """
        from calibrant.bench.replayscm.rows.exact import alternative_answer, scm_answer
        from calibrant.solvers.replayscm.alternative import find_alternative
        from calibrant.solvers.replayscm.canonical import canonical_task
        from calibrant.solvers.replayscm.exact import solve

        if assume is not None:
            knowledge = parse_knowledge(assume, "assume")
            ASSUME.check(_problem(item), knowledge)
            item = ASSUME.assume(item, knowledge)
        task = _problem(item).task
        if task.extension is not None:
            if (max_parents, nested_roots, states, engine, seconds) != (None, None, LEAST_SCM_STATES, "auto", None):
                raise CalibrantError(f"{in_one_line(item.id)} states its class: `solve` has no options on it")
            from calibrant.bench.replayscm.episodes import solve_extended

            return solve_extended(item)
        canonical = canonical_task(task)  # ties are broken by its order: names decide nothing
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
        """Return every SCM of a class that fits the training worlds.

        max_parents: functional parents of a mechanism; max_size: of a formula; nested_roots: see ModelClass
        terms: of a sum, at most; None means the limits of solvers.acyclic.count
        steps: of an episode, whose class the item states
        """
        from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

        if _problem(item).task.extension is not None:
            if (max_parents, max_size, nested_roots, terms) != (4, None, False, None):
                raise CalibrantError(f"{in_one_line(item.id)} states its class: `version_space` has no options on it")
            from calibrant.bench.replayscm.episodes import fitting_space

            return fitting_space(item, steps)
        if steps:
            raise CalibrantError(f"{in_one_line(item.id)} is answered at once: it has no steps")
        return VersionSpace(_problem(item).task, ModelClass(max_parents, max_size, nested_roots), terms=terms)

    def audit(self, item: Problem, *, max_parents: int | None = None, nested_roots: bool = False) -> Findings:
        """Return the findings of an audit.

        max_parents: of the class of the verdict, by default the smallest with gold; nested_roots: see ModelClass
        """
        from calibrant.audits.replayscm.items import AuditOptions, audit_instance

        require_plain([_problem(item)], "`audit` from Python")
        return audit_instance(_problem(item), AuditOptions(max_parents, nested_roots=nested_roots))

    def separate(
        self, item: Problem, answers: Sequence[object], *, members: int = 2, max_parents: int = 4, targets: int = 1
    ) -> tuple[SeparatedPair, ...]:
        """Return pairs of the answers; one answer with the reference or gold; without answers, the smallest members.

        members: how many of these; max_parents: of their class; targets: also interventions on up to so many at once
        """
        from calibrant.bench.replayscm.audit.separations import known_model, member_pairs, separate_pair, smallest

        problem = _problem(item)
        require_plain([problem], "`separate`")
        if not answers:
            return tuple(member_pairs(smallest(problem, members, max_parents).models, max_targets=targets))
        models = [(f"answer {i}", self._model(problem, answer)) for i, answer in enumerate(answers, 1)]
        if len(models) == 1:
            models.insert(0, known_model(problem))
        pairs = combinations(models, 2)
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

        goal: the members, or the held-out behaviours, that may remain; or that the searches discover no alternative
        searches: methods of `run` that no-discovered asks; seeds: runs of each of these that has a seed
        max_parents: the class that is counted, by default gold's, at least 4
        """
        from calibrant.audits.replayscm.hardening.harden import counterexample_worlds
        from calibrant.bench.replayscm.hardening import GOALS, NamedSearches
        from calibrant.solvers.replayscm.space import ModelClass

        model_class = None if max_parents is None else ModelClass(max_parents)
        require_plain([_problem(item)], "`harden`")
        problem = _problem(item)
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

        stratum: kind of SCM and worlds; setting: the disclosure; max_added: worlds against alternatives
        """
        from calibrant.audits.replayscm.generation.generate import generate
        from calibrant.audits.replayscm.generation.published import MAX_ADDED_WORLDS
        from calibrant.dsl.replayscm.generation.strata import stratum as named_stratum

        limit = MAX_ADDED_WORLDS if max_added is None else max_added
        return generate(named_stratum(stratum), seed, setting=setting, max_added=limit)

    def text_episode(self, item: Problem, *, thoughts: Thoughts = "strip") -> TextEpisode:
        """Return an episode in messages.

        thoughts: which part of a reply is thoughts
        """
        from calibrant.bench.replayscm.episodes import text_episode
        from calibrant.bench.replayscm.play import PLAY

        PLAY.open(_problem(item))  # refuses an item that is answered at once
        return text_episode(item, thoughts)


def _problem(item: object) -> Problem:
    if not isinstance(item, Problem):
        raise CalibrantError(f"{short_repr(type(item).__name__)} is no item of ReplaySCM")
    return item


FUNCTIONS = ReplayScmFunctions()


# --- ReplaySCM for trainers -------------------------------------------------------------------------------------------
MIN_LOSS = 0.01  # bits a cell of a forecast that is not right, so that it is worth less than one that is


class ReplayScmTraining:
    """Scored cells, of training and held-out worlds, are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(f"{stratum.name}/hidden-order" for stratum in NAMED_STRATA)

    def difficulty(self, item: Problem) -> Mapping[str, int]:
        gold = item.sealed.gold
        parents = [] if gold is None else [len(local.parents) for local in gold.local_functions.values()]
        graph_labels = {} if gold is None else {"edges": sum(parents), "parents": max(parents, default=0)}
        return {"variables": len(item.task.variables), "worlds": len(item.task.training.worlds), **graph_labels}

    def gold(self, item: Problem) -> dict[str, Any] | None:
        """Gold; of an Alternative-SCM item, another model that a search finds."""
        from calibrant.bench.replayscm.rows.exact import alternative_answer, scm_answer

        if item.task.kind is TaskKind.ALTERNATIVE:
            from calibrant.solvers.replayscm.alternative import find_alternative

            alternative = find_alternative(item.task)
            return alternative_answer(alternative.value) if isinstance(alternative, Found) else None
        return None if item.sealed.gold is None else scm_answer(item.task.kind, item.sealed.gold)

    def share(self, item: Problem, verdict: Score) -> float:
        """Right scored cells over scored cells; half of 1 where all are right but the task asks for more than that.

        Of items with a stated class see `extended_share`.
        """
        if isinstance(verdict, ExtendedScore):
            return extended_share(verdict)
        splits = [split for split in (verdict.train, verdict.heldout) if split is not None]
        cells, wrong = sum(split.num_cells for split in splits), sum(split.num_wrong for split in splits)
        if cells and not wrong:
            return 1.0 if verdict.correct else 0.5
        return (cells - wrong) / cells if cells else 0.0

    def fits(self, verdict: Score) -> bool:
        """Return whether an answer is train-exact; under noise no map of the class is excluded."""
        if isinstance(verdict, ExtendedScore) and verdict.is_noisy:
            return verdict.valid
        return verdict.train_exact

    def agrees(self, verdict: Score) -> bool:
        return verdict.heldout_exact


def extended_share(verdict: ExtendedScore) -> float:
    """Return 1 for a right answer; of a map the mean of matched training cells and exact held-out worlds.

    Of a forecast 1 less the bits a cell that it loses against gold's law, at least 0.
    """
    if verdict.correct or not verdict.valid:
        return float(verdict.correct is True)
    if verdict.replay is None:
        loss = 1.0 if verdict.forecast is None else verdict.forecast.excess_log_loss
        return max(0.0, 1.0 - max(loss, MIN_LOSS))
    parts = [verdict.replay.train_match, verdict.replay.world_accuracy]
    stated = [float(part) for part in parts if part is not None]
    return sum(stated) / len(stated) if stated else 0.0


TRAINING = ReplayScmTraining()
