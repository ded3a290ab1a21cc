"""Smallest formulas of truth tables: outputs of PLA files, and tables of qualitative comparative analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from markupsafe import Markup

from calibrant.bench.core.capabilities import Steps, Suggestion
from calibrant.bench.replayscm.fitting import fronts
from calibrant.bench.replayscm.fitting.columns import quote_name
from calibrant.bench.replayscm.fitting.results import MAX_LINES, FitWithoutItem, Section, rows_section
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.text import known_names, plural
from calibrant.solvers.formulas import truth_tables
from calibrant.solvers.formulas.fronts import Patterns
from calibrant.solvers.formulas.least_formulas import MEASURES, NUM_VARS, Tree, infix_text
from calibrant.solvers.formulas.minimal_sums import MAX_VARS, greedy_size

FORMULAS_SHOWN = 12  # largest number of formulas that are printed without --verbose
NO_ITEM = "a truth table {} is no item; leave the option out"
AS_CSV = "formulas of a PLA file make no item; write its rows as CSV and fit --target {}"


def forms_entries(forms: truth_tables.LeastForms) -> dict[str, Any]:
    """Return the smallest formulas of a truth table for JSON."""
    size = None if forms.size is None else fronts.size_entry(forms.size)
    entries: dict[str, Any] = {"size": size, "formulas": forms.num_formulas, "functions": forms.num_functions}
    entries["listed"] = [text for text, _ in forms.formulas]
    if not forms.is_proven:
        entries["at_least"] = fronts.size_entry(forms.at_least)
    return entries


def _proof_of(forms: truth_tables.LeastForms) -> str:
    return "proven least" if forms.is_proven else f"best known, at least {fronts.size_text(forms.at_least)}"


def _plain_first(forms: truth_tables.LeastForms) -> list[tuple[str, Tree]]:
    """Return the formulas, those without xor and iff first."""
    return sorted(forms.formulas, key=lambda pair: ("(xor " in pair[0] or "(iff " in pair[0], pair[0]))


def _forms_lines(forms: truth_tables.LeastForms, names: list[str], *, every: bool) -> Iterator[str]:
    """Yield the size with its proof, and the formulas."""
    if forms.size is None:
        yield f"  no formula within the budget; at least size {fronts.size_text(forms.at_least)}"
        return
    size = fronts.size_text(forms.size)
    number = "ties not counted"
    if forms.num_formulas is not None and forms.num_functions is not None:
        number = f"{plural(forms.num_formulas, 'formulas')} of {plural(forms.num_functions, 'functions')}"
    yield f"  size {size} ({fronts.MEASURE_NAMES[forms.measure]}), {_proof_of(forms)}; {number}"
    formulas = _plain_first(forms)
    listed = formulas if every else formulas[:FORMULAS_SHOWN]
    for _, tree in listed:
        yield f"  {infix_text(tree, names)}"
    if (forms.num_formulas or 0) > len(listed):
        yield f"  {len(listed)} of {forms.num_formulas:,} listed (--verbose, --ties)"


@dataclass(frozen=True)
class OutputForms:
    """Smallest formulas of one output over the inputs of a truth table.

    ones, zeros: number of rows with this value; the other rows are free
    forms: the formulas by each measure of size, those by the requested measure first
    """

    name: str
    inputs: tuple[str, ...]
    ones: int
    zeros: int
    forms: tuple[truth_tables.LeastForms, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the formulas for JSON, with the numbers of rows."""
        return {"ones": self.ones, "zeros": self.zeros, **{f.measure: forms_entries(f) for f in self.forms}}

    @property
    def reason(self) -> tuple[str, str]:
        """Return the first of the smallest formulas and its proof; an empty text and why if there is no formula."""
        if not self.forms[0].formulas:
            return "", f"No formula of {self.name} within the budget."
        return f"{self.name} = {self._infix(_plain_first(self.forms[0])[0][1])}", f"({_proof_of(self.forms[0])})"

    def _infix(self, tree: Tree) -> str:
        return infix_text(tree, list(map(quote_name, self.inputs)))

    def sections(self) -> Iterator[Section]:
        """Yield a section with the smallest formulas for each measure of size."""
        for forms in self.forms:
            if forms.size is None:
                notes = [f"no formula within the budget; at least size {fronts.size_text(forms.at_least)}"]
                yield Section(f"{self.name}: {fronts.MEASURE_NAMES[forms.measure]}", notes)
                continue
            numbers = "ties not counted" if forms.num_formulas is None else plural(forms.num_formulas, "formulas")
            notes = [next(self.lines()), f"size {fronts.size_text(forms.size)}, {_proof_of(forms)}; {numbers}"]
            lines = [[self._infix(tree)] for _, tree in _plain_first(forms)]
            title = f"{self.name}: {fronts.MEASURE_NAMES[forms.measure]}"
            yield Section(title, notes, ("formula",), lines, (), (0,), (forms.num_formulas or 0) - len(lines))

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the numbers of rows by value, then the smallest formulas.

        every: whether all formulas are given, not only FORMULAS_SHOWN
        """
        num_rows = 1 << len(self.inputs)
        free = num_rows - self.ones - self.zeros
        values = f"{self.ones:,} of {plural(num_rows, 'rows')} are 1, {self.zeros:,} are 0, {free:,} are free"
        yield f"{self.name}, a function of {', '.join(map(quote_name, self.inputs))}: {values}"
        yield from _forms_lines(self.forms[0], list(map(quote_name, self.inputs)), every=every)


@dataclass(frozen=True)
class ConfigurationTable:
    """Truth table of qualitative comparative analysis on crisp sets, for sufficiency.

    codes: for each row 1, 0, or ? for a remainder; bit i of the row's index is the value of condition i
    words: texts of 0 and of 1, for each condition and, last, for the target
    cases: number of cases below which a row is a remainder; consistency: smallest share of ones of a row with code 1
    open_forms, zero_forms: smallest sums of products with remainders free (parsimonious) and as 0 (conservative)
    """

    target: str
    conditions: tuple[str, ...]
    patterns: Patterns
    consistency: Fraction
    cases: int
    codes: str
    words: Sequence[tuple[str, str]]
    open_forms: truth_tables.LeastForms
    zero_forms: truth_tables.LeastForms

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis for JSON; measures are consistency and coverage over all rows."""
        entries: dict[str, Any] = {"target": self.target, "conditions": list(self.conditions), "codes": self.codes}
        entries["class"] = "sums of products of the conditions"
        for name, forms in (("open", self.open_forms), ("zero", self.zero_forms)):
            measures = {text: [fronts.fraction_text(v) for v in self._measures(tree)] for text, tree in forms.formulas}
            entries[name] = {**forms_entries(forms), "proof": _proof_of(forms), "measures": measures}
        return entries

    def _measures(self, tree: Tree) -> tuple[Fraction | None, Fraction | None]:
        """Return consistency (share of ones where the formula is 1) and coverage (share of ones that it covers)."""
        is_one = fronts.tree_values(tree, self.patterns.codes)
        true, false = int(self.patterns.ones[is_one].sum()), int(self.patterns.zeros[is_one].sum())
        total = int(self.patterns.ones.sum())
        return fronts.ratio(true, true + false), fronts.ratio(true, total)

    @property
    def reason(self) -> tuple[str, str]:
        """Return the first parsimonious solution and its measures; an empty text and why if there is none."""
        if not self.open_forms.formulas:
            return "", f"No sum of products of {self.target} within the budget."
        tree = self.open_forms.formulas[0][1]
        consistency, coverage = map(_decimal, self._measures(tree))
        formula = f"{self.target} = {infix_text(tree, list(map(quote_name, self.conditions)))}"
        return formula, f"is the parsimonious solution: consistency {consistency}, coverage {coverage}."

    def sections(self) -> Iterator[Section]:
        """Yield a section for each of both solutions, with measures, and one for the truth table."""
        names = list(map(quote_name, self.conditions))
        for label, forms in (("Remainders free (parsimonious)", self.open_forms),
                             ("Remainders 0 (conservative)", self.zero_forms)):  # fmt: skip
            lines = [[infix_text(tree, names), *map(_decimal, self._measures(tree))] for _, tree in forms.formulas]
            notes = [*_forms_lines(forms, names, every=False)][:1]
            headings = ("sum of products", "consistency", "coverage")
            yield Section(label, notes, headings, lines, (1, 2), (0,), (forms.num_formulas or 0) - len(lines))
        occurring = {tuple(codes): k for k, codes in enumerate(self.patterns.codes.tolist())}
        rows = []
        for index, code in enumerate(self.codes):
            bits = tuple(index >> k & 1 for k in range(len(self.conditions)))
            if bits in occurring or code != truth_tables.FREE:
                k = occurring.get(bits)
                zeros, ones = (0, 0) if k is None else (int(self.patterns.zeros[k]), int(self.patterns.ones[k]))
                read = [word[bit] for word, bit in zip(self.words[:-1], bits, strict=True)]
                value = code if code == truth_tables.FREE else self.words[-1][int(code)]
                rows.append([*read, f"{zeros + ones:,}", _decimal(fronts.ratio(ones, zeros + ones)), value])
        columns = [*self.conditions, "cases", "consistency", self.target]
        notes = [f"? is a remainder: fewer than {plural(self.cases, 'cases')}; rows without cases are left out"]
        more = max(0, len(rows) - MAX_LINES)
        yield Section("Truth table", notes, columns, rows[:MAX_LINES], range(len(columns)), (), more)

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the numbers of rows by code, then both solutions with their measures.

        every: whether all formulas are given, not only FORMULAS_SHOWN
        """
        counts = {code: self.codes.count(code) for code in ("1", "0", truth_tables.FREE)}
        yield (
            f"{self.target}: rows of the truth table with consistency of at least {self.consistency} are 1; fewer than"
            f" {plural(self.cases, 'cases')} {'makes' if self.cases == 1 else 'make'} a remainder"
        )
        ones = f"{plural(counts['1'], 'rows')} {'is' if counts['1'] == 1 else 'are'} 1"
        zeros = f"{counts['0']} {'is' if counts['0'] == 1 else 'are'} 0"
        yield f"{ones}, {zeros}, {plural(counts[truth_tables.FREE], 'remainders')}"
        names = list(map(quote_name, self.conditions))
        labels = {"remainders free (parsimonious)": self.open_forms, "remainders 0 (conservative)": self.zero_forms}
        for label, forms in labels.items():
            yield f"{label}:"
            size, *formulas = _forms_lines(forms, names, every=every)
            yield size
            listed = _plain_first(forms)[: None if every else FORMULAS_SHOWN]
            for _, tree in listed:
                values = [_decimal(v) for v in self._measures(tree)]
                yield f"  {infix_text(tree, names)}: consistency {values[0]}, coverage {values[1]}"
            yield from formulas[len(listed) :]


def _decimal(value: Fraction | None) -> str:
    return "undefined" if value is None else f"{float(value):.3f}"


Part: TypeAlias = OutputForms | ConfigurationTable


@dataclass(frozen=True)
class FormsFit(FitWithoutItem):
    """Least formulas of the outputs of a PLA file, or of a target's truth table."""

    table: Table
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"<FormsFit: least formulas of {plural(len(self.parts), 'truth tables')}>"

    @property
    def fits(self) -> bool:
        """True: a truth table always has a formula."""
        return True

    @property
    def may_fit_wider(self) -> bool:
        """False: all inputs are in the class."""
        return False

    @property
    def reasons(self) -> Sequence[tuple[str, str]]:
        """A least formula of each output, or the parsimonious solution."""
        return [part.reason for part in self.parts]

    def sections(self) -> Iterator[Section]:
        """Yield the least formulas, and the rows of a truth table, marked where the solution is wrong."""
        for part in self.parts:
            yield from part.sections()
        for part in self.parts:
            if isinstance(part, ConfigurationTable) and part.open_forms.formulas:
                yield Section("rows", markup=self._rows(part))

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """A row for each least formula that is listed; of a target's truth table for each solution."""
        rows: list[tuple[str, str, str, str]] = []
        for part in self.parts:
            if isinstance(part, OutputForms):
                name, columns = part.name, part.inputs
                stated: list[tuple[str, truth_tables.LeastForms]] = [(forms.measure, forms) for forms in part.forms]
            else:
                name, columns = part.target, part.conditions
                stated = [("parsimonious", part.open_forms), ("conservative", part.zero_forms)]
            quoted = list(map(quote_name, columns))
            rows += [
                (name, of, fronts.size_text(forms.size), infix_text(tree, quoted))
                for of, forms in stated
                if forms.size is not None
                for _, tree in forms.formulas
            ]
        return {heading: [row[k] for row in rows] for k, heading in enumerate(("output", "of", "size", "formula"))}

    def _rows(self, part: ConfigurationTable) -> Markup:
        position = self.table.position(part.target)
        others = [self.table.position(name) for name in part.conditions]
        is_one = fronts.tree_values(part.open_forms.formulas[0][1], self.table.codes[:, others])
        is_wrong = ~self.table.is_set(position) & (is_one != (self.table.codes[:, position] == 1))
        number = int(self.table.counts[is_wrong].sum())
        note = f"{plural(number, 'rows')} with another value than the parsimonious solution"
        return rows_section(self.table, [*others, position], {"differs": is_wrong}, note)

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Options that go on: an item has no free rows."""
        return ((("--json",), "all figures"),)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: of a PLA file, output -> its values and least formulas by measure."""
        if isinstance(self.parts[0], ConfigurationTable):
            read = {"rows": self.table.num_rows, "coding": self.table.coding, "notes": list(self.table.notes)}
            return read | self.parts[0].to_dict()
        return {part.name: part.to_dict() for part in self.parts if isinstance(part, OutputForms)}

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: every formula that is listed."""
        if not self.table.outputs:
            targets = [part.target for part in self.parts if isinstance(part, ConfigurationTable)]
            yield from self.table.reading_lines(every=verbose, target=targets[0])
        for part in self.parts:
            yield from part.lines(every=verbose)

    @property
    def why_no_item(self) -> str:
        """Rows that are free, of mixed values, or a form that has none."""
        if isinstance(self.parts[0], ConfigurationTable):
            return NO_ITEM.format("by consistency")
        has_free = any(p.ones + p.zeros < 1 << len(p.inputs) for p in self.parts if isinstance(p, OutputForms))
        return NO_ITEM.format("with free rows") if has_free else AS_CSV.format(quote_name(self.parts[0].name))


def fit_outputs(table: Table, options: fronts.FormulaOptions, listen: Steps) -> FormsFit:
    """Return the least formulas of the outputs of a PLA file: of `target`, or of all.

    Of up to four inputs by every measure, of more by the one that is asked for and by sums where these are covered
    listen: called with the output and its greedy sum, which bounds the least one at once
    """
    if options.target is not None and options.target not in table.outputs:
        near = known_names(str(options.target), table.outputs)
        raise CalibrantError(f"{table.source} has no output {readable_repr(options.target)}; {near}")
    for name, value in (
        ("roots", options.roots),
        ("errors", options.asked_errors),
        ("rates", options.rates),
        ("graph", options.graph),
    ):
        if value is not None:
            raise CalibrantError(f"{table.source}: {name} (--{name}) is not for truth tables; leave it out")
    outputs = table.outputs if options.target is None else (options.target,)
    num_inputs = len(table.names) - len(table.outputs)
    complete = [m for m in MEASURES if num_inputs <= NUM_VARS or (m in ("sop", "pos") and num_inputs <= MAX_VARS)]
    others = [measure for measure in complete if measure != options.operators]
    parts: list[OutputForms] = []
    for output in outputs:
        patterns = _patterns_of_output(table, output, num_inputs)
        inputs = table.names[:num_inputs]
        names = list(map(quote_name, inputs))
        listen(f"{output}{_greedy_text(patterns)}", len(parts), len(outputs))
        try:
            forms = tuple(
                truth_tables.least_forms(patterns, m, names, options.ties) for m in (options.operators, *others)
            )
        except ValueError as error:
            raise CalibrantError(f"{table.source}, column {readable_repr(output)}: {error}") from None
        parts.append(OutputForms(output, inputs, int(patterns.ones.sum()), int(patterns.zeros.sum()), forms))
    return FormsFit(table, tuple(parts))


def _patterns_of_output(table: Table, output: str, num_inputs: int) -> Patterns:
    names, patterns = fronts.patterns_of_target(table, output)
    assert names[:num_inputs] == table.names[:num_inputs]
    return Patterns(patterns.codes[:, :num_inputs], patterns.zeros, patterns.ones)


def _greedy_text(patterns: Patterns) -> str:
    if patterns.num_columns > MAX_VARS:
        return ""
    products, literals = greedy_size(patterns.num_columns, *truth_tables.rows_by_value(patterns))
    return f": at most {plural(products, 'products')} of {plural(literals, 'literals')}; proving the least"


def fit_configurations(table: Table, options: fronts.FormulaOptions, listen: Steps) -> FormsFit:
    """Return the truth table of the target and its least sums of products; `listen` as `fit_outputs` calls it."""
    assert options.target is not None
    if table.num_gaps:
        raise CalibrantError(
            f"{table.source} has {plural(table.num_gaps, 'gaps')}, and a truth table (--consistency) is of complete"
            " rows: leave out rows with gaps (--gaps drop) or columns (--drop)"
        )
    conditions, patterns = fronts.patterns_of_target(table, options.target)
    if len(conditions) > MAX_VARS:
        raise CalibrantError(
            f"{table.source}: {len(conditions)} conditions; at most {MAX_VARS} are read: leave out columns (--drop)"
        )
    consistency = options.consistency_cut
    codes = truth_tables.code_patterns(patterns, consistency, options.cases)
    names = list(map(quote_name, conditions))
    forms: list[truth_tables.LeastForms] = []
    for is_free_zero in (False, True):
        coded = truth_tables.patterns_of_codes(codes, is_free_zero=is_free_zero)
        remainders = "remainders 0" if is_free_zero else "remainders free"
        listen(f"{options.target}, {remainders}{_greedy_text(coded)}", len(forms), 2)
        forms.append(truth_tables.least_forms(coded, "sop", names, options.ties))
    words = [table.used[table.position(name)].digits_or_words for name in (*conditions, options.target)]
    part = ConfigurationTable(options.target, conditions, patterns, consistency, options.cases, codes, words, *forms)
    return FormsFit(table, (part,))
