"""Files about logic models, damaged: priors, measurements, setups, lists of networks, series, and native items.

Whatever the bytes, the outcome is a value or one line. What is read is written and read again, and is the same.
A family of a few states is counted now and then, and its witness is replayed by the reference.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments, parse_clamps, parse_midas, parse_setup
from calibrant.dsl.logic.files.networks import networks_pieces, parse_networks, parse_sif
from calibrant.dsl.logic.item import Edge, Options, Task, Tolerance, parse_clause
from calibrant.dsl.logic.prompt import task_notes
from calibrant.dsl.logic.records import ItemRecord, item_from_record
from calibrant.dsl.logic.series import parse_series
from calibrant.dsl.records import decode_line
from calibrant.solvers.logic.family import solve_family
from calibrant.solvers.logic.search import Limits
from calibrant.solvers.outcome import Found
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.oracles.independent import require
from tests.support.benchmarks.logic import series_text

SIF = "a 1 c\nb -1 c\nc 1 d e\nd 1 e\ne -1 d\n"
MIDAS = (
    "TR:Cell:CellLine,TR:a,TR:b:Stimuli,TR:ci,DA:d,DA:e,DV:d,DV:e\n"
    "1,1,0,0,30,30,0.9,0.1\n1,0,1,0,30,30,NA,0.7\n1,1,1,1,30,30,0,\n1,0,0,0,0,0,0,0\n"
)
CLAMPS = "TR:a,TR:b,TR:ci\n1,0,0\n0,1,1\n"
SETUP = '{"stimuli": ["a", "b"], "inhibitors": ["c"], "readouts": ["d", "e"]}'
NETWORKS = "d<-c,d<-a+!b,e<-d,networks,mse,size\n1,0,1,3,0.25,2\n0,1,0,1,0.5,2\n"
SERIES = "series,a,b,c\n1,0,0,1\n1,1,0,0\n2,1,1,1\n2,0,1,1\n"
ITEM: dict[str, Any] = {
    "id": "x",
    "prior": [["a", 1, "d"], ["b", -1, "d"], ["d", 1, "e"]],
    "stimuli": ["a", "b"],
    "inhibitors": ["d"],
    "readouts": ["e"],
    "experiments": [{"stimuli": ["a"], "inhibited": []}],
    "values": [[0.75]],
    "questions": [{"stimuli": ["b"], "inhibited": ["d"]}],
    "sealed": {"gold": ["d<-a+!b", "e<-d"], "answers": ["0"], "optimum": [625, 2]},
}
ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, 10**400, "7", "", [], [[]], {}, {"a": 1}, "x" * 5_000, "\ud800", 7.5)
FEW = Limits(2_000, 2_000)


def case(rng: random.Random) -> str:
    """Read one input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kinds: tuple[tuple[str, Callable[[random.Random], None]], ...] = (
        ("prior", _prior),
        ("measurements", _measurements),
        ("setup", _setup),
        ("networks", _networks),
        ("series", _series),
        ("item", _item),
        ("clause", _clause),
    )
    name, kind = rng.choice(kinds)
    try:
        kind(rng)
        return f"{name} read"
    except CalibrantError as error:
        text = str(error)
        require(text.isprintable() and len(text) < 2_000, f"a refusal of several lines: {text[:200]!r}")
        require(isinstance(error, PoolError) or name in ("clause", "setup"), f"{type(error).__name__} names no file")
        return f"{name} refused"


def _damaged(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        text = rng.choice([*CHARACTER_DAMAGE, *LINE_DAMAGE])(rng, text)
    return text.replace("\n", rng.choice(["\n", "\r", "\r\n"])) if rng.random() < 0.2 else text


def _prior(rng: random.Random) -> None:
    edges = parse_sif(_damaged(rng, SIF), "x.sif")
    require(parse_sif("\n".join(map(str, edges))) == edges, "a prior is not read back")


def _measurements(rng: random.Random) -> None:
    if rng.random() < 0.3:
        parse_clamps(_damaged(rng, CLAMPS), "x.csv")
        return
    prior: tuple[Edge, ...] = parse_sif(SIF)
    data = parse_midas(_damaged(rng, MIDAS), rng.choice([None, 30, "30", "0"]), prior, "x.csv")
    options = Options(rng.choice([1, 100]), rng.choice(["round", "floor", "ceil"]), rng.random() < 0.5)
    tolerance = Tolerance(rng.choice(["0", "0.5"]), rng.choice([0, 2, None]))
    try:
        task = Task(prior, data.setup, data.experiments, data.values, options, tolerance)
    except CalibrantError as error:
        raise PoolError(str(error), file="x.csv") from None
    require(all(note.isprintable() for note in task_notes(task)), "a note of several lines")
    if rng.random() < 0.05:
        outcome = solve_family(task, FEW)
        if isinstance(outcome, Found):
            family = outcome.value
            require(family.fits(family.witness), "the witness is no member")
            require(reference.misfit(family.witness, task) == family.optimum[0], "another misfit by the reference")


def _setup(rng: random.Random) -> None:
    setup = parse_setup(_damaged(rng, SETUP), "setup.json")
    if len(setup.stimuli) + len(setup.inhibitors) < 8:
        candidate_experiments(setup)


def _networks(rng: random.Random) -> None:
    models = parse_networks(_damaged(rng, NETWORKS), "x.csv")
    clauses = sorted({clause for entry in models for clause in entry.model})
    if clauses:
        again = parse_networks("".join(networks_pieces([entry.model for entry in models], clauses)))
        require([entry.model for entry in again] == [entry.model for entry in models], "a list is not read back")


def _series(rng: random.Random) -> None:
    genes, series = parse_series(_damaged(rng, SERIES), "x.csv")
    again = parse_series(series_text(genes, series))
    require(again[0] == genes, "genes are not read back")
    require([entry.states for entry in again[1]] == [entry.states for entry in series], "series are not read back")


def _item(rng: random.Random) -> None:
    record = json.loads(json.dumps(ITEM))
    for _ in range(rng.choice([0, 1, 1, 2])):
        _make_odd(rng, record)
    text = json.dumps(record)
    line = rng.choice(CHARACTER_DAMAGE)(rng, text) if rng.random() < 0.3 else text
    item_from_record(decode_line(line, ItemRecord))


def _make_odd(rng: random.Random, value: Any) -> None:
    """Replace a value somewhere inside."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.6:
        _make_odd(rng, value[key])
    else:
        # a copy: the next odd value may be set inside of it, and cases must not depend on earlier ones
        value[key] = copy.deepcopy(rng.choice(ODD))


def _clause(rng: random.Random) -> None:
    clause = parse_clause(_damaged(rng, rng.choice(["v<-a+!b", "d<-c", "e<-!d"])))
    require(parse_clause(str(clause)) == clause, "a clause is not read back")
