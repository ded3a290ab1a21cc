"""Drawings as elements of a page."""

from __future__ import annotations

import re

from calibrant.bench.report.sections import Plot


def inline_svg(plot: Plot) -> str:
    """Return the drawing as an element of a page: no prolog, no namespaces, ids of its own on the page."""
    element = plot.svg[plot.svg.index("<svg") :].rstrip()
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    element = element.replace("xlink:href", "href")
    element = re.sub(r'\bid="', f'id="{plot.name}-', element)
    element = re.sub(r'href="#', f'href="#{plot.name}-', element)
    element = re.sub(r"url\(#", f"url(#{plot.name}-", element)
    return element.replace("<svg", f'<svg role="img" aria-label="{plot.title}"', 1)
