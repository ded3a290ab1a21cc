"""Generation of pools of CauSim: suite by suite, or program by program with all their questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.causim.options import GeneratedItems, GenerateOptions
from calibrant.bench.causim.options import QuestionOptions as StatedOptions
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import SuiteGenerator, chosen_suites
from calibrant.bench.pools.item_options import ItemOptions, refused_plan
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import Failure
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.causim.generation.diversity import Diversity
from calibrant.dsl.causim.generation.growth import Tally, grow
from calibrant.dsl.causim.generation.questions import QuestionOptions
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import FORMS, TYPES, QuestionType
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.solvers.causim.items import BUILT_IN, NIHSS, built_in_items, sampled_items
from calibrant.solvers.causim.pipeline import Caps
from calibrant.solvers.causim.planned_items import (
    QuestionPlan,
    built_in_plan_items,
    heldout_numbers,
    items_in_turns,
    program_id,
    program_items,
)


class CausimSuites(Drawable[CausimItem]):
    """Implements Drawable (bench.core.suites)."""

    @property
    def names(self) -> Sequence[str]:
        return (*TOPOLOGIES, *BUILT_IN)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[CausimItem]:
        """Return items of suites.

        A suite is a topology: programs of 2, 4, 6, 8 and 10 nodes in turns, with a question of each type about each; or
        a built-in model, of which there may be fewer items.
        """
        sequences = [(built_in_items if name in BUILT_IN else sampled_items)(seed, name) for name in suites]
        return tuple(item for sequence in sequences for item in islice(sequence, count))


MAX_NODES = 20
ALL_VERSIONS = tuple(range(1, 11))  # of the paper
HELDOUT = "heldout_{}"


def versions_of(text: str | None) -> tuple[int, ...]:
    """Read `1-10` or `1,3,5`, ascending; none without a text. `OptionError` for what is no version."""
    if text is None:
        return ()
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1)) or {0}
    if not min(numbers) >= 1 or max(numbers) > MAX_NODES:
        raise refused_plan(ValueError(f"versions={text}: ascending numbers from 1 to {MAX_NODES} are expected"))
    return tuple(sorted(numbers))


def question_plan(options: StatedOptions) -> QuestionPlan:
    """Return the plan of questions; `OptionError` for options that do not go together."""
    types: list[QuestionType] = []
    for kind in (options.types or ",".join(TYPES)).split(","):
        if kind not in TYPES:
            raise refused_plan(ValueError(f"unknown type {short_repr(kind)}; known: {', '.join(TYPES)}"))
        if kind not in types:
            types.append(kind)
    if options.prose is not None and options.view != "prose":
        raise refused_plan(ValueError("prose is the style of view=prose; give both"))
    forms = [FORMS[kind] for kind in types]
    needs = {
        "effect": (options.effect, any(form.has_do for form in forms)),
        "intervened": (options.intervened, any(form.has_do for form in forms)),
        "missing": (options.missing, not all(form.has_evidence for form in forms)),
        "evidence": (options.evidence, any(form.evidence == "chosen" for form in forms)),
        "with_noise": (options.with_noise, any(form.may_ask_noise for form in forms)),
    }
    for name, (value, is_used) in needs.items():
        if value is not None and not is_used:
            raise refused_plan(ValueError(f"{name} has no effect on questions of type {', '.join(types)}"))
    default = QuestionOptions()
    sampling = QuestionOptions(
        default.missing if options.missing is None else options.missing,
        default.intervened if options.intervened is None else options.intervened,
        options.evidence or default.evidence,
        bool(options.with_noise),
    )
    return QuestionPlan(
        options.per_type or 1,
        tuple(types),
        options.scenario,
        sampling,
        options.view or "code",
        options.prose or "sentences",
        options.effect or "any",
        _caps(options),
    )


def _caps(options: StatedOptions) -> Caps | None:
    if options.domain_samples is options.max_combinations is options.max_support is None:
        return None
    usual = Caps()
    return Caps(
        options.domain_samples,
        options.max_combinations or usual.max_combinations,
        options.max_support or usual.max_support,
    )


def draw_with_options(suite: str, seed: int, places: range, options: GeneratedItems) -> Sequence[CausimItem]:
    """Draw the items of a suite at these places: programs of several sizes in turns, or a built-in model."""
    plan, versions = question_plan(options), versions_of(options.versions)
    if suite in BUILT_IN:
        if options.vocabulary is not None or options.per_type is not None:
            raise refused_plan(ValueError(f"suite {suite}: vocabulary and each apply to generated programs"))
        if versions and (suite != NIHSS or min(versions) < 2):
            raise refused_plan(ValueError(f"suite {suite}: versions are those of nihss, from 2 on"))
        items = built_in_plan_items(seed, suite, versions, plan)
    else:
        items = items_in_turns(seed, suite, versions, plan, options.vocabulary or "nonsense")
    return tuple(islice(items, places.start, places.stop))


class _DrawnProgram(NamedTuple):
    """The items about a program, the outcomes of its drafts, and its part of a report."""

    items: Sequence[CausimItem]
    drafts: Tally
    diversity: Diversity


def _draw_program(seed: int, options: GeneratedItems, with_report: bool, place: tuple[str, int]) -> _DrawnProgram:
    """Draw a program and its items.

    with_report: also its motifs and tables; it is grown again for them
    """
    tally, diversity = Tally(), Diversity()
    plan, versions = question_plan(options), versions_of(options.versions) or ALL_VERSIONS
    vocabulary = options.vocabulary or "nonsense"
    items = tuple(program_items(seed, *place, versions, plan, vocabulary, tally))
    if with_report:
        suite, number = place
        grown = grow(seed, program_id(suite, number), suite, max(versions), vocabulary=vocabulary)
        for version in versions:
            diversity.add_graph(grown[version - 1].model)
        diversity.add_tables(grown[-1].model)
    return _DrawnProgram(items, tally, diversity)


class CausimGenerator(SuiteGenerator):
    """Generation of CauSim, which can also write all questions about so many programs."""

    def generate(self, request: GenerateRequest, options: GenerateOptions) -> Sequence[str]:
        has_programs = any(text.partition("=")[0] == "programs" for text in request.item_options)
        if options.report is not None and not has_programs:
            raise OptionError("the report is about programs: give -o programs=N", "--report")
        return super().generate(replace(request, report=options.report), options)

    def generate_with_options(self, request: GenerateRequest, options: ItemOptions) -> Sequence[str]:
        values: GeneratedItems = options.values
        question_plan(values)
        versions_of(values.versions)
        if values.programs is None:
            if values.heldout is not None:
                raise refused_plan(ValueError("heldout holds out programs; give programs too"))
            return super().generate_with_options(request, options)
        suites = chosen_suites(self.name, request.suites)
        if built_in := [suite for suite in suites if suite in BUILT_IN]:
            raise refused_plan(ValueError(f"programs are generated; leave out {', '.join(built_in)} of --strata"))
        if (values.heldout or 0) >= values.programs:
            raise refused_plan(ValueError(f"heldout={values.heldout}: fewer than programs={values.programs} expected"))
        if request.count is not None:
            raise refused_plan(ValueError("programs gives their number; leave out --per-stratum"))
        return self._write_programs(request, options, suites)

    def _write_programs(self, request: GenerateRequest, options: ItemOptions, suites: Sequence[str]) -> list[str]:
        values: GeneratedItems = options.values
        places = [(suite, number) for suite in suites for number in range(values.programs or 0)]
        heldout = {
            (suite, number)
            for suite in suites
            for number in heldout_numbers(request.seed, suite, values.programs or 0, values.heldout or 0)
        }
        counts: Counter[tuple[str, int, str]] = Counter()
        drafts = {suite: Tally() for suite in suites}
        diversity = {suite: Diversity() for suite in suites}
        with SpillBuffer[Any]() as training, SpillBuffer[Any]() as test:
            work = partial(_draw_program, request.seed, values, request.report is not None)
            for i, (number, result) in enumerate(as_completed(work, dict(enumerate(places)), request.execution)):
                if isinstance(result, Failure):
                    raise CalibrantError(f"program {program_id(*places[number])}: {result.error}")
                for place, item in enumerate(result.items):
                    (test if places[number] in heldout else training).add((number, place), item)
                    counts[item.scm, item.version, item.task.question.type] += 1
                drafts[places[number][0]].add(result.drafts)
                diversity[places[number][0]].add(result.diversity)
                request.progress(request.out.name, i + 1, len(places))
            about = {"seed": request.seed, "suites": list(suites), "options": dict(options.stated)}
            lines = [self._write_pool_file(request.out, training.values(), about)]
            if values.heldout:
                path = request.out.parent / HELDOUT.format(request.out.name)
                lines.append(self._write_pool_file(path, test.values(), about | {"heldout": values.heldout}))
        lines += [f"{suite}: {tally.in_words}" for suite, tally in drafts.items()]
        if request.report is not None:
            lines.append(_write_report(request.report, drafts, diversity))
        return [*lines, *_shortfall(values, len(places), counts)]

    def _write_pool_file(self, path: Path, items: Sequence[CausimItem], about: dict[str, Any]) -> str:
        from calibrant.dsl.causim.records import write_pool

        pool = Pool(path.name.partition(".")[0], self.name, items, about)
        write_pool(path, pool.items, name=pool.name, metadata=about)
        return f"{len(items)} instances written to {path}"


def _write_report(path: Path, drafts: Mapping[str, Tally], diversity: Mapping[str, Diversity]) -> str:
    """Write drafts by version and outcome, and diversity, by suite."""
    report = {
        suite: {
            "drafts": {str(version): outcomes for version, outcomes in sorted(tally.versions.items())},
            "accepted_share": tally.rate,
            **diversity[suite].to_dict(),
        }
        for suite, tally in drafts.items()
    }
    write_atomically(path, json.dumps(report, indent=1, sort_keys=True) + "\n")
    return f"report written to {path}"


def _shortfall(options: GeneratedItems, num_programs: int, counts: Counter[tuple[str, int, str]]) -> list[str]:
    """Return a line about versions with fewer questions than requested; none if there are none."""
    plan, versions = question_plan(options), versions_of(options.versions) or ALL_VERSIONS
    total, requested = num_programs * len(versions) * len(plan.types), plan.per_type
    complete = sum(number == requested for number in counts.values())
    if complete == total:
        return []
    missing = total * requested - sum(counts.values())
    return [f"{total - complete} of {total} versions and types have fewer than {requested} questions: {missing} fewer"]


SUITES = CausimSuites()
GENERATE = CausimGenerator("causim", draw_with_options)
