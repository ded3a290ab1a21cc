"""Files and replies in the papers' formats, damaged: a verdict, a fault, or one line for each; nothing is executed.

Programs of others, state files, query files, prose in both styles, options of items, notebook replies of CausaLab, and
lines of predictions with replies.
An audit hook (PEP 578) counts imports, processes and executions of code while a program is read.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.causalab.dialogues import DialogueOptions, LabChat
from calibrant.bench.causim.checking import CheckedProgram, ProgramReport
from calibrant.bench.causim.programs import convert_programs, unpack_pool
from calibrant.bench.core.scoring import Prediction
from calibrant.bench.pools.item_options import read_item_options
from calibrant.bench.scoring.lines import json_line
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.records import write_pool as write_detectors
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import BENCHMARK as LABORATORY
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism
from calibrant.dsl.causalab.records import write_pool as write_laboratories
from calibrant.dsl.causalab.replies import read_answer
from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.external_programs.check import check_program
from calibrant.dsl.causim.external_programs.sources import bundle_of_source, read_programs
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.prompt import prose, read_prose, read_uniform_prose, same_model, uniform_prose
from calibrant.dsl.causim.records import read_pool, read_queries, read_states, write_pool
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Pool
from calibrant.solvers.causim.generation import sampled_items
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.oracles.independent import require
from tests.support.causim.hostile_programs import damaged as damaged_program

REFUSED_EVENTS = frozenset({"exec", "os.system", "subprocess.Popen", "os.posix_spawn", "os.exec", "socket.connect"})
_events: list[str] | None = None


def case(rng: random.Random) -> str:
    """One input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kinds: tuple[Callable[[random.Random], str], ...] = (
        _program,
        _notebook,
        _prose,
        _options,
        _replies,
        _state,
        _queries,
    )
    kind: Callable[[random.Random], str] = rng.choices(kinds, weights=[30, 30, 20, 10, 10, 1, 1])[0]
    return kind(rng)


def damaged(rng: random.Random, text: str) -> str:
    """Return the text with one to three kinds of damage."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        text = rng.choice([*CHARACTER_DAMAGE, *LINE_DAMAGE])(rng, text)
    return text


def _note_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _events is not None and event in REFUSED_EVENTS:
        _events.append(event)


@cache
def _install() -> None:
    """Install the hook after one undamaged input of each kind: what that imports is executed, and is ours."""
    check = check_program(_sources()[0])
    json.dumps(ProgramReport([CheckedProgram("x", check)], with_reference=False).to_dict())
    list(ProgramReport([CheckedProgram("x", check)], with_reference=False).lines())
    convert_programs(_folder() / "unpacked", _folder() / "converted.jsonl", None)
    read_states(
        _folder() / "unpacked" / "state.json"
    )  # msgspec evaluates annotations of a type when it first reads one
    sys.addaudithook(_note_event)


@contextmanager
def nothing_executed() -> Iterator[None]:
    """Fail if code, a process or a connection starts inside."""
    global _events
    _install()
    _events = []
    try:
        yield
        require(not _events, f"executed: {_events[:3]}")
    finally:
        _events = None


@cache
def _sources() -> tuple[str, ...]:
    grown = [version for topology in TOPOLOGIES for version in grow(7, topology, topology, 5)]
    return tuple(module_text(version.bundle, comments=k % 2 == 0) for k, version in enumerate(grown))


def _program(rng: random.Random) -> str:
    text = rng.choice(_sources())
    text = damaged_program(rng, text) if rng.random() < 0.5 else damaged(rng, text)
    nodes, topology = rng.choice([None, 3]), rng.choice([None, "chain"])
    with nothing_executed():
        check = check_program(text, num_nodes=nodes, topology=topology)
        report = ProgramReport([CheckedProgram("x", check)], with_reference=False)
        lines = list(report.lines())
        json.dumps(report.to_dict())
    is_large = any(finding.startswith("Checked without tables") for finding in check.findings)
    require((check.fault is None) is (check.model is not None or is_large), "neither a fault nor a model")
    require(all(line.isprintable() for line in lines), "a report of several lines a line")
    if check.model is None:
        return f"program {check.fault.kind if check.fault else 'large'}"
    bundle = bundle_of_source(text, check.model)
    require(same_model(load_source(module_text(bundle)), check.model), "taken apart, the program means something else")
    return "program ok"


@cache
def _models() -> tuple[tuple[str, str], ...]:
    models = [load_source(source) for source in _sources()]
    return tuple((prose(model), uniform_prose(model)) for model in models)


def _prose(rng: random.Random) -> str:
    style = rng.randrange(2)
    read, write = ((read_prose, prose), (read_uniform_prose, uniform_prose))[style]
    text = rng.choice(_models())[style]
    damaged_text = damaged(rng, text) if rng.random() < 0.9 else text
    try:
        model = read(damaged_text)
        again = read(write(model))
    except ModelError as error:
        require(len(str(error)) < 2_000 and str(error).isprintable(), "a refusal of several lines")
        require(damaged_text != text, "prose of our own is refused")
        return "prose refused"
    require(same_model(model, again), "prose that was read is not read back")
    return "prose read"


@cache
def _laboratories() -> tuple[LabItem, ...]:
    suites = ("3nodes", "4nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_golden", "4nodes_freqparent")
    return tuple(item for suite in suites for item in generate_items(PLANS[suite], 2, 2))


ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, 10**400, "7", "", [], [[]], {}, {"a": 1}, "x" * 5_000, "\ud800", 7.5)


def _notebook(rng: random.Random) -> str:
    """Play replies in the paper's format, each field odd at times."""
    item = rng.choice(_laboratories())
    options = DialogueOptions(rng.choice(["free", "paper"]), rng.choice(["never", "once"]), "none", rng.random() < 0.3)
    chat = LabChat(item, options)
    for _ in range(rng.randrange(1, 6)):
        if chat.closed:
            break
        reply = json.dumps(_reply(rng, item))
        chat.take_text(rng.choice([damaged(rng, reply), None, 3]) if rng.random() < 0.2 else reply)
        require(chat.messages[-1]["role"] == "user" and bool(chat.messages[-1]["content"]), "no answer to a reply")
    json.dumps(chat.totals.as_json(), allow_nan=False)
    totals = chat.totals
    require(
        len(chat.episode.steps) + totals.unread + totals.returned + totals.verified == totals.replies, "a reply is lost"
    )
    text = json.dumps(_reply(rng, item))
    try:
        answer, problem = read_answer(text)
    except ActionError as error:
        require(bool(str(error)), "no reason for no answer")
        return "notebook without answer"
    require("frequency" in answer or "hypothesis" in answer, "an answer without parts")
    return f"notebook {'with a problem' if problem else 'read'}"


@cache
def _scorers() -> tuple[PoolScorer, ...]:
    labs, detectors = _folder() / "labs.jsonl", _folder() / "detectors.jsonl"
    write_laboratories(Pool("labs", LABORATORY, _laboratories(), {}), labs)
    write_detectors(detectors, "detectors", [next(iter(sample_items(SUITES[name], 4))) for name in ("easy-3", "order")])
    return PoolScorer([labs]), PoolScorer([detectors])


MOVES = ("ACTION: place A", "ACTION: 1", "ACTION: 99", "TRANSITION: x", "RULE_TYPE: conjunctive\nBLICKETS: A, B", "?")


def _replies(rng: random.Random) -> str:
    """Score a line with replies: a verdict that says why it is not right where nothing was submitted, or one line."""
    scorer = rng.choice(_scorers())
    (pool,) = scorer.items
    instance = rng.choice(sorted(pool.instances))
    prediction = Prediction(pool.digest, instance, "m", 0, "")
    number = rng.randrange(5)
    if scorer.benchmark.name == LABORATORY:
        item: Any = scorer.item(prediction)
        replies = [_reply(rng, item) if rng.random() < 0.8 else rng.choice(ODD) for _ in range(number)]
        replies = [json.dumps(reply) if rng.random() < 0.5 else reply for reply in replies]
        options = {"schema": rng.choice(["free", "paper"]), "verify": rng.choice(["never", "once"])}
    else:
        replies = [damaged(rng, move) if rng.random() < 0.2 else move for move in rng.choices(MOVES, k=number)]
        options = {"actions": rng.choice(["named", "numbered"])}
    line: dict[str, Any] = {"replies": replies, "dialogue": options}
    if rng.random() < 0.1:
        line[rng.choice(sorted(line))] = rng.choice(ODD)
    try:
        read = scorer.read_answer(prediction, line)
        verdict = json.loads(json_line(scorer.score(read).line))
    except CalibrantError as error:
        require(str(error).isprintable() and len(str(error)) < 2_000, "a refusal of several lines")
        return "replies refused"
    msgspec.convert(verdict, scorer.benchmark.scoring.verdict_record)
    submitted = any({"submit", "check"} & step.action.keys() and not step.refused for step in read.steps)
    require(submitted or bool(verdict["problem"]), "nothing was submitted, and no reason is given")
    return f"replies scored, {scorer.benchmark.name}"


def _reply(rng: random.Random, item: LabItem) -> dict[str, Any]:
    def odd(value: Any) -> Any:
        return rng.choice(ODD) if rng.random() < 0.08 else value

    name = rng.choice([*item.task.properties, FREQUENCY, "Unknown", item.task.properties[0].upper()])
    records = [*item.task.records, item.task.baseline]
    entries = [
        odd({"id": "0/1", "props": odd({k: odd(v) for k, v in r.items() if k != FREQUENCY}), "freq": odd(r[FREQUENCY])})
        for r in rng.choices(records, k=rng.randrange(4))
    ]
    hypothesis = state_mechanism(item.sealed.mechanism)
    if rng.random() < 0.4:
        key = rng.choice(list(hypothesis))
        hypothesis[key] = rng.choice(ODD)
    reply: dict[str, Any] = {
        "memory": odd("m"),
        "past_data": odd(entries),
        "hypothesis": odd(hypothesis),
        "experiment": odd(rng.choice([{}, {"target_prop": odd(name), "target_value": odd(5)}])),
    }
    action = rng.choice(["value", "submit", "action", "dialog", "set", "reactor"])
    reply |= {
        "value": {"value": odd(float(rng.randrange(200)))},
        "submit": {"action": "SUBMIT"},
        "action": {"action": odd("TELEPORT_TO"), "arg1": "x"},
        "dialog": {"chosen_dialog_option_int": odd(1)},
        "set": {"set": odd(name), "value": odd(3)},
        "reactor": {"reactor": odd(item.sealed.target)},
    }[action]
    return reply


def _options(rng: random.Random) -> str:
    name = rng.choice(["causalab", "blickets", "causim", "replayscm"])
    command = rng.choice(["generate", "pool convert"])
    names = ["records", "allowance", "view", "versions", "types", "p", "switch", "each", "effect", "noise_scale", "x"]
    values = ["3", "-1", ".5", "1e9", "nan", "inf", "true", "all", "1-10", "9-1", "null", "", "[]", "\u0661", "0x3"]
    pairs = [f"{rng.choice(names)}={rng.choice(values)}" for _ in range(rng.randrange(3))]
    pairs = [damaged(rng, pair) if rng.random() < 0.3 else pair for pair in pairs]
    try:
        options = read_item_options(command, name, pairs)
    except CalibrantError as error:
        require(str(error).isprintable() or not all(pair.isprintable() for pair in pairs), "a refusal of several lines")
        return "options refused"
    require((options is None) is (not pairs), "options are ignored")
    json.dumps(None if options is None else dict(options.stated))
    return "options read"


@cache
def _folder() -> Path:
    """Return an unpacked pool; it is deleted with the process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-papers-"))
    items = [item for topology in ("chain", "tree") for item in islice(sampled_items(5, topology), 8)]
    write_pool(folder / "pool.jsonl", items)
    unpack_pool(folder / "pool.jsonl", folder / "unpacked")
    return folder


def _state(rng: random.Random) -> str:
    text = (_folder() / "unpacked" / "state.json").read_text("utf-8")
    path = _folder() / "damaged.json"
    path.write_text(_damaged_json(rng, text), encoding="utf-8", errors="surrogatepass")
    try:
        with nothing_executed():
            sources = list(read_programs(path))
            checks = [check_program(source.text, num_nodes=source.version) for source in sources[:4]]
            report = ProgramReport([CheckedProgram("x", check) for check in checks], with_reference=False)
            require(all(line.isprintable() for line in report.lines()), "a report of several lines a line")
            faults = [check.fault for check in checks]
            read_states(path)
    except CalibrantError as error:
        require("\n" not in str(error), "a refusal of several lines")
        return "state refused"
    return f"state read, {sum(fault is not None for fault in faults)} of {len(faults)} faulty"


def _damaged_json(rng: random.Random, text: str) -> str:
    """Return a JSON text with damaged characters, or with one odd part."""
    return damaged(rng, text) if rng.random() < 0.5 else _with_odd_part(rng, text)


def _with_odd_part(rng: random.Random, text: str) -> str:
    """Return a JSON text with one part removed or replaced."""
    content = json.loads(text)
    part = content
    for _ in range(rng.randrange(1, 6)):
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            break
        key = rng.choice(keys)
        if not isinstance(part[key], dict | list) or rng.random() < 0.2:
            if rng.random() < 0.3:
                del part[key]
            else:
                part[key] = rng.choice([odd for odd in ODD if odd != "\ud800"])
            break
        part = part[key]
    return json.dumps(content)


def _queries(rng: random.Random) -> str:
    """Damage one query file; what is converted is a pool that is read back, with no more items than there were."""
    base = _folder() / "unpacked"
    path = rng.choice(sorted(base.rglob("causal_queries_v*.json")))
    before = path.read_bytes()
    target = _folder() / "converted.jsonl"
    try:
        path.write_text(_damaged_json(rng, before.decode()), encoding="utf-8", errors="surrogatepass")
        with nothing_executed():
            read_queries(path)
            conversion = convert_programs(base, target, None)
        require(len(read_pool(target)) == conversion.num_items, "items are lost")
    except CalibrantError as error:
        require("\n" not in str(error), "a refusal of several lines")
        return "queries refused"
    finally:
        path.write_bytes(before)
    return "queries read"
