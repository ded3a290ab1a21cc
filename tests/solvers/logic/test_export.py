"""Tables, the record and the union network of a small family."""

from __future__ import annotations

import json

from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import Edge, Experiment, Options, Setup, Task, Tolerance
from calibrant.solvers.logic import family as export
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found
from tests.support.packages import needs

needs("networkx")


def _family() -> LogicFamily:
    """Return the family of r<-a, r<-b, r<-a+b and r<-a with r<-b: one reading, of both stimuli."""
    task = Task(
        (Edge("a", 1, "r"), Edge("b", 1, "r")),
        Setup(("a", "b"), (), ("r",)),
        (Experiment(frozenset("ab")),),
        ((1.0,),),
        Options(),
        Tolerance("0", 1),
    )
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    return outcome.value


def test_tables() -> None:
    family = _family()
    assert export.spectrum_csv(family) == "misfit,size,members\n0,1,2\n0,2,2\n"
    assert export.marginals_csv(family).splitlines() == [
        "kind,part,members,share,status",
        "clause,r<-a,2,0.5,open",
        "clause,r<-a+b,1,0.25,open",
        "clause,r<-b,2,0.5,open",
        "edge,a 1 r,3,0.75,open",
        "edge,b 1 r,3,0.75,open",
    ]
    assert export.predicted_csv(family, ((30.0,),)).splitlines() == [
        "number,experiment,time,readout,value,discretised,predicted,share,square",
        "1,a + b,30,r,1,100,1,1,0",
    ]
    best = family.best_next(candidate_experiments(family.task.setup))
    assert best is not None
    assert export.predictions_csv(family, best.predictions).splitlines() == [
        "experiment,r",
        "no stimulus,0",
        "a,0.5",
        "b,0.5",
        "a + b,1",
    ]
    assert export.candidates_csv(family, best.predictions).splitlines() == [
        "experiment,squares,share,outcomes,done",
        "no stimulus,16,1,1,no",
        "a,8,0.5,2,no",
        "b,8,0.5,2,no",
        "a + b,16,1,1,yes",
    ]


def test_the_record_is_json() -> None:
    family = _family()
    best = family.best_next(candidate_experiments(family.task.setup))
    record = json.loads(json.dumps(export.family_record(family, best)))
    assert (record["members"], record["optimum"]) == ("4", [0, 1])
    assert record["next"] == {"stimuli": ["a"], "inhibited": [], "squares": "8", "share": 0.5, "behaviours": 4}


def test_the_union_network() -> None:
    graph = _family().to_networkx()
    assert {name: data["kind"] for name, data in graph.nodes(data=True)} == {
        "a": "stimulus",
        "b": "stimulus",
        "r": "node",
        "gate r<-a+b": "gate",
    }
    assert {(u, v): data["share"] for u, v, data in graph.edges(data=True)} == {
        ("a", "r"): 0.5,
        ("b", "r"): 0.5,
        ("a", "gate r<-a+b"): 0.25,
        ("b", "gate r<-a+b"): 0.25,
        ("gate r<-a+b", "r"): 0.25,
    }


def test_edges_of_no_member_and_values_beside_predictions() -> None:
    """Readout r is .75 under a and .25 under b: a alone has misfit 25**2 twice, and every model with b more."""
    prior = (Edge("a", 1, "r"), Edge("b", 1, "r"))
    experiments = (Experiment(frozenset("a")), Experiment(frozenset("b")), Experiment())
    task = Task(prior, Setup(("a", "b"), (), ("r",)), experiments, ((0.75,), (0.25,), (None,)))
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    family = outcome.value
    assert family.never() == [prior[1]]
    assert export.marginals_csv(family).splitlines()[1:] == ["clause,r<-a,1,1,always", "edge,a 1 r,1,1,always",
                                                             "edge,b 1 r,0,0,never"]  # fmt: skip
    assert export.predicted_csv(family, ((10.0,), (30.0,), (None,))).splitlines()[1:] == [
        "1,a,10,r,0.75,75,1,1,0.0625",
        "2,b,30,r,0.25,25,0,0,0.0625",
    ]
    record = export.family_record(family)
    assert (record["mse"], record["never"]) == (0.0625, ["b 1 r"])
