"""Pools of all questions about generated programs: drawn program by program, held-out ones in a file of their own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.causim.options import GeneratedItems
from calibrant.bench.causim.programs.plans import ALL_VERSIONS, question_plan, versions_of
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.item_options import ItemOptions
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import Failure
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.causim.generation import Diversity, Tally, grow
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.records import write_pool
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causim.generation import Cell, further_items, heldout_numbers, program_id, version_items

HELDOUT = "heldout_{}"


class _Part(NamedTuple):
    """The programs of a topology in one of the two files."""

    topology: str
    is_heldout: bool


class _DrawnItems(NamedTuple):
    """Items about a program or several, the outcomes of its drafts, and its part of a report."""

    items: Sequence[CausimItem]
    drafts: Tally
    diversity: Diversity


class _Gap(NamedTuple):
    """Missing questions of a part by cell; numbers: of further programs, disjoint between the parts of a topology."""

    part: _Part
    numbers: count[int]
    missing: Mapping[Cell, int]


def _draw_program(seed: int, options: GeneratedItems, with_report: bool, place: tuple[str, int]) -> _DrawnItems:
    """Draw a program and its items; with_report: also its motifs and tables."""
    tally, diversity = Tally(), Diversity()
    plan, versions = question_plan(options), versions_of(options.versions) or ALL_VERSIONS
    vocabulary = options.vocabulary or "nonsense"
    topology, scm_id = place[0], program_id(*place)
    grown = grow(seed, scm_id, topology, max(versions), vocabulary=vocabulary, tally=tally)
    chosen = [grown[v - 1] for v in versions]
    items = tuple(item for version in chosen for item in version_items(seed, scm_id, version, plan, vocabulary))
    if with_report:
        for version in chosen:
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
        # of the requested programs, by program and cell; of all, by part and cell
        self._of_programs: Counter[tuple[str, Cell]] = Counter()
        self._of_parts: Counter[tuple[_Part, Cell]] = Counter()
        self._drafts = {suite: Tally() for suite in suites}
        self._diversity = {suite: Diversity() for suite in suites}
        self._further: set[str] = set()

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
        places = list(self._places())
        work = partial(_draw_program, request.seed, self._options, request.report is not None)
        for i, (number, result) in enumerate(as_completed(work, dict(enumerate(places)), request.execution)):
            place = places[number]
            if isinstance(result, Failure):
                raise CalibrantError(f"program {program_id(*place)}: {result.error}")
            self._add(buffers, number, _Part(place[0], place in self._heldout), result)
            for item in result.items:
                self._of_programs[item.scm, _cell(item)] += 1
            request.progress(request.out.name, i + 1, len(places))

    def _draw_further(self, buffers: Sequence[SpillBuffer[CausimItem]]) -> None:
        """Draw questions about further programs where a part lacks some."""
        gaps = list(self._gaps())
        work = partial(_fill, self._request.seed, self._options)
        num_programs = self._programs * len(self._suites)
        for i, (number, result) in enumerate(as_completed(work, dict(enumerate(gaps)), self._request.execution)):
            self._request.progress(self._request.out.name, num_programs + i + 1, num_programs + len(gaps))
            part = gaps[number].part
            if isinstance(result, Failure):
                raise CalibrantError(f"further programs of {part.topology}: {result.error}")
            self._add(buffers, num_programs + number, part, result)
            self._further |= {item.scm for item in result.items}

    def _add(self, buffers: Sequence[SpillBuffer[CausimItem]], number: int, part: _Part, result: _DrawnItems) -> None:
        for place, item in enumerate(result.items):
            buffers[part.is_heldout].add((number, place), item)
            self._of_parts[part, _cell(item)] += 1
        self._drafts[part.topology].add(result.drafts)
        self._diversity[part.topology].add(result.diversity)

    def _gaps(self) -> Iterator[_Gap]:
        """Yield the parts that have fewer questions than requested."""
        sizes = Counter(_Part(suite, (suite, number) in self._heldout) for suite, number in self._places())
        for part, size in sorted(sizes.items()):
            missing = {
                cell: size * self._plan.per_type - self._of_parts[part, cell]
                for cell in product(self._versions, self._plan.types)
            }
            if any(missing.values()):
                first = self._programs + part.is_heldout
                yield _Gap(part, count(first, 2 if self._options.heldout else 1), missing)

    def _places(self) -> Iterator[tuple[str, int]]:
        return product(self._suites, range(self._programs))

    def _write_file(self, path: Path, items: Sequence[CausimItem], about: Mapping[str, Any]) -> str:
        write_pool(path, items, name=path.name.partition(".")[0], metadata=dict(about))
        return f"{len(items)} instances written to {path}"

    def _shortfall(self) -> list[str]:
        """Return a line about versions with fewer questions than requested; none if there are none."""
        requested = self._plan.per_type
        total = self._programs * len(self._suites) * len(self._versions) * len(self._plan.types)
        complete = sum(number == requested for number in self._of_programs.values())
        if complete == total:
            return []
        missing = total * requested - self._of_programs.total()
        line = (
            f"{total - complete} of {total} versions and types have fewer than {requested} questions: {missing} fewer"
        )
        if not self._options.fill:
            return [f"{line}; -o fill=true draws further programs for them"]
        remaining = sum(sum(gap.missing.values()) for gap in self._gaps())
        number = f"{missing - remaining} of them" if remaining else "them"
        return [f"{line}; {len(self._further)} further programs have {number}"]


def _cell(item: CausimItem) -> Cell:
    return item.version, item.task.question.type


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
