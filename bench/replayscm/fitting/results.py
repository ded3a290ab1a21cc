"""Results of a fit: claims as certificates, pages, and fronts drawn with the rows that they get wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from calibrant.audits.claims import Certificate, ClaimKind, NotExaminedError, Refused, Verifier, certify, verify
from calibrant.audits.replayscm.certificates.certificate import FORMAT as COUNT_FORMAT
from calibrant.audits.replayscm.fits import formulas, networks
from calibrant.audits.replayscm.fits.catalogue import NUM_COLUMNS
from calibrant.audits.replayscm.fits.evidence import ReadingRecord, TableEvidence
from calibrant.audits.replayscm.fits.formulas import MAX_SCM_COLUMNS
from calibrant.audits.replayscm.why.parts import Decider, ReplayWhy, target_title, title
from calibrant.bench.core.capabilities import Suggestion
from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.page import design_page, html_page
from calibrant.bench.replayscm.fitting.columns import GAP, quote_name
from calibrant.bench.replayscm.fitting.fronts import (
    MEASURE_NAMES,
    ScmFront,
    TargetFront,
    plain_first,
    size_entry,
    size_text,
)
from calibrant.bench.replayscm.fitting.reading import options_of_record, read_with
from calibrant.bench.replayscm.fitting.table import ITEM, Table, handle_gaps
from calibrant.bench.report.tidy import Framed
from calibrant.bench.terminal import NextCommand, command_without_option, invocation
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural
from calibrant.solvers.formulas.fronts import BoolArray, Counting, FrontFunction, FrontPoint
from calibrant.solvers.formulas.least_formulas import Tree, infix_text
from calibrant.solvers.outcome import Impossible

if TYPE_CHECKING:
    from calibrant.bench.pools.capabilities import CertificateCheck

# Claims about fits of tables, and their verifiers: no solver, and no word of the certificate is taken on trust
VERIFIERS: Mapping[str, Verifier] = {
    "front": ClaimKind(formulas.FrontData, formulas.front_words, formulas.check_front),
    "gap-functions": ClaimKind(formulas.CompletionData, formulas.completion_words, formulas.check_completions),
    "gap-scms": ClaimKind(formulas.ScmCompletionData, formulas.scm_completion_words, formulas.check_scm_completions),
    "scm-front": ClaimKind(formulas.ScmFrontData, formulas.scm_front_words, formulas.check_scm_front),
    "network-optimum": ClaimKind(networks.NetworkOptimumData, networks.optimum_words, networks.check_optimum),
    "network-score": ClaimKind(networks.NetworkScoreData, networks.network_score_words, networks.check_network_score),
    "class-size": ClaimKind(networks.ClassSizeData, networks.class_words, networks.check_class),
}

# --- Certificates of fits of tables: their claims as data, the files, and the check against the table -----------------
MAX_STEM_CHARS = 60
MAX_POINTS = 8  # in a line


class Claim(NamedTuple):
    """A claim about a table. subject: column that it is about, empty for the whole table; data: without the reading."""

    name: str
    subject: str
    data: Mapping[str, Any]


class Unclaimed(NamedTuple):
    """A result without a certificate, and the reason."""

    subject: str
    reason: str


def measured_lines(target: str | None, fronts: Sequence[TargetFront | ScmFront]) -> list[str]:
    """Return the least formula of a target in products or sums, where its front by them reaches no errors."""
    for front in fronts if target is not None else ():
        if isinstance(front, TargetFront) and front.measure in ("sop", "pos"):
            for point in front.front.points:
                if not point.errors:
                    size = f"size {size_text(point.size)} ({MEASURE_NAMES[front.measure]}), proven least"
                    return [f"{quote_name(front.target)} = {infix_text(plain_first(point), front.names)}", size]
    return []


def front_claims(fronts: Iterable[TargetFront | ScmFront], num_columns: int) -> Iterator[Claim | Unclaimed]:
    """Yield the claims of fronts on a table of so many columns."""
    for front in fronts:
        if isinstance(front, TargetFront):
            yield front_claim(front, "sure")
        else:
            yield _scm_front_claim(front, num_columns)


def too_wide(max_parents: int, num_columns: int) -> str:
    if min(max_parents, num_columns) <= NUM_COLUMNS:
        return ""
    return f"formulas of more than {NUM_COLUMNS} columns are not recounted: --max-parents {NUM_COLUMNS}"


def front_claim(front: TargetFront, counting: Counting) -> Claim | Unclaimed:
    reason = too_wide(front.max_parents, len(front.columns))
    if reason:
        return Unclaimed(f"front of {front.target}", reason)
    data = {
        "target": front.target,
        "measure": front.measure,
        "max_parents": min(front.max_parents, NUM_COLUMNS),
        "max_errors": front.max_errors,
        "counting": counting,
        "points": [_claimed_point(point) for point in front.front.points],
    }
    return Claim("front", front.target if counting == "sure" else f"{front.target}-{counting}", data)


def _claimed_point(point: FrontPoint) -> dict[str, Any]:
    return {
        "errors": point.errors,
        "size": size_entry(point.size),
        "formulas": point.num_formulas,
        "functions": len(point.functions),
        "formula": _as_lists(plain_first(point)),
    }


def _as_lists(tree: Tree) -> Any:
    return [_as_lists(part) for part in tree] if isinstance(tree, tuple) else tree


def _scm_front_claim(front: ScmFront, num_columns: int) -> Claim | Unclaimed:
    num_inner = num_columns - len(front.roots)
    if front.measure in ("sop", "pos"):
        return Unclaimed("front of SCMs", "sizes in products and literals are not recounted: --operators all")
    if num_inner > MAX_SCM_COLUMNS:
        reason = (
            f"{plural(num_inner, 'columns')} are no roots; up to {MAX_SCM_COLUMNS} are recounted: name more (--roots)"
        )
        return Unclaimed("front of SCMs", reason)
    data = {
        "roots": list(front.roots),
        "measure": front.measure,
        "max_parents": front.max_parents,
        "max_errors": front.max_errors,
        "points": [list(point) for point in front.points],
    }
    return Claim("scm-front", "", data)


# --- Files ------------------------------------------------------------------------------------------------------------


def write_claims(table: Table, claims: Iterable[Claim | Unclaimed], folder: Path) -> Iterator[str]:
    """Write a certificate of each claim; yields a line for what has none, and a last one with the command to check."""
    from calibrant.bench.pools.findings_audit import ClaimFile

    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for claim in claims:
        if isinstance(claim, Unclaimed):
            yield f"no certificate of {claim.subject}: {claim.reason}"
            continue
        path = folder / f"{_stem(claim, [path.stem for path in paths])}.json"
        content = ClaimFile(table.source, certificate_of(table, claim))
        write_atomically(path, msgspec.json.encode(content).decode() + "\n")
        paths.append(path)
    yield f"{plural(len(paths), 'certificates')} written to {folder}"


def claim_files(folder: Path) -> list[Path]:
    """Return the certificates of claims about tables in a folder."""
    names = tuple(f"{name}-" for name in VERIFIERS)
    return sorted(path for path in folder.glob("*.json") if f"{path.stem}-".startswith(names))


def certificate_of(table: Table, claim: Claim) -> Certificate:
    """Return the certificate of a claim about a table."""
    assert table.reading is not None  # a PLA file has no claims
    data = {"reading": msgspec.to_builtins(table.reading), **claim.data}
    evidence = table.evidence
    certificate = certify(claim.name, "", evidence, data)
    return msgspec.structs.replace(certificate, in_words=VERIFIERS[claim.name].in_words(evidence, certificate))  # type: ignore[attr-defined]


def _stem(claim: Claim, before: Sequence[str]) -> str:
    """Return a name that no earlier certificate has; of a column its letters and digits."""
    subject = re.sub(r"[^A-Za-z0-9]+", "-", claim.subject).strip("-")
    base = f"{claim.name}-{subject}"[:MAX_STEM_CHARS] if claim.subject else claim.name
    stem, number = base, 2
    while stem.lower() in [earlier.lower() for earlier in before]:
        stem, number = f"{base}-{number}", number + 1
    return stem


def check_against(table: Path) -> CertificateCheck:
    """Return the check of one certificate against a table, which is read as the certificate states."""
    read: dict[bytes, TableEvidence] = {}

    def check(content: Mapping[str, object]) -> tuple[bool, str]:
        if content.get("format") == COUNT_FORMAT:
            raise NotExaminedError("it is a count of SCMs, about the pool that --out wrote: give that pool")
        if content.keys() != {"instance", "certificate"}:
            return False, "not an object with the keys instance and certificate"
        if not isinstance(content["instance"], str):
            return False, "instance is no text, the name of a table"
        try:
            certificate = msgspec.convert(content["certificate"], Certificate, strict=True)
            record = msgspec.convert(certificate.data.get("reading"), ReadingRecord, strict=True)
        except (msgspec.ValidationError, ValueError) as error:
            return False, str(error)
        key = msgspec.json.encode(record)
        if key not in read:
            try:
                rows = handle_gaps(read_with(table, options_of_record(record), record.purpose), record.gaps)
            except CalibrantError as error:
                raise Refused(f"the table cannot be read as it states: {error}") from None
            if rows.reading is None:
                raise Refused("a PLA file has no certificates")
            read[key] = rows.evidence
        verdict = verify(certificate, read[key], VERIFIERS)
        return verdict.holds, verdict.reason or f"{certificate.claim}: {figures(certificate)}; {verdict.in_words}"

    return check


def figures(certificate: Certificate) -> str:
    """Return the figures of a claim that holds."""
    data = certificate.data
    if "points" in data:
        points = [(p["errors"], p["size"]) if isinstance(p, dict) else (p[0], p[1]) for p in data["points"]]
        return ", ".join(f"{plural(e, 'errors')} at size {_size_text(s)}" for e, s in points[:MAX_POINTS]) + (
            f" and {len(points) - MAX_POINTS} more" if len(points) > MAX_POINTS else ""
        )
    if "joint" in data:
        joint = " to ".join(f"{number:,}" for number in sorted(set(data["joint"])))
        return f"{data['must']:,} must fit, {joint} fit under one completion, {data['local']:,} each by itself"
    if "may" in data:
        return f"{data['may']:,} may fit, {data['must']:,} must"
    if "members" in data:
        return plural(data["members"], "networks")
    number = data.get("optimal_networks")
    return f"{data['best_score']:.6f}" + ("" if number is None else f", {plural(number, 'networks')}")


def _size_text(size: int | Sequence[int]) -> str:
    return str(size) if isinstance(size, int) else "+".join(map(str, size))


# --- Results of a fit whose table is no item: a page and certificates, but no pool and no picture ---------------------
MAX_LINES = 200  # of a table of a page
WRITTEN = ("--html", "--svg", "--out", "--certificates", "--export")  # options that name files: not for a second time


class Section(NamedTuple):
    """A section of a page: notes and a table, or markup in place of both. numeric, code: columns of these."""

    title: str
    notes: Sequence[str] = ()
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    numeric: Sequence[int] = ()
    code: Sequence[int] = ()
    num_more: int = 0
    markup: Markup = Markup()


class FitWithoutItem(Framed):
    """Result of a fit whose table is no item: it has lines, a page, and claims where there are any."""

    table: Table

    @property
    def why_no_item(self) -> str:
        """Why the table is no item, for who asks for what is of items."""
        raise NotImplementedError

    @property
    def claims(self) -> Iterable[Claim | Unclaimed]:
        """Claims that a third party can check against the table."""
        return ()

    @property
    def has_page(self) -> bool:
        """True."""
        return True

    @property
    def needed_parents(self) -> int | None:
        """None: there is no larger number of parents to advise."""
        return None

    @property
    def reasons(self) -> Sequence[tuple[str, str]]:
        """The result in a few sentences, each with the formula that it begins with, if it does with one."""
        raise NotImplementedError

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Options that go on."""
        raise NotImplementedError

    def sections(self) -> Iterator[Section]:
        """Yield the sections of the page."""
        raise NotImplementedError

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: everything."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the text of the terminal."""
        return "\n".join(self.lines())

    def write(
        self,
        name: str,
        *,
        html: Path | None = None,
        steps: Path | None = None,
        svg: Path | None = None,
        out: Path | None = None,
        certificates: Path | None = None,
    ) -> Iterator[str]:
        """Write a page and certificates, as far as asked for; refuse pools, pictures and steps, which are of items."""
        claims = list(self.claims)
        paths = {"--steps": steps, "--svg": svg, "--out": out, "--certificates": None if claims else certificates}
        options = [option for option, path in paths.items() if path is not None]
        if options:
            raise CalibrantError(f"{name}, {', '.join(options)}: {self.why_no_item}")
        if html is not None:
            write_atomically(html, self._page(name))
            yield f"page written to {html}"
        if certificates is not None:
            yield from write_claims(self.table, claims, certificates)

    def _page(self, name: str) -> str:
        again = command_without_option(*WRITTEN) if invocation.get() else ()
        content = {
            "title": name,
            "crumbs": ["fit", name],
            "reasons": self.reasons,
            "reading": [] if self.table.outputs else list(self.table.reading_lines(every=True)),
            "sections": list(self.sections()),
            "following": [
                (NextCommand((*again, *added), purpose).line, purpose) for added, purpose in self.suggestions if again
            ],
        }
        return design_page("why/fit.html", content)


# --- Part of a page: errors against size of one target, its formulas, and the rows that they get wrong ----------------
MAX_ROWS = 200  # that are listed if no formula gets them wrong
MAX_MARKED_ROWS = 2_000
WIDTH, HEIGHT, LEFT, TOP, RIGHT, FOOT = 560.0, 260.0, 64.0, 12.0, 16.0, 44.0


class Wording(NamedTuple):
    """Words of a front. counting: how rows with gaps count; noun: what is counted; mark: of a row so counted."""

    counting: Counting
    heading: str
    noun: str
    mark: str


ERRORS = Wording("sure", "{}: errors against size", "errors", "wrong")
SURE = Wording("sure", "{}: rows that no completion puts right", "rows that no completion puts right", "wrong")
POSSIBLE = Wording(
    "possible", "{}: rows that some completion puts wrong", "rows that some completion puts wrong", "maybe wrong"
)


def front_section(front: TargetFront, table: Table, number: int, wording: Wording = ERRORS) -> Markup:
    """Return the front as a step plot, a table of its points with their formulas, and the rows of the table.

    number: of the section in its page, for ids
    """
    points = [_point(front, f"point-{number}-{k}", point) for k, point in enumerate(front.front.points)]
    content = {
        "target": front.target,
        "number": number,
        "heading": wording.heading.format(front.target),
        "noun": wording.noun,
        "claim": next(front.lines()),
        "chart": Markup(_chart(front, number)) if points else "",
        "points": points,
        "open": next(front.open_lines(), ""),
        "open_points": [
            {"errors": p.errors, "size": size_text(p.size), "first": infix_text(plain_first(p), front.names)}
            for p in front.front.open_points
        ],
        "decided": points[-1] if points else None,
        "rows": _rows(front, table, wording) if points else "",
    }
    return Markup(html_page("why/front.html", content))


def drawn_fronts(fronts: Iterable[TargetFront | ScmFront]) -> list[TargetFront]:
    """Return the fronts that are drawn: of one column, with points."""
    return [front for front in fronts if isinstance(front, TargetFront) and front.front.points]


def front_sections(fronts: Iterable[TargetFront | ScmFront], table: Table) -> Markup:
    """Return the sections of the fronts that are drawn."""
    return Markup("\n").join(front_section(front, table, k) for k, front in enumerate(drawn_fronts(fronts)))


def state_unwritten(kinds: Mapping[str, Path | None], outcome: object, *, fits: bool) -> Iterator[str]:
    """Yield a line on files that are asked for and not written, with the reason; nothing where all are."""
    names = [name for name, path in kinds.items() if path is not None]
    undecided = "what else fits was not counted" if fits else "it is not decided what fits"
    if names:
        reason = "nothing fits" if isinstance(outcome, Impossible) else undecided
        yield f"no {' and no '.join(names)} written: {reason}"


def _point(front: TargetFront, anchor: str, point: FrontPoint) -> dict[str, Any]:
    texts = [infix_text(tree, front.names) for _, tree in point.formulas(front.ties)]
    return {
        "id": anchor,
        "errors": point.errors,
        "size": size_text(point.size),
        "formulas": point.num_formulas,
        "functions": len(point.functions),
        "ties": f"{plural(point.num_formulas, 'formulas')} of {plural(len(point.functions), 'functions')}",
        "first": infix_text(plain_first(point), front.names),
        "listed": texts,
    }


def _chart(front: TargetFront, number: int) -> str:
    """Return the step plot: sizes across, errors up; each point leads to its formulas."""
    points = front.front.points
    across = [p.size[0] if isinstance(p.size, tuple) else p.size for p in points]
    x = Scale(0, max(across) + 1, LEFT, WIDTH - RIGHT, whole=True)
    y = Scale(0, max(p.errors for p in points) or 1, HEIGHT - FOOT, TOP, whole=True)
    marks = [*side_axis(y.ticks(), LEFT, WIDTH - RIGHT)]
    marks += foot_axis([tick for tick in x.ticks(8) if tick[1].isdigit()], HEIGHT - FOOT)
    marks.append(text_at("size", (LEFT + WIDTH) / 2, HEIGHT - 8, "soft", "middle"))
    marks.append(text_at("errors", 4, TOP + 4, "soft"))
    ends = [*across[1:], x.high]
    corners = [(x.at(size), y.at(p.errors)) for p, *sizes in zip(points, across, ends, strict=True) for size in sizes]
    path = " ".join(f"{across_pixel:.1f},{up_pixel:.1f}" for across_pixel, up_pixel in corners)
    marks.append(f'<polyline class="path" style="stroke:var(--link)" points="{path}"/>')
    for k, (point, size) in enumerate(zip(points, across, strict=True)):
        label = f"{plural(point.errors, 'errors')} at size {size_text(point.size)}"
        circle = f'<circle cx="{x.at(size):.1f}" cy="{y.at(point.errors):.1f}" r="5" style="fill:var(--link)"/>'
        marks.append(f'<a href="#point-{number}-{k}" aria-label="{label}"><title>{label}</title>{circle}</a>')
    last = points[-1]
    label = f"Least errors by size: from {points[0].errors} down to {last.errors} at size {size_text(last.size)}"
    return figure(WIDTH, HEIGHT, label, marks).replace('role="img"', 'role="group"')


def _rows(front: TargetFront, table: Table, wording: Wording) -> Markup:
    """Return the rows, marked where the formula of fewest errors is wrong, rows contradict, or a cell is a gap."""
    position = table.position(front.target)
    target = table.codes[:, position]
    counting = (target != GAP) & ~table.is_set(position)
    others = [k for k in range(len(table.names)) if k != position]
    best = front.front.points[-1]
    tree = plain_first(best)
    function = next(f for f in best.functions if any(tree == listed for _, listed in f.formulas))
    codes = table.codes[:, others]
    can_be_one, can_be_zero = _possible_values(function, codes)
    if wording.counting == "possible":
        is_wrong = counting & np.where(target == 1, can_be_zero, can_be_one)
    else:
        is_wrong = counting & ~np.where(target == 1, can_be_one, can_be_zero)
    _, groups = np.unique(codes, axis=0, return_inverse=True)
    groups = groups.ravel()
    counting = counting & (codes != GAP).all(axis=1)
    groups_by_value = [groups[counting & (target == value)] for value in (0, 1)]
    in_clash = counting & np.isin(groups, groups_by_value[0]) & np.isin(groups, groups_by_value[1])
    marks = {wording.mark: is_wrong, "contradicts another row": in_clash, "gap": (table.codes == GAP).any(axis=1)}
    note = f"{plural(int(table.counts[is_wrong].sum()), 'rows')} {wording.mark} under this formula"
    heading = f"Rows of the table, {wording.heading.format(front.target)}"
    return rows_section(table, [*others, position], marks, note, heading)


def _possible_values(function: FrontFunction, codes: npt.NDArray[np.int16]) -> tuple[BoolArray, BoolArray]:
    """Return in which patterns some completion of the gaps gives the function the value 1, and 0."""
    values = np.zeros((2, len(codes)), np.bool_)
    for row in range(1 << len(function.columns)):
        bits = [row >> k & 1 for k in range(len(function.columns))]
        chosen = codes[:, list(function.columns)]
        values[function.bits >> row & 1] |= ((chosen == GAP) | (chosen == bits)).all(axis=1)
    return values[1], values[0]


def rows_section(
    table: Table,
    order: Sequence[int],
    marks: Mapping[str, BoolArray],
    note: str,
    heading: str = "Rows of the table",
) -> Markup:
    """Return the first rows and every marked one, in the user's words.

    order: positions of columns; marks: word -> patterns that have it, the first of which are drawn marked
    """
    first = next(iter(marks))
    is_marked = np.logical_or.reduce(list(marks.values()))
    rows: list[dict[str, Any]] = []
    num_plain = num_marked = 0
    for row, pattern in enumerate(table.pattern_of_row.tolist()):
        num_marked += bool(is_marked[pattern])
        num_plain += not is_marked[pattern]
        is_listed = num_marked <= MAX_MARKED_ROWS if is_marked[pattern] else num_plain <= MAX_ROWS
        if is_listed:
            words = [table.used[k].word(int(code)) if (code := table.codes[pattern, k]) != GAP else "?" for k in order]
            stated = ", ".join(mark for mark, patterns in marks.items() if patterns[pattern])
            rows.append({"line": int(table.lines[row]), "cells": words, "marks": stated,
                         "is_wrong": bool(marks[first][pattern])})  # fmt: skip
    content = {
        "heading": heading,
        "note": f"{note}; the first {MAX_ROWS} rows are listed, and every one that is marked, to {MAX_MARKED_ROWS:,}.",
        "columns": [table.names[k] for k in order],
        "rows": rows,
    }
    return Markup(html_page("why/table_rows.html", content))


NOTES_HERE = "<!-- how the table was read -->"


def table_page(
    table: Table, target: str | None, answer: Sequence[str], why: ReplayWhy | None, name: str, sections: Markup
) -> str:
    """Return the page of a fit: its answer, how the table was read, fronts, and what else fits."""
    from calibrant.bench.pages.why import why_page
    from calibrant.bench.replayscm.why.page import body

    lines = table.reading_lines(every=True, target=target)
    formulas = [line for line in answer if " = " in line]
    notes = Markup('<pre tabindex="0">{}</pre>\n').format("\n".join(formulas)) if formulas else Markup()
    for look, texts in (("reason", [line for line in answer if line not in formulas]), ("callout", lines)):
        notes += Markup().join(Markup('<p class="{}">{}</p>\n').format(look, text) for text in texts)
    notes += sections
    if why is None:
        title = f"Which formulas of {target} fit, with how many errors?" if target else name
        content = {"title": title, "crumbs": ["fit", name], "item": ITEM}
        return design_page("why/why.html", content | {"body": Markup("<h1>{}</h1>\n").format(title) + notes})
    whole = why_page(why, body(why, "why", notes=Markup(NOTES_HERE), words=table.naming.values), "fit", name)
    return table.naming.markup(table.naming.with_values(whole, escape)).replace(NOTES_HERE, notes)


def page_in_steps(table: Table, target: str | None, why: ReplayWhy | None, name: str) -> str:
    """Return the page of a fit in steps; `CalibrantError` where what else fits was not counted."""
    from calibrant.bench.pages.why import steps_page
    from calibrant.bench.replayscm.why.explainer import lesson

    if why is None:
        raise CalibrantError("--steps: what else fits was not counted here; --html has what is known")
    read = tuple(table.reading_lines(every=True, target=target))
    page = steps_page([replace(lesson(why), item=target or name, intro=read)], "fit", name)
    return table.naming.markup(page)


def why_of_table(why: ReplayWhy, table: Table, target: str | None) -> ReplayWhy:
    """Return the reason with a title for the table, its columns in order, and lines to add that would decide it.

    target: the column to explain, which comes last; None if all are
    """
    evidence = why.evidence
    legal = None if target is None else table.naming.to_legal(target)
    names = (*(name for name in table.legal_names if name != legal), *([] if legal is None else [legal]))
    indices = [evidence.variables.index(name) for name in names]
    worlds = tuple(
        msgspec.structs.replace(world, rows=tuple("".join(row[k] for k in indices) for row in world.rows))
        for world in evidence.worlds
    )
    deciders = tuple(_with_line(decider, table) for decider in why.deciders)
    return msgspec.structs.replace(
        why,
        title=title(table.source, why.state) if legal is None else target_title(legal, why.state),
        evidence=msgspec.structs.replace(evidence, variables=names, worlds=worlds),
        deciders=deciders,
    )


def _with_line(decider: Decider, table: Table) -> Decider:
    """Return a deciding world of one row, with the line that a user would add to the table for it."""
    naming = table.naming
    set_names = list(map(naming.to_raw, decider.world.get("constants", ())))
    line, hint = table.row_line(decider.world["rows"][0], set_names)
    return msgspec.structs.replace(decider, table_line=line, table_hint=hint)
