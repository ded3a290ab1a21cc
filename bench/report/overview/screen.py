"""Marks of the first screen's rows as SVG: intervals and bars of classes; and the screen's content.

Positions are percentages, so a row is as wide as its column; in a bar, right answers end at the accuracy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from calibrant.bench.answers.rates import Interval, Number
from calibrant.bench.core.attribution import CLASSES, INVALID, KIND_MEANINGS, NONE, RIGHT_CLASSES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.charts import foot_axis, rule
from calibrant.bench.report.overview.contract import Levels
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult, tally_classes
from calibrant.bench.report.overview.sentences import cost_text, count_text, five_figures, of_text, rank_sentence
from calibrant.dsl.text import plural

HEIGHT, BAR = 34, 18  # of a row and of the bar in it, in pixels
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def percent(share: Fraction | float) -> str:
    """Return a share in percent with four decimals: exact to a hundredth of a pixel at 1,000 px."""
    return f"{float(100 * share):.4f}".rstrip("0").rstrip(".") + "%"


def _rules() -> Iterator[str]:
    for tick in TICKS:
        yield rule(percent(tick), 0, percent(tick), HEIGHT)


def _plot(label: str, marks: Iterator[str]) -> str:
    body = "".join(marks)
    return f'<svg class="row-plot" role="img" aria-label="{escape(label)}" width="100%" height="{HEIGHT}">{body}</svg>'


def interval_plot(system: SystemResult, interval: Interval | None) -> str:
    """Return a plot of the accuracy with its interval, and of the chance of a guess if it is known."""
    name = f"{system.name}: right {system.accuracy:.3f}"
    reach = "" if interval is None else f", 95 % interval {interval.low:.3f} to {interval.high:.3f}"
    return _plot(name + reach, _interval_marks(system.accuracy, interval, system.levels.guess))


def _interval_marks(accuracy: float, interval: Interval | None, guess: float | None) -> Iterator[str]:
    yield from _rules()
    middle = HEIGHT / 2
    if guess is not None:
        yield rule(percent(guess), 0, percent(guess), HEIGHT, "guess")
    if interval is not None:
        yield rule(percent(interval.low), middle, percent(interval.high), middle, "reach")
    yield f'<circle class="point" cx="{percent(accuracy)}" cy="{middle:g}" r="6"/>'


def class_bar(system: SystemResult) -> str:
    """Return the bar of classes with marks at the levels; missing and invalid answers are boxes at its end."""
    parts = ", ".join(f"{count_text(number)} {CLASS_NAMES[kind]}" for kind, number in system.tally.items() if number)
    draw = "" if system.levels.draw is None else f"; a draw is right {system.levels.draw:.3f}"
    label = f"{system.name}: {parts} of {count_text(system.tallied(*CLASSES))}{draw}"
    return _plot(label, _bar_marks(system))


def _bar_marks(system: SystemResult) -> Iterator[str]:
    yield from _rules()
    top = (HEIGHT - BAR) / 2
    position = Fraction(0)
    for kind, share in bar_shares(system):
        if share:
            x, width = percent(position), percent(share)
            yield f'<rect class="class-{kind}" x="{x}" y="{top:g}" width="{width}" height="{BAR}"/>'
        position += share
    yield from _level_marks(system.levels)


def bar_shares(system: SystemResult) -> list[tuple[str, Fraction]]:
    """Return the segments of a bar in order, (class, share of the items), which add up to 1."""
    return [(kind, Fraction(system.counts[kind]) / system.num_items) for kind in CLASSES]


def _level_marks(levels: Levels) -> Iterator[str]:
    for end in dict.fromkeys((levels.ceiling, levels.ceiling_bound)):
        if end is not None:
            triangle = '<path class="ceiling" d="M-5 0h10l-5 8z"/>'
            yield f'<svg class="over" x="{percent(end)}" width="1" height="8">{triangle}</svg>'
    if levels.draw is not None:
        yield rule(percent(levels.draw), 3, percent(levels.draw), HEIGHT - 3, "draw")


def axis() -> str:
    """Return the labels of an axis from 0 to 1, below the rows."""
    texts = "".join(foot_axis([(percent(tick), f"{tick:g}") for tick in TICKS], 0))
    return f'<svg class="row-plot" aria-hidden="true" width="100%" height="20">{texts}</svg>'


# --- Content of the first screen's template: heading, figures, rows, legend, conditions -------------------------------
IN_VIEW = 20  # systems up to which the screen has no search, groups and pins
GLYPHS = {
    "earned": "\N{CHECK MARK}",
    "lucky": "\N{ALMOST EQUAL TO}",
    "short": "\N{WHITE CIRCLE}",
    "missed": "\N{BALLOT X}",
}
DASH = "\N{EN DASH}"
CLASS_NAMES = {kind: kind for kind in CLASSES} | {NONE: "no answer"}
UNIFORM = (
    "Uniform: all hypotheses that fit are alike, as in Uniform of the attribution table. Chance and Best there are of a"
    " guesser that weighs them by the generator's prior, where there is one."
)

FRACTIONS = (
    "Counts with decimals: an item with several answers, or several equally good ones, counts by the share of them that"
    " is right."
)


def fragment(*parts: str) -> str:
    """Return the fragment of an address in the page, each part quoted as the page's script quotes it."""
    return "/".join(re.sub(r"^~", "%7E", quote(part, safe="~!*'()")) for part in parts)


def size_text(results: Results) -> str:
    """Return the text "N systems on M items"."""
    systems = plural(len(results.systems), "systems")
    return f"{systems} on {plural(results.num_items, results.guide.words.items)}"


def family_of(name: str) -> str:
    """Return the family of a system: its name up to the first digit, separator or bracket."""
    return re.split(r"[\d/:(@_ .-]", name, maxsplit=1)[0] or name


def first_screen(results: Results, options: str) -> dict[str, Any]:
    """Return the content of the template `first_screen`.

    options: options that add attributions to the report's command
    """
    words = results.guide.words
    rows = [_row(system, results) for system in results.systems]
    families = Counter(row["family"] for row in rows)
    return {
        "heading": size_text(results),
        "ranks": rank_sentence(results),
        "words": list(first_words(results)),
        "options": "" if results.is_counted else options,
        "figures": list(five_figures(results)),
        "rows": rows,
        "many": len(rows) > IN_VIEW,
        "families": sorted((name, number) for name, number in families.items() if number > 1),
        "num_items": results.num_items,
        "has_intervals": any(results.intervals.values()),
        "counts_heading": "earned \N{MIDDLE DOT} lucky \N{MIDDLE DOT} short \N{MIDDLE DOT} missed"
        if results.is_counted
        else "right \N{MIDDLE DOT} wrong",
        "axis": Markup(axis()),
        "legend": list(_legend(results)),
        "fractions": FRACTIONS if any(_has_fractions(system.tally.values()) for system in results.systems) else "",
        "level_headings": _level_headings(results),
        "levels_caption": f"Means over {words.items}; levels are chances of being right. {UNIFORM}",
        "matrix": _matrix(results),
        "counted": results.is_counted,
        "lists": list(_lists(results)),
    }


def first_words(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the terms of the first screen with their definitions for this benchmark."""
    words = results.guide.words
    yield "Right", f"{benchmark(results.name).metrics.success.meaning}."
    if results.is_counted:
        yield (
            "Decided",
            f"all {words.hypotheses} that fit what the system was shown, or found out by its own moves, give one"
            " answer; so it may differ between systems.",
        )
        yield "Earned, lucky", "right, and decided or not: where it is not decided, another answer fits as well."
        yield "Missed, short", "wrong, and decided or not."


def _row(system: SystemResult, results: Results) -> dict[str, Any]:
    interval = results.intervals.get(system.name)
    return {
        "name": system.name,
        "family": family_of(system.name),
        "n": system.num_items,
        "accuracy": f"{system.accuracy:.3f}",
        "chosen": "" if system.chosen_accuracy is None else f"{system.chosen_accuracy:.3f}",
        "interval": "" if interval is None else f"{interval.low:.2f}{DASH}{interval.high:.2f}",
        "interval_plot": Markup(interval_plot(system, interval)),
        "class_bar": Markup(class_bar(system)),
        "counts": _counts(system, results),
        "level_cells": _level_cells(system, interval, results),
    }


def _counts(system: SystemResult, results: Results) -> str:
    dot = " \N{MIDDLE DOT} "
    counts = system.tally
    if results.is_counted:
        text = dot.join(count_text(counts[kind]) for kind in ("earned", "lucky", "short", "missed"))
        plain = counts["right"] + counts["wrong"]
        text += f"; {of_text(counts['right'], plain)} right, not counted" if plain else ""
    else:
        text = f"{count_text(counts['right'])}{dot}{count_text(counts['wrong'])}"
    if system.is_group:
        text += f" of {count_text(system.tallied(*CLASSES))} answers"
    refused = ", ".join(f"{count_text(counts[kind])} {CLASS_NAMES[kind]}" for kind in (INVALID, NONE) if counts[kind])
    return text + (f"; {refused}" if refused else "")


def _level_headings(results: Results) -> list[str]:
    cost = results.guide.words.cost
    headings = ["System", "n", "Right", "95 % interval", "Earned", "Guess", "Uniform draw", "Uniform ceiling"]
    return headings + ([] if cost is None else [f"{cost.unit[0].upper()}{cost.unit[1:]}"])


def _level_cells(system: SystemResult, interval: Interval | None, results: Results) -> list[str]:
    earned = f"{float(Fraction(system.counts['earned']) / system.num_items):.3f}" if system.is_counted else DASH
    reach = DASH if interval is None else f"{interval.low:.3f}{DASH}{interval.high:.3f}"
    cells = [f"{system.num_items:,}", f"{system.accuracy:.3f}", reach, earned]
    cells += [DASH if level is None else f"{level:.3f}" for level in system.levels[:2]]
    cells.append(_ceiling_text(system.levels))
    return cells + ([] if results.guide.words.cost is None else [cost_text(system.cost)])


def _ceiling_text(levels: Levels) -> str:
    """Return the ceiling, or its lower and certified upper bound."""
    if levels.ceiling is None:
        return DASH
    low, high = f"{levels.ceiling:.3f}", f"{levels.ceiling_bound or levels.ceiling:.3f}"
    return low if low == high else f"{low}{DASH}{high}"


def _legend(results: Results) -> Iterator[dict[str, Any]]:
    kinds = {kind for system in results.systems for kind, number in system.tally.items() if number}
    box = '<rect class="class-{}" x="1" y="1" width="16" height="12"/>'
    if results.is_counted:
        for kind in ("earned", "lucky", "short", "missed"):
            if kind in kinds:
                first, _, second = KIND_MEANINGS[kind].partition(" and ")
                yield {"mark": Markup(box.format(kind)), "text": f"{GLYPHS[kind]} {kind}: {first}, {second}"}
    for kind in ("right", "wrong"):
        if kind in kinds:
            yield {"mark": Markup(box.format(kind)), "text": f"{kind}, the evidence not counted"}
    for kind, text in ((INVALID, "invalid answer"), (NONE, "no answer")):
        if kind in kinds:
            yield {"mark": Markup(box.format(kind)), "text": text}
    levels, words = [system.levels for system in results.systems], results.guide.words.levels
    guesses = [level.guess for level in levels if level.guess is not None]
    if words.guess and guesses:
        low, high = min(guesses), max(guesses)
        value = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}{DASH}{high:.2f}"
        yield {"mark": _line("guess"), "text": f"guess: {words.guess.removeprefix('a guess ')}, {value}"}
    if words.draw and any(level.draw is not None for level in levels):
        yield {"mark": _line("draw"), "text": f"uniform draw: {words.draw.removeprefix('a draw ')}"}
    if words.ceiling and any(level.ceiling is not None for level in levels):
        mark = Markup('<path class="ceiling" d="M4 3h10l-5 8z"/>')
        is_bounded = not all(level.is_ceiling_exact for level in levels)
        text = f"uniform ceiling: {words.ceiling}" + (", at least and at most" if is_bounded else "")
        yield {"mark": mark, "text": text}


def _line(kind: str) -> Markup:
    return Markup('<g class="row-plot"><line class="{}" x1="9" x2="9" y1="0" y2="14"/></g>').format(kind)


def _matrix(results: Results) -> dict[str, Any] | None:
    if len(results.conditions) < 1:
        return None
    heads = [{"name": name, "n": number} for name, number in results.items_by_condition.items()]
    rows = []
    for system in results.systems:
        by_condition: dict[str, list[Outcome]] = {}
        for outcome in system.outcomes:
            by_condition.setdefault(results.items[outcome.item].condition, []).append(outcome)
        cells = [
            None
            if condition not in by_condition
            else condition_cell(by_condition[condition], fragment(results.name, condition, system.name))
            for condition in results.conditions
        ]
        rows.append({"name": system.name, "cells": cells})
    return {"heads": heads, "rows": rows}


def condition_cell(outcomes: Sequence[Outcome], anchor: str) -> dict[str, Any]:
    """Return a cell with the numbers of right, of all, and of earned answers; earned is empty if none was counted."""
    counts = tally_classes(outcomes)
    right = sum(counts[kind] for kind in RIGHT_CLASSES)
    is_counted = any(outcome.is_decided is not None for outcome in outcomes)
    return {
        "anchor": anchor,
        "right": f"{count_text(right)}/{count_text(sum(counts.values()))}",
        "earned": count_text(counts["earned"]) if is_counted else "",
        "has_fractions": _has_fractions(counts.values()),
        "lucky": bool(counts["lucky"]),
    }


def _has_fractions(counts: Iterable[Number]) -> bool:
    return any(Fraction(count).denominator != 1 for count in counts)


def _lists(results: Results) -> Iterator[dict[str, str]]:
    name = results.name
    if results.is_counted:
        yield {
            "anchor": f"{name}/~undecided",
            "text": f"Decided by no system ({len(results.items_without('decided'))})",
        }
    yield {"anchor": f"{name}/~unsolved", "text": f"Right by no system ({len(results.items_without('right'))})"}
    if results.is_counted:
        yield {"anchor": f"{name}/~missed", "text": f"Missed by all ({len(results.items_without('all-missed'))})"}
    yield {"anchor": f"{name}/~all", "text": f"All {results.num_items:,}"}


def cell_counts(results: Results) -> list[list[Any]]:
    """Return a row for each system and condition: their indices, number of answers, then counts by class."""
    condition_index = {condition: index for index, condition in enumerate(results.conditions)}
    rows: dict[tuple[int, int], list[int]] = {}
    for rank, system in enumerate(results.systems):
        for outcome in system.outcomes:
            key = rank, condition_index[results.items[outcome.item].condition]
            row = rows.setdefault(key, [0] * (len(CLASSES) + 1))
            row[0] += 1
            row[1 + CLASSES.index(outcome.kind)] += 1
    return [[*key, *row] for key, row in sorted(rows.items())]


def overall_screen(all_results: Sequence[Results]) -> Mapping[str, Any]:
    """Return the content of the template `all_screen`: figures of every benchmark, and systems by benchmark."""
    names = list(dict.fromkeys(system.name for results in all_results for system in results.systems))
    by_name = [{system.name: system for system in results.systems} for results in all_results]
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "cells": [
                condition_cell(
                    systems[name].outcomes, fragment(results.name, "~system", name).replace("%7Esystem", "~system")
                )
                if name in systems
                else None
                for results, systems in zip(all_results, by_name, strict=True)
            ],
        }
        for name in names
    ]
    in_all = sum(len(results.systems) for results in all_results)
    several = f"; {in_all} in all, as one name may be on several" if in_all > len(names) else ""
    has_fractions = any(cell and cell["has_fractions"] for row in rows for cell in row["cells"])
    return {
        "heading": f"{plural(len(names), 'systems')} on {len(all_results)} benchmarks{several}",
        "cards": [
            {
                "name": results.name,
                "title": results.title,
                "detail": size_text(results),
                "ranks": rank_sentence(results),
                "figures": list(five_figures(results)),
            }
            for results in all_results
        ],
        "heads": [{"name": results.title, "n": results.num_items} for results in all_results],
        "fractions": FRACTIONS if has_fractions else "",
        "rows": rows,
    }
