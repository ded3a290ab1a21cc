"""Explanations of detectors: page, strip of moves, and text of a `DetectorWhy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from markupsafe import Markup

from calibrant.audits.blickets.why import DetectorWhy, explain
from calibrant.audits.why import Experiment, listed, number_text
from calibrant.bench.pages import why as pages_why
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.charts import Scale, figure, text_width, widest
from calibrant.bench.pages.page import Lesson, LessonModel, WhyTable, html_page, standalone_svg
from calibrant.dsl.blickets.item import BlicketItem, Form, Rule, all_rules, set_of
from calibrant.dsl.blickets.reference import INACTIVE
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

# --- The strip of a detector's moves: when each object is on it, its light, and bars of the hypotheses that are left
STEP, WIDE = 46, 66  # pixels a move; with at most FEW_MOVES moves
FEW_MOVES = 10
ROW, TOP, BARS = 23, 8, 64  # pixels: height of an object's row, border, height of the tallest bar
LIT = "ACTIVE"


def strip(why: DetectorWhy) -> str:
    """Return the strip as an SVG; empty without moves."""
    if not why.moves:
        return ""
    counts = [int(why.count.total or why.count.lower), *(int(move.remaining) for move in why.moves)]
    texts = [number_text(count) for count in counts]
    labels = [_short(move.in_words) for move in why.moves]
    step = max(WIDE if len(why.moves) <= FEW_MOVES else STEP, widest([*texts, *labels], 13, "bold") + 8)
    margin = max(64.0, widest(why.objects) + 20)
    light_y = TOP + ROW * len(why.objects) + 14
    base = light_y + 34 + BARS
    scale = Scale(1, max(10, *counts), base, base - BARS + 14, logarithmic=True)
    marks = [_row(why, k, margin, step) for k in range(len(why.objects))]
    marks.append(f'<text class="soft" x="{margin - 10:.0f}" y="{light_y + 4}" text-anchor="end">light</text>')
    marks.append(f'<text class="soft" x="{margin - 10:.0f}" y="{base - 8}" text-anchor="end">fit</text>')
    for k, (count, text) in enumerate(zip(counts, texts, strict=True)):
        x, top = margin + step * (k + 0.5), scale.at(max(1, count)) - (3 if count else 0)
        kind = "bar-2" if count else "unlit"
        marks.append(
            f'<rect class="{kind}" x="{x - step * 0.34:.1f}" y="{top:.1f}" width="{step * 0.68:.1f}"'
            f' height="{max(1, base - top):.1f}"/>'
            f'<text class="name" x="{x:.1f}" y="{top - 4:.1f}" text-anchor="middle">{escape(text)}</text>'
        )
        word = "start" if k == 0 else labels[k - 1]
        marks.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{escape(word)}</text>')
    for k, move in enumerate(why.moves, 1):
        marks.append(_light(move.reading, margin + step * (k + 0.5), light_y, step))
    words = ", ".join(texts)
    return figure(margin + step * len(counts) + 8, base + 24, f"Moves and hypotheses left: {words}", marks)


def _short(move: str) -> str:
    verb, _, name = move.partition(" ")
    return {"place": f"+{name}", "remove": f"\N{MINUS SIGN}{name}"}.get(verb, verb)


def _row(why: DetectorWhy, object_index: int, margin: float, step: float) -> str:
    """Return the row of an object: a bar over the moves during which it is on the detector."""
    name, y = why.objects[object_index], TOP + ROW * (object_index + 0.5)
    end = margin + step * (len(why.moves) + 1)
    parts = [
        f'<text x="{margin - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
        f'<line class="rule" x1="{margin:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
    ]
    start: int | None = None
    for k in range(len(why.moves) + 1):
        is_on = k < len(why.moves) and name in why.moves[k].placed
        if is_on and start is None:
            start = k
        if not is_on and start is not None:
            x, width = margin + step * (start + 1.08), step * (k - start - 0.16)
            parts.append(f'<rect class="bar-3" x="{x:.1f}" y="{y - 6:.1f}" width="{width:.1f}" height="12" rx="6"/>')
            start = None
    return "".join(parts)


def _light(reading: str, x: float, y: float, step: float) -> str:
    if not reading:
        return ""
    word = reading if text_width(reading) <= step else reading[:3]
    kind = "lit" if reading == LIT else "unlit"
    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="8"><title>{escape(reading)}</title></circle>'
        f'<text class="soft" x="{x:.1f}" y="{y + 22}" text-anchor="middle">{escape(word)}</text>'
    )


# --- The page of a `DetectorWhy`: strip of moves, the deciding move, all next moves, and the rules as chips -----------
MAX_CHIPS = 200  # rules shown one by one; larger classes show answers with their shares
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
        "moves": pages_why.shown_table(move_table(why)) if why.experiments else None,
        "chips": chips(why),
        "num_rules": len(why.rules),
        "answers": pages_why.shown_table(answer_table(why)) if not why.rules and len(why.answers) > 1 else None,
        "history": pages_why.shown_table(history_table(why)) if why.moves else None,
        "counted": f"{why.count.in_words()} hypotheses fit, counted exactly, of the class: {why.class_in_words}.",
        "json_text": pages_why.page_json(why),
    }
    return Markup(html_page("why/blickets.html", content))


def drawing(why: DetectorWhy) -> str:
    """Return the strip as an SVG file."""
    if not why.moves:
        raise CalibrantError("there is no move to draw yet; give the episodes with --run")
    return standalone_svg(strip(why))


def advice(why: DetectorWhy) -> list[str]:
    """Return heading and sentences about the best next move; before the first move also those of exact learners."""
    lines = list(pages_why.best_advice(why.experiments, "move", "hypotheses"))
    if why.learner_moves is not None and why.state == "open":
        least, most = why.learner_moves
        used = f"{least}" if least == most else f"{least} to {most}"
        more = "" if why.is_stated else "; run exact considers all conditions, since the task states none"
        rules = f"whichever of the {len(why.rules)} rules it is"
        lines = lines or ["What would settle it"]
        lines.append(f"A learner that expects one rule throughout decides in {used} moves, {rules}{more}.")
    return lines


def decider_rows(why: DetectorWhy) -> list[dict[str, str]]:
    """Return the answer that each reading of the deciding move leaves, if it leaves one, in a class of one rule."""
    best = next(iter(why.experiments), None)
    if best is None or not best.decides or len(why.answers) != 2 or why.witness is None:
        return []
    return [{"reading": outcome.reading, "remaining": outcome.remaining} for outcome in best.outcomes]


def move_table(why: DetectorWhy) -> WhyTable:
    """Return the table of next moves with the hypotheses left by each reading; moves of equal effect share a row."""
    readings = sorted(
        {o.reading for e in why.experiments for o in e.outcomes}, key=lambda word: (word != "ACTIVE", word)
    )
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in why.experiments:
        groups.setdefault(_move_cells(entry, readings), []).append(entry.in_words)
    revealed = any(entry.sealed is not None for entry in why.experiments)
    rows = tuple((merge_moves(names), *cells[: len(cells) if revealed else -1]) for cells, names in groups.items())
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


def merge_moves(moves: list[str]) -> str:
    """Return moves as one text, such as `place B, C or D`."""
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
    """Return the rules in groups of chips; empty for classes that are shown as answers."""
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
    """Return the table of consistent answers with their shares of the hypotheses."""
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


# --- A detector in steps for a class ----------------------------------------------------------------------------------
CLASS_LIGHTS = ("The light goes on", "The light stays off")
CLASS_WORDS = (
    ("detector", "a box that lights up by a rule about the things on it"),
    ("rule", "hypothesis: conjunctive, all of its things must be on it; disjunctive, one is enough"),
    ("thing that counts", "blicket"),
)
MAX_RIVALS = 2  # wrong rules beside the right one in a vote


def lesson(item: BlicketItem, why: DetectorWhy) -> Lesson:
    """Return a detector as a lesson that asks for a reading on which rules disagree, or for its rule if decided."""
    objects = item.task.objects
    lights = {LIT: "on", INACTIVE: "off"}
    rows = tuple(
        (m.in_words, listed(list(m.placed), 12) if m.placed else "nothing", lights.get(m.reading, m.reading))
        for m in why.moves
        if m.reading
    )
    evidence = WhyTable("Moves", plural(len(rows), "moves"), ("did", "on the detector", "light"), rows)
    rules = {rule.in_words(objects): rule for rule in all_rules(len(objects))} if why.rules else {}
    things = f"Things: {listed(objects, MAX_CHIPS)}. {'' if rows else 'Nothing was tried yet.'}"
    if why.pair is not None and why.witness is not None and all(name in rules for name in why.pair):
        return _open_lesson(why, evidence, things, rules, set_of(map(objects.index, why.witness)))
    if why.state == "decided" and why.answers and why.answers[0].answer in rules:
        return _decided_lesson(item, why, evidence, things, rules)
    return replace(pages_why.general_lesson(why, evidence, CLASS_WORDS, advice(why)), intro=(things,))


def rule_words(rule: str) -> str:
    """Return a rule in plain words, with its term: A and E together (conjunctive)."""
    form, _, names = rule.partition(" ")
    things = names.split(", ")
    if len(things) == 1:
        return f"{things[0]} alone decides"
    if form == Form.CONJUNCTIVE:
        return f"{listed(things, MAX_CHIPS)} together ({form})"
    return f"{', '.join(things[:-1])} or {things[-1]}: one is enough ({form})"


def _open_lesson(why: DetectorWhy, evidence: WhyTable, things: str, rules: Mapping[str, Rule], present: int) -> Lesson:
    assert why.pair is not None
    lights = [CLASS_LIGHTS[not rules[name].active(present)] for name in why.pair]
    on_it, only = listed(list(why.witness or ())), len(why.witness or ()) == 1
    verdict = f"Both agree with every move. With {'only ' * only}{on_it} on it they disagree."
    return Lesson(
        *(why.item, (things,), evidence, CLASS_WORDS),
        question=f"{'Only ' * only}{on_it} on the detector: what will the light do?",
        choices=(*CLASS_LIGHTS, pages_why.NOT_DECIDED),
        answer=2,
        heading="Two rules fit" if why.count.lower == "2" else f"What fits: {why.count.in_words()} rules; here are two",
        verdict=(verdict,),
        models=tuple(
            LessonModel(f"Rule {letter}: {light[0].lower()}{light[1:]}", (rule_words(name),))
            for letter, light, name in zip("AB", lights, why.pair, strict=True)
        ),
        advice=pages_why.class_advice(why.experiments, "the light", "rules"),
    )


def _decided_lesson(
    item: BlicketItem, why: DetectorWhy, evidence: WhyTable, things: str, rules: Mapping[str, Rule]
) -> Lesson:
    right = why.answers[0].answer
    moves = [(set_of(map(item.task.objects.index, move.placed)), move) for move in why.moves]
    rivals = []
    for name in sorted(rules, key=lambda name: (rules[name].blickets != rules[right].blickets, len(name), name)):
        against = [m for present, m in moves if m.reading and rules[name].active(present) != m.reading.startswith(LIT)]
        if name != right and against:
            on_it = listed(list(against[0].placed)) if against[0].placed else "nothing"
            light = "on" if against[0].reading.startswith(LIT) else "off"
            rivals.append((name, f"\u201c{rule_words(name)}\u201d is out: with {on_it} on it the light was {light}."))
    rivals = rivals[:MAX_RIVALS]
    choices = sorted([right, *(name for name, _ in rivals)])
    return Lesson(
        *(why.item, (things,), evidence, CLASS_WORDS),
        question="Which rule does the detector follow?",
        choices=(*map(rule_words, choices), pages_why.NOT_DECIDED),
        answer=choices.index(right),
        heading="One rule fits",
        verdict=(
            f"Only \u201c{rule_words(right)}\u201d agrees with every move.",
            *(sentence for _, sentence in rivals),
        ),
        advice=("What decided it", "Cover one move and vote again: is one rule still left?"),
    )


# --- Explanations of detectors ----------------------------------------------------------------------------------------


class DetectorExplanations:
    """Implements Explainable (bench.pages.capabilities)."""

    def explain(self, item: BlicketItem, steps: Sequence[Step[str]], *, reveal_sealed: bool = False) -> DetectorWhy:
        return explain(item, steps, reveal_sealed=reveal_sealed)

    def body(self, why: DetectorWhy, prefix: str) -> Markup:
        return page_body(why, prefix)

    def lesson(self, item: BlicketItem, why: DetectorWhy) -> Lesson:
        return lesson(item, why)

    def drawing(self, why: DetectorWhy) -> str:
        return drawing(why)

    def lines(self, why: DetectorWhy) -> Iterator[str]:
        tables = [move_table(why), history_table(why), *([answer_table(why)] if len(why.answers) > 1 else [])]
        return pages_why.tables_lines(why, tables, advice(why))


EXPLANATIONS: Explainable = DetectorExplanations()
