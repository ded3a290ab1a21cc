"""The page of a `DetectorWhy`: strip of moves, the toggle that decides, every next move, and the rules as chips."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from calibrant.audits.blickets.why import DetectorWhy
from calibrant.audits.why import Experiment, listed, number_text
from calibrant.bench.blickets.why.strip import strip
from calibrant.bench.pages.design.page import standalone_svg
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.pages.why.sections import WhyTable, best_advice, page_json, shown_table
from calibrant.dsl.errors import CalibrantError

MAX_CHIPS = 200  # rules that are shown one by one; in larger classes answers with their shares are
MAX_ANSWERS = 60  # answers that a page lists
NOT_POSSIBLE = "\N{EN DASH}"


def page_body(why: DetectorWhy, prefix: str) -> Markup:
    """Return the contents of the page; prefix: of ids."""
    content = {
        "why": why,
        "prefix": prefix,
        "strip": Markup(strip(why)),
        "tried": f"{len(why.moves)} of {why.budget} moves",
        "advice": advice(why),
        "decider": decider_rows(why),
        "moves": shown_table(move_table(why)) if why.experiments else None,
        "chips": chips(why),
        "num_rules": len(why.rules),
        "answers": shown_table(answer_table(why)) if not why.rules and len(why.answers) > 1 else None,
        "history": shown_table(history_table(why)) if why.moves else None,
        "counted": f"{why.count.in_words()} hypotheses fit, counted exactly, of the class: {why.class_in_words}.",
        "json_text": page_json(why),
    }
    return Markup(html_page("why/blickets.html", content))


def drawing(why: DetectorWhy) -> str:
    """Return the strip as an SVG file."""
    if not why.moves:
        raise CalibrantError("there is no move to draw yet; give the episodes with --run")
    return standalone_svg(strip(why))


def advice(why: DetectorWhy) -> list[str]:
    """Return heading and sentences about the best next move; before the first also what an exact learner needs."""
    lines = list(best_advice(why.experiments, "move", "hypotheses"))
    if why.learner_moves is not None and why.state == "open":
        least, most = why.learner_moves
        needed = f"{least}" if least == most else f"{least} to {most}"
        lines = lines or ["What would settle it"]
        lines.append(f"An exact learner decides in {needed} moves, whichever of the {len(why.rules)} rules it is.")
    return lines


def decider_rows(why: DetectorWhy) -> list[dict[str, str]]:
    """Return what each reading of the deciding move leaves, where that is one answer of a class of one rule."""
    best = next(iter(why.experiments), None)
    if best is None or not best.decides or len(why.answers) != 2 or why.witness is None:
        return []
    return [{"reading": outcome.reading, "remaining": outcome.remaining} for outcome in best.outcomes]


def move_table(why: DetectorWhy) -> WhyTable:
    """Return every next move with what each reading would leave; moves that leave the same share a row."""
    readings = sorted(
        {o.reading for e in why.experiments for o in e.outcomes}, key=lambda word: (word != "ACTIVE", word)
    )
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in why.experiments:
        groups.setdefault(_move_cells(entry, readings), []).append(entry.in_words)
    revealed = any(entry.sealed is not None for entry in why.experiments)
    rows = tuple((merged(names), *cells[: len(cells) if revealed else -1]) for cells, names in groups.items())
    columns = len(readings)
    headings = ("move", *(f"if {reading}" for reading in readings), "effect", *(["sealed: here"] if revealed else []))
    sealed = frozenset({columns + 2} if revealed else ())
    look = frozenset(k for k, row in enumerate(rows) if row[columns + 1] == "decides")
    numeric = frozenset(range(1, columns + 1)) | sealed
    caption = f"Hypotheses that each reading would leave; {NOT_POSSIBLE} cannot happen under a hypothesis that fits"
    return WhyTable("Every move from here", caption, headings, rows, look, numeric=numeric, sealed=sealed)


def _move_cells(entry: Experiment, readings: list[str]) -> tuple[str, ...]:
    numbers = {outcome.reading: number_text(int(outcome.remaining)) for outcome in entry.outcomes}
    answers = [outcome.answers for outcome in entry.outcomes]
    if entry.decides:
        effect = "decides"
    elif len(entry.outcomes) == 1:
        effect = "nothing new"
    else:
        low, high = min(answers), max(answers)
        effect = f"{low if low == high else f'{low} to {high}'} answers"
    return (*(numbers.get(reading, NOT_POSSIBLE) for reading in readings), effect, entry.sealed or "")


def merged(moves: list[str]) -> str:
    """Return moves as one text: place B, C or D."""
    by_verb: dict[str, list[str]] = {}
    for move in moves:
        verb, _, name = move.partition(" ")
        by_verb.setdefault(verb, []).append(name)
    parts = []
    for verb, names in by_verb.items():
        words = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
        parts.append(f"{verb} {words}")
    return "; ".join(parts)


def chips(why: DetectorWhy) -> list[dict[str, Any]]:
    """Return the rules in groups, each with its chips; nothing for classes that are shown as answers."""
    if not 0 < len(why.rules) <= MAX_CHIPS:
        return []
    names = {"one": "one is enough", "conjunctive": "all are needed", "disjunctive": "any is enough"}
    joined = "" if all(len(name) == 1 for name in why.objects) else " "
    groups: dict[str, list[dict[str, Any]]] = {key: [] for key in names}
    for rule in why.rules:
        key = "one" if len(rule.blickets) == 1 else rule.form
        groups[key].append({"text": joined.join(rule.blickets), "fits": rule.fits, "is_true": rule.is_true})
    return [{"name": names[key], "chips": entries} for key, entries in groups.items() if entries]


def answer_table(why: DetectorWhy) -> WhyTable:
    """Return the answers that fit with their share of the hypotheses."""
    total = max(1, int(why.count.lower))
    rows = tuple(
        (share.answer, number_text(int(share.number)), f"{100 * int(share.number) / total:.1f} %")
        for share in why.answers[:MAX_ANSWERS]
    )
    more = len(why.answers) - len(rows)
    caption = f"{len(why.answers)} rules, with the hypotheses that give each" + (
        f"; {more} more in the JSON" if more > 0 else ""
    )
    return WhyTable("Answers that fit", caption, ("rule", "hypotheses", "share"), rows, numeric=frozenset({1, 2}))


def history_table(why: DetectorWhy) -> WhyTable:
    rows = tuple(
        (
            str(k),
            m.in_words,
            listed(list(m.placed), 12) if m.placed else "nothing",
            m.reading,
            number_text(int(m.remaining)),
            str(m.answers),
        )
        for k, m in enumerate(why.moves, 1)
    )
    headings = ("move", "did", "on the detector", "light", "hypotheses", "answers")
    caption = "Moves in order: what is on the detector, what it read, hypotheses and answers left"
    return WhyTable("What was tried", caption, headings, rows, numeric=frozenset({0, 4, 5}))
