"""All tables of a report, in the paper's order and then those that it has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from calibrant.bench.answers.names import natural
from calibrant.bench.replayscm.tables.alternatives import per_problem
from calibrant.bench.replayscm.tables.ambiguity import Ambiguities, ceilings
from calibrant.bench.replayscm.tables.appendix.cohorts import parse_cohorts
from calibrant.bench.replayscm.tables.appendix.facts import PoolFacts
from calibrant.bench.replayscm.tables.appendix.index import APPENDIX_IDS, COHORT_TABLES, appendix_makers
from calibrant.bench.replayscm.tables.appendix.supplied import supplied_reference
from calibrant.bench.replayscm.tables.appendix.wrong import ID as WRONG
from calibrant.bench.replayscm.tables.appendix.wrong import wrong_mechanisms
from calibrant.bench.replayscm.tables.pairs import comparisons, disclosure_deltas
from calibrant.bench.replayscm.tables.paper import WORDS, fits_printed, printed_table
from calibrant.bench.replayscm.tables.specs import ATTRIBUTION, SPECS
from calibrant.bench.replayscm.tables.times import times
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.formats import shown_columns
from calibrant.bench.report.layout import Table
from calibrant.bench.report.rows import Row
from calibrant.bench.report.samples import sample_rows, sample_table
from calibrant.bench.report.sections import NoAnswersError, ReportContents
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.replayscm.item import BENCHMARK

_PRINTED = (*(spec.id for spec in SPECS), "3A", "D.1", "F.11")
_ALWAYS = (*sorted(_PRINTED, key=natural), "paired", "samples", "ceiling", "attribution", "time")
TABLE_IDS = (*_ALWAYS, *sorted(APPENDIX_IDS, key=natural), WRONG)


def _is_attributed(row: Row) -> bool:
    return any(observation.values[row.places["decided"]] is not None for observation in row.observations)


def _declare_items(table: Table, rows: Sequence[Row]) -> Table:
    """Return a table of the appendices with what it is about; it fits where all rows of the report do."""
    if printed_table(table.id) is None:
        return table
    fits = all(map(fits_printed, rows))
    lines = tuple(replace(row, fits=fits) for row in table.rows)
    return replace(table, rows=lines, printed=WORDS, fits=fits, is_result=True)


def report_tables(
    rows: Sequence[Row],
    contents: ReportContents,
    audited: Ambiguities | None = None,
    facts: PoolFacts | None = None,
    progress: Progress = lambda name, done, total: None,
) -> list[Table]:
    """Return the tables of these rows, without columns that no row has; `CalibrantError` if there are none."""
    pool_facts = facts or PoolFacts()
    all_rows, rows = rows, [row for row in rows if not row.key.system.is_chosen]
    makers: dict[str, Callable[[], Table | None]] = {
        spec.id: partial(spec.make, all_rows, with_paper=contents.with_paper) for spec in SPECS
    }
    makers |= {
        "D.1": partial(disclosure_deltas, rows, with_paper=contents.with_paper),
        "F.11": partial(per_problem, rows, with_paper=contents.with_paper),
        "3A": partial(supplied_reference, rows, pool_facts.sources, with_paper=contents.with_paper),
        "paired": partial(comparisons, rows, contents.against),
        "samples": lambda: sample_table(sample_rows(rows, METRICS.rights), METRICS.rights),
        "ceiling": partial(ceilings, rows, audited or {}),
        "attribution": partial(ATTRIBUTION.make, [row for row in all_rows if _is_attributed(row)], with_paper=False),
    }
    if contents.with_times:
        makers["time"] = partial(times, rows)
    makers[WRONG] = lambda: wrong_mechanisms(
        contents.predictions.get(BENCHMARK, ()), pool_facts.paths, pool_facts, contents.fields
    )
    makers |= appendix_makers(rows, pool_facts, parse_cohorts(contents.cohorts), with_paper=contents.with_paper)
    requested = contents.tables or {*_ALWAYS, *(COHORT_TABLES if contents.cohorts else ())}
    names = [name for name in TABLE_IDS if name in makers and name in requested]
    tables = []
    for done, name in enumerate(names):
        progress("tables", done, len(names))
        table = makers[name]()
        tables.append(_declare_items(table, rows) if table is not None and name in APPENDIX_IDS else table)
    progress("tables", len(names), len(names))
    selection = [shown_columns(table) for table in tables if table is not None]
    if not selection:
        request = f"table {', '.join(sorted(contents.tables))}" if contents.tables else "any table"
        raise NoAnswersError(f"no answers that belong into {request}")
    return selection
