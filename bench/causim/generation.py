"""Generated items of CauSim, and variants of items."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from calibrant.audits.causim.training import TrainingHeader, TrainingRecord
from calibrant.bench.causim.options import GeneratedItems, GenerateOptions
from calibrant.bench.causim.options import QuestionOptions as StatedOptions
from calibrant.bench.core.capabilities import Drawable, SuiteUnits
from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import SuiteGenerator, chosen_suites
from calibrant.bench.pools.item_options import ItemOptions, refused_plan
from calibrant.bench.runs.executors import Failure
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.bench.runs.workers import as_completed
from calibrant.bench.variants import CopyMap, Record, Variable, Variant, permuted, rename_json, shuffled
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.causim.bundle import bundle_of, load_source, module_text, table_bundle_of
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import Diversity, QuestionOptions, Tally, grow
from calibrant.dsl.causim.item import CausimItem, load_model
from calibrant.dsl.causim.model import Model, ModelError, loose_symbol
from calibrant.dsl.causim.prompt import prose
from calibrant.dsl.causim.question import FORMS, TYPES, QuestionType
from calibrant.dsl.causim.records import write_pool
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural
from calibrant.solvers.causim.canonical import ModelNames, rename_model
from calibrant.solvers.causim.generation import (
    BUILT_IN,
    MAX_EMPTY,
    NIHSS,
    Caps,
    Cell,
    QuestionPlan,
    built_in_items,
    further_items,
    heldout_numbers,
    items_of_turn,
    program_id,
    version_items,
)

# --- Options of questions about programs, as a plan -------------------------------------------------------------------
MAX_NODES = 20
ALL_VERSIONS = tuple(range(1, 11))  # the paper's: version v of a program has v nodes


def versions_of(text: str | None) -> tuple[int, ...]:
    """Return the versions of `1-10` or `1,3,5`, ascending; empty for None. `OptionError` for anything else."""
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
    """Return the plan of questions; `OptionError` for options that contradict each other."""
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


# --- Pools with all questions about each generated program; held-out programs have a file of their own
HELDOUT = "heldout_{}"


class _Part(NamedTuple):
    """The programs of one topology in one of the two files: the pool, or the held-out programs."""

    topology: str
    is_heldout: bool


class _DrawnItems(NamedTuple):
    """Items about one or more programs, with the outcomes of drafts of programs and the report's diversity."""

    items: Sequence[CausimItem]
    drafts: Tally
    diversity: Diversity


class _Gap(NamedTuple):
    """Numbers of questions that a part lacks, by cell (version, type of question).

    numbers: of further programs that may fill the gap; disjoint between the parts of a topology
    """

    part: _Part
    numbers: range
    missing: Mapping[Cell, int]


def _draw_program(seed: int, options: GeneratedItems, with_report: bool, program: tuple[str, int]) -> _DrawnItems:
    """Draw a program, given as topology and number, and its items; with_report: count its motifs and tables too."""
    tally, diversity = Tally(), Diversity()
    plan, versions = question_plan(options), versions_of(options.versions) or ALL_VERSIONS
    vocabulary = options.vocabulary or "nonsense"
    topology, scm_id = program[0], program_id(*program)
    grown = grow(seed, scm_id, topology, max(versions), vocabulary=vocabulary, tally=tally)
    chosen_versions = [grown[v - 1] for v in versions]
    items = tuple(
        item for version in chosen_versions for item in version_items(seed, scm_id, version, plan, vocabulary)
    )
    if with_report:
        for version in chosen_versions:
            diversity.add_graph(version.model)
        diversity.add_tables(grown[-1].model)
    return _DrawnItems(items, tally, diversity)


def _fill(seed: int, options: GeneratedItems, gap: _Gap) -> _DrawnItems:
    """Draw questions about further programs for a part that lacks some."""
    tally = Tally()
    topology, vocabulary = gap.part.topology, options.vocabulary or "nonsense"
    items = further_items(seed, topology, gap.numbers, gap.missing, question_plan(options), vocabulary, tally)
    return _DrawnItems(tuple(items), tally, Diversity())


class ProgramPools:
    """The pools of `generate -o programs=N`."""

    def __init__(self, benchmark: str, request: GenerateRequest, options: ItemOptions, suites: Sequence[str]) -> None:
        self._benchmark = benchmark
        self._request = request
        self._options: GeneratedItems = options.values
        self._suites = suites
        self._programs = self._options.programs or 0
        self._plan = question_plan(self._options)
        self._versions = versions_of(self._options.versions) or ALL_VERSIONS
        self._about = {"seed": request.seed, "suites": list(suites), "options": dict(options.stated)}
        self._heldout = {
            (suite, number)
            for suite in suites
            for number in heldout_numbers(request.seed, suite, self._programs, self._options.heldout or 0)
        }
        # numbers of questions: of requested programs by program and cell, of these and further ones by part and cell
        self._per_program: Counter[tuple[str, Cell]] = Counter()
        self._per_part: Counter[tuple[_Part, Cell]] = Counter()
        self._drafts = {suite: Tally() for suite in suites}
        self._diversity = {suite: Diversity() for suite in suites}
        self._further_programs: set[str] = set()

    def write(self) -> list[str]:
        """Draw the items and write the files; return lines that say what was written."""
        request = self._request
        with SpillBuffer[CausimItem]() as training, SpillBuffer[CausimItem]() as test:
            buffers = (training, test)
            self._draw(buffers)
            if self._options.fill:
                self._draw_further(buffers)
            lines = [self._write_file(request.out, training.values(), self._about)]
            if self._options.heldout:
                path = request.out.parent / HELDOUT.format(request.out.name)
                lines.append(self._write_file(path, test.values(), self._about | {"heldout": self._options.heldout}))
        lines += [f"{suite}: {tally.in_words}" for suite, tally in self._drafts.items()]
        if request.report is not None:
            lines.append(_write_report(request.report, self._drafts, self._diversity))
        return [*lines, *self._shortfall()]

    def _draw(self, buffers: Sequence[SpillBuffer[CausimItem]]) -> None:
        request = self._request
        programs = list(self._requested_programs())
        # requested questions of a program; some programs have fewer
        size = len(self._versions) * len(self._plan.types) * self._plan.per_type
        request.progress(request.out.name, 0, size * len(programs))
        work = partial(_draw_program, request.seed, self._options, request.report is not None)
        results = as_completed(work, dict(enumerate(programs)), request.execution)
        for done, (index, result) in enumerate(results, start=1):
            program = programs[index]
            if isinstance(result, Failure):
                raise CalibrantError(f"program {program_id(*program)}: {result.error}")
            self._add(buffers, index, _Part(program[0], program in self._heldout), result)
            for item in result.items:
                self._per_program[item.scm, _cell(item)] += 1
            request.progress(request.out.name, size * done, size * len(programs))

    def _draw_further(self, buffers: Sequence[SpillBuffer[CausimItem]]) -> None:
        """Draw questions about further programs where a part lacks some."""
        gaps = list(self._gaps())
        work = partial(_fill, self._request.seed, self._options)
        num_programs = self._programs * len(self._suites)
        done, total = 0, sum(sum(gap.missing.values()) for gap in gaps)
        for number, result in as_completed(work, dict(enumerate(gaps)), self._request.execution):
            part = gaps[number].part
            done += sum(gaps[number].missing.values())
            self._request.progress(f"{self._request.out.name}, further programs", done, total)
            if isinstance(result, Failure):
                raise CalibrantError(f"further programs of {part.topology}: {result.error}")
            self._add(buffers, num_programs + number, part, result)
            self._further_programs |= {item.scm for item in result.items}

    def _add(self, buffers: Sequence[SpillBuffer[CausimItem]], number: int, part: _Part, result: _DrawnItems) -> None:
        for index, item in enumerate(result.items):
            buffers[part.is_heldout].add((number, index), item)
            self._per_part[part, _cell(item)] += 1
        self._drafts[part.topology].add(result.drafts)
        self._diversity[part.topology].add(result.diversity)

    def _gaps(self) -> Iterator[_Gap]:
        """Yield a gap for each part that has fewer questions than requested."""
        sizes = Counter(_Part(suite, (suite, number) in self._heldout) for suite, number in self._requested_programs())
        for part, size in sorted(sizes.items()):
            missing = {
                cell: size * self._plan.per_type - self._per_part[part, cell]
                for cell in product(self._versions, self._plan.types)
            }
            if any(missing.values()):
                first = self._programs + part.is_heldout
                # a range, because `itertools.count` cannot be pickled in Python 3.14
                yield _Gap(part, range(first, sys.maxsize, 2 if self._options.heldout else 1), missing)

    def _requested_programs(self) -> Iterator[tuple[str, int]]:
        return product(self._suites, range(self._programs))

    def _write_file(self, path: Path, items: Sequence[CausimItem], about: Mapping[str, Any]) -> str:
        write_pool(path, items, name=path.name.partition(".")[0], metadata=dict(about))
        return f"{plural(len(items), 'instances')} written to {path}"

    def _shortfall(self) -> list[str]:
        """Return a line about versions with fewer questions than requested; empty if all have them."""
        requested = self._plan.per_type
        total = self._programs * len(self._suites) * len(self._versions) * len(self._plan.types)
        complete = sum(num_questions == requested for num_questions in self._per_program.values())
        if complete == total:
            return []
        missing = total * requested - self._per_program.total()
        line = (
            f"{total - complete} of {total} versions and types have fewer than"
            f" {plural(requested, 'questions')}: {missing} fewer"
        )
        if not self._options.fill:
            return [f"{line}; -o fill=true draws further programs for them"]
        remaining = sum(sum(gap.missing.values()) for gap in self._gaps())
        made_up = f"{missing - remaining} of them" if remaining else "them"
        return [f"{line}; {len(self._further_programs)} further programs have {made_up}"]


def _cell(item: CausimItem) -> Cell:
    return item.version, item.task.question.type


def _write_report(path: Path, drafts: Mapping[str, Tally], diversity: Mapping[str, Diversity]) -> str:
    """Write a JSON report: for each suite, drafts by version and outcome, and diversity."""
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


# --- Generation of pools of CauSim: suite by suite, or all questions about each of N programs -------------------------


class CausimSuites(Drawable[CausimItem]):
    """Implements Drawable (bench.core.capabilities)."""

    are_sequences = True  # a question about a built-in model depends on those before it, from which it differs

    @property
    def names(self) -> Sequence[str]:
        return (*TOPOLOGIES, *BUILT_IN)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[CausimItem]:
        """Return `count` items of each suite.

        A suite is a topology (programs of 2, 4, 6, 8, 10 nodes in turns, each with a question of every type) or a
        built-in model; a built-in model may have fewer than `count` different questions.
        """
        return tuple(item for name in suites for item in self.iterate_part(name, seed, range(count)))

    def iterate_part(self, suite: str, seed: int, indices: range) -> Iterator[CausimItem]:
        units = self.units(suite)
        items = built_in_items(seed, suite) if units is None else units.iterate(seed)
        return islice(items, indices.start, indices.stop)

    def units(self, suite: str, options: GeneratedItems | None = None) -> SuiteUnits[CausimItem] | None:
        """Return the programs of a topology; None for a built-in model."""
        if suite in BUILT_IN:
            return None
        options = options or GeneratedItems()
        plan, versions, vocabulary = question_plan(options), versions_of(options.versions), options.vocabulary
        size = len(plan.types) * plan.per_type

        def draw_program(seed: int, number: int) -> Iterator[CausimItem]:
            return items_of_turn(seed, suite, number, versions, plan, vocabulary or "nonsense")

        return SuiteUnits("programs", size, MAX_EMPTY, draw_program)


def draw_with_options(suite: str, seed: int, indices: range, options: GeneratedItems) -> Iterator[CausimItem]:
    """Yield the items of a suite with these indices, about generated programs or a built-in model."""
    units = SUITES.units(suite, options)
    if units is not None:
        return islice(units.iterate(seed), indices.start, indices.stop)
    plan, versions = question_plan(options), versions_of(options.versions)
    if options.vocabulary is not None or options.per_type is not None:
        raise refused_plan(ValueError(f"suite {suite}: vocabulary and each apply to generated programs"))
    if versions and (suite != NIHSS or min(versions) < 2):
        raise refused_plan(ValueError(f"suite {suite}: versions are those of nihss, from 2 on"))
    return islice(built_in_items(seed, suite, versions, plan), indices.start, indices.stop)


class CausimGenerator(SuiteGenerator):
    """Generation of CauSim; `-o programs=N` writes all questions about each of N programs."""

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


# --- Lines of worked solutions ----------------------------------------------------------------------------------------
LINE_RECORDS = {"training": (TrainingHeader, TrainingRecord)}


# --- Equivalent programs of a model, and programs over permuted values ------------------------------------------------
ASSIGNMENTS = ("fixed_exogenous", "do", "observed_endogenous")  # fields with values of nodes or noise
_BLANK = "\n\n\n"  # between functions

ValueMap = Mapping[str, Mapping[str, str]]


def split_program(program: str) -> list[str]:
    """Return the parts of a program: imports, one text per function, and the lines that run it."""
    return program.strip().split(_blank(program))


def _blank(program: str) -> str:
    """Return what stands between the functions of a program: published ones have one empty line there."""
    return _BLANK if _BLANK in program else "\n\n"


def equivalent_programs(program: str) -> list[str]:
    """Return other programs of the same model: one written as if-rules, one as tables."""
    model, same = load_source(program), meaning(program)
    bundles = [bundle_of(model), table_bundle_of(model)]
    texts = [module_text(bundle, comments=False) for bundle in bundles if bundle is not None]
    return [text for text in texts if text != program and meaning(text) == same]


def meaning(program: str) -> str:
    """Return a canonical text, equal for all programs of one model: the program written as if-rules."""
    return module_text(bundle_of(load_model(program)), comments=False)


def is_within_domains(record: Record) -> bool:
    """Return whether all values of the question are in the model's domains; equivalent programs differ on others."""
    domains = _domains(load_model(record["program"]))
    return all(
        loose_symbol(value) in domains[name] for field in ASSIGNMENTS for name, value in record.get(field, {}).items()
    )


def permuted_values(program: str, random: Random) -> dict[str, dict[str, str]]:
    """Return, for each node and noise variable with two values or more, a permutation without its fixed points."""
    moved = {name: permuted(domain, random) for name, domain in _domains(load_model(program)).items()}
    return {name: values for name, values in moved.items() if values}


def map_values(record: Record, values: ValueMap) -> dict[str, Any]:
    """Return a record with values replaced, its program written as if-rules; `ModelError` for unknown values."""
    model = load_model(record["program"])
    domains = _domains(model)
    for name, mapped in values.items():
        if not mapped.keys() <= set(domains.get(name, ())):
            raise ModelError(f"{name}: it lacks a value of the map")
    names = ModelNames(
        tuple(range(len(model))), {name: name for name in domains}, {name: values.get(name, {}) for name in domains}
    )
    program = module_text(bundle_of(rename_model(model, names)), comments=False)
    assignments = {field: map_assignment(record[field], values) for field in ASSIGNMENTS if field in record}
    sealed = {**record["sealed"], "world": map_assignment(record["sealed"]["world"], values)}
    return {**record, **assignments, "program": program, "sealed": sealed}


def map_assignment(assignment: Mapping[str, Any], values: ValueMap) -> dict[str, Any]:
    """Return an assignment of nodes and noise with its JSON values replaced; values outside the map stay."""
    new_values = {name: values.get(name, {}).get(loose_symbol(value)) for name, value in assignment.items()}
    return {
        name: value if (text := new_values[name]) is None else json.loads(text) for name, value in assignment.items()
    }


def _domains(model: Model) -> dict[str, tuple[str, ...]]:
    """Return the values of each node, and of each noise variable."""
    return {
        key: domain
        for node, local in zip(model.nodes, model.system, strict=True)
        for key, domain in ((node.name, local.domain), (node.noise, node.support))
    }


_SORTED = ("unknown_exogenous",)  # lists of names whose order carries no information
_TEXTS = (("code", "sentences"), ("prose", "sentences"), ("prose", "rules"))  # view and style of prose


class ProgramVariants(Variable):
    """A renamed node changes the names of its noise, function and local variables too.

    values: the program is written as if-rules, with the values of each node and noise variable permuted
    equivalent: another program of the same model; words: the program, or one of two styles of prose
    """

    kinds = ("rename", "columns", "values", "equivalent", "words")
    fixed = frozenset({"id", "labels", "type", "scenario", "scm_id", "topology", "view", "vocabulary"})
    worded_by = ("view", "prose")

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return _reorder(record, random)
        if kind == "rename":
            return self._rename(record, random)
        try:
            return _write_again(record, kind, random)
        except ModelError:  # a table that is too large
            return None

    def _rename(self, record: Record, random: Random) -> Variant | None:
        names = {
            old: new
            for node, new_node in permuted(_nodes(record), random).items()
            for old, new in zip(_tokens(node, record), _tokens(new_node, record), strict=True)
        }
        if not names:
            return None
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {key: sorted(renamed[key]) for key in _SORTED if key in renamed}, names)

    def normal_form(self, record: Record, kind: str) -> Any:
        program = str(record["program"])
        is_by_meaning = kind in ("values", "equivalent") and is_within_domains(record)
        return self.other_fields(record, kind, ("id", "program", "sealed")) | {
            "program": meaning(program) if is_by_meaning else sorted(split_program(program)),
            "world": record["sealed"].get("world"),
            **{key: sorted(record[key]) for key in _SORTED if key in record},
        }

    def map_record(self, record: Record, copy_map: CopyMap) -> dict[str, Any]:
        renamed: dict[str, Any] = rename_json(record, copy_map.names, self.fixed)
        return map_values(renamed, copy_map.values) if copy_map.values else renamed

    def map_answer(self, answer: Any, copy_map: CopyMap) -> Any:
        renamed = rename_json(answer, copy_map.names)
        return map_assignment(renamed, copy_map.values) if isinstance(renamed, Mapping) else renamed


def _reorder(record: Record, random: Random) -> Variant | None:
    """Return the program with its functions in another order, imports first and the run last."""
    program = str(record["program"])
    first, *others = split_program(program)
    functions = others[:-1]
    if len(functions) < 2 or not all(text.startswith("def ") for text in functions):
        return None
    parts = [first, *shuffled(functions, random), others[-1]]
    return Variant({**record, "program": _blank(program).join(parts) + "\n"})


def _write_again(record: Record, kind: str, random: Random) -> Variant | None:
    """Return a question shown in another form, over permuted values, or about an equivalent program; None without.

    Raises `ModelError` if a table is too large.
    """
    if kind == "words":
        return _rephrase(record, random)
    if not is_within_domains(record):
        return None
    if kind == "values":
        values = permuted_values(record["program"], random)
        return Variant(map_values(record, values), values=values) if values else None
    programs = equivalent_programs(record["program"])
    return Variant({**record, "program": random.choice(programs)}) if programs else None


def _rephrase(record: Record, random: Random) -> Variant:
    present = record.get("view", "code"), record.get("prose", "sentences")
    _ = prose(load_model(record["program"]))  # raises where prose cannot be written
    others = [text for text in _TEXTS if text != present and not text[0] == present[0] == "code"]
    return Variant({**record, **dict(zip(ProgramVariants.worded_by, random.choice(others), strict=True))})


def _nodes(record: Record) -> list[str]:
    """Return the nodes whose function has the usual name, in the order of the program."""
    starts = (text.partition("(")[0] for text in str(record["program"]).split("def ")[1:])
    return [name.removeprefix("f_") for name in starts if name.startswith("f_")]


def _tokens(node: str, record: Record) -> tuple[str, ...]:
    """Return the names that a program has for a node; `item_` begins the local ones of NIHSS."""
    local = ("item_" + node,) if "item_" in str(record["program"]) else ()
    return node, f"U_{node}", f"f_{node}", node.lower(), f"u_{node.lower()}", *local


VARIANTS = ProgramVariants()
