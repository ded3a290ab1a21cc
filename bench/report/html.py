"""The report as one HTML file that needs no network and is the same bytes for the same rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from calibrant.bench.pages.filmstrip import timeline_content
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.report.formats import heading_of
from calibrant.bench.report.layout import Source, Table
from calibrant.bench.report.sections import Plot, Section
from calibrant.bench.version import program_version


def as_html(sections: Sequence[Section]) -> str:
    """Return the whole file. Everything that comes from pools, records and predictions is escaped."""
    return html_page(
        "report.html", {"sections": list(map(_section, sections, range(len(sections)))), "program": program_version()}
    )


def _section(section: Section, number: int) -> dict[str, Any]:
    return {
        "title": section.title,
        "about": section.about,
        "systems": section.systems,
        "pools": section.pools,
        "answers": section.answers,
        "plots": [
            plot._replace(svg=Markup(inline_svg(plot))) for plot in section.plots
        ],  # matplotlib escapes its texts
        "episodes": [timeline_content(episode, f"episode-{number}-{k}") for k, episode in enumerate(section.episodes)],
        "tables": [_table(table) for table in section.tables],
    }


def _table(table: Table) -> dict[str, Any]:
    rows = []
    for place, row in enumerate(table.rows):
        is_ours = row.source is Source.OURS
        starts = bool(place) and is_ours and table.rows[place - 1].labels[0] != row.labels[0]
        rows.append(
            {"kind": "group" if starts else "" if is_ours else "paper", "labels": row.labels, "cells": row.cells}
        )
    return {
        "anchor": table.anchor,
        "heading": heading_of(table),
        "caption": table.caption,
        "headings": [heading.text for heading in (*table.labels, *table.headings)],
        "with_interval": [any(row.cells[k].low for row in table.rows) for k in range(len(table.headings))],
        "rows": rows,
        "notes": table.notes,
    }


def inline_svg(plot: Plot) -> str:
    """Return the drawing as an element of a page: no prolog, no namespaces, ids of its own on the page."""
    element = plot.svg[plot.svg.index("<svg") :].rstrip()
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    element = element.replace("xlink:href", "href")
    element = re.sub(r'\bid="', f'id="{plot.name}-', element)
    element = re.sub(r'href="#', f'href="#{plot.name}-', element)
    element = re.sub(r"url\(#", f"url(#{plot.name}-", element)
    return element.replace("<svg", f'<svg role="img" aria-label="{plot.title}"', 1)
