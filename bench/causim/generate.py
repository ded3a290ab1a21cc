"""Generation of pools of CauSim: suite by suite, or program by program with all their questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from calibrant.bench.causim.options import GeneratedItems, GenerateOptions
from calibrant.bench.causim.programs.plans import question_plan, versions_of
from calibrant.bench.causim.programs.pools import ProgramPools
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import SuiteGenerator, chosen_suites
from calibrant.bench.pools.item_options import ItemOptions, refused_plan
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import BUILT_IN, NIHSS, built_in_items, items_in_turns, sampled_items


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


def draw_with_options(suite: str, seed: int, places: range, options: GeneratedItems) -> Sequence[CausimItem]:
    """Draw the items of a suite at these places: programs of several sizes in turns, or a built-in model."""
    plan, versions = question_plan(options), versions_of(options.versions)
    if suite in BUILT_IN:
        if options.vocabulary is not None or options.per_type is not None:
            raise refused_plan(ValueError(f"suite {suite}: vocabulary and each apply to generated programs"))
        if versions and (suite != NIHSS or min(versions) < 2):
            raise refused_plan(ValueError(f"suite {suite}: versions are those of nihss, from 2 on"))
        items = built_in_items(seed, suite, versions, plan)
    else:
        items = items_in_turns(seed, suite, versions, plan, options.vocabulary or "nonsense")
    return tuple(islice(items, places.start, places.stop))


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
            for name, value in (("heldout holds out", values.heldout), ("fill draws further", values.fill)):
                if value is not None:
                    raise refused_plan(ValueError(f"{name} programs; give programs too"))
            return super().generate_with_options(request, options)
        suites = chosen_suites(self.name, request.suites)
        if built_in := [suite for suite in suites if suite in BUILT_IN]:
            raise refused_plan(ValueError(f"programs are generated; leave out {', '.join(built_in)} of --strata"))
        if (values.heldout or 0) >= values.programs:
            raise refused_plan(ValueError(f"heldout={values.heldout}: fewer than programs={values.programs} expected"))
        if request.count is not None:
            raise refused_plan(ValueError("programs gives their number; leave out --per-stratum"))
        return ProgramPools(self.name, request, options, suites).write()


SUITES = CausimSuites()
GENERATE = CausimGenerator("causim", draw_with_options)
