"""Claims that two rules of a detector are not separated by readings, proved by SAT or SMT search over sets of objects.

A literal for each object that is on, and for each rule whether it is satisfied. The search finds a set of objects on
which the rules differ, or proves that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from calibrant.audits.claims import Certificate, EngineName, Refused
from calibrant.audits.search import BooleanSearch, Examiner, proved_by


def _satisfied(search: BooleanSearch, name: str, rule: Mapping[str, Any]) -> int:
    """Return a literal that is true iff the objects that are on satisfy a rule."""
    satisfied, objects = search.literal(name), [search.literal("on", blicket) for blicket in rule["blickets"]]
    sign = 1 if rule["rule"] == "conjunctive" else -1
    # a conjunction holds iff all do; a disjunction fails iff all fail
    for literal in objects:
        search.add(-sign * satisfied, sign * literal)
    search.add(sign * satisfied, *(-sign * literal for literal in objects))
    return satisfied


def _separate(search: BooleanSearch, objects: list[str], first: int, second: int) -> str | None:
    """Return a set of objects with which the first rule is satisfied and the second is not, in words."""
    search.add(first)
    search.add(-second)
    true = search.find()
    return None if true is None else ", ".join(name for name in objects if ("on", name) in true) or "no object"


def _either_word(item: Any, certificate: Certificate, engine: EngineName) -> str:
    """Prove that a rule is the same function under both words."""
    sealed, rule_position = item["sealed"], certificate.data["rule"]
    rules = [sealed[key] for key in ("rule1", "rule2") if key in sealed] + [e["rule"] for e in sealed.get("later", [])]
    if not 1 <= rule_position <= len(rules):
        raise Refused("there is no such rule")
    blickets = rules[rule_position - 1]["blickets"]
    search = BooleanSearch(engine)
    conjunctive = _satisfied(search, "conjunctive", {"rule": "conjunctive", "blickets": blickets})
    disjunctive = _satisfied(search, "disjunctive", {"rule": "disjunctive", "blickets": blickets})
    placed = _separate(search, item["objects"], disjunctive, conjunctive)
    if placed is not None:
        raise Refused(f"with {placed} on the disjunctive rule is satisfied and the conjunctive one is not")
    return f"both words are one function, {proved_by(search)}"


def _compare(item: Any, rival: Mapping[str, Any], engine: EngineName, *, rises: bool) -> str:
    """Prove that another rule differs, and is satisfied wherever the detector's is (`rises`), or only there."""
    blickets, words = rival["blickets"], ("conjunctive", "disjunctive")
    is_rule = rival["rule"] in words and blickets and len(set(blickets)) == len(blickets)
    if not is_rule or not set(blickets) <= set(item["objects"]):
        raise Refused("no rule over the item's objects")
    rule = item["sealed"]["rule1"]
    differences, search = [], BooleanSearch(engine)
    for first, second in ((rule, rival), (rival, rule)):
        search = BooleanSearch(engine)
        literals = _satisfied(search, "first", first), _satisfied(search, "second", second)
        differences.append(_separate(search, item["objects"], *literals))
    missed, added = differences
    telling = missed if rises else added
    if missed is None and added is None:
        raise Refused("the other rule is the same function")
    if telling is not None:
        reading = "an ACTIVE reading refutes the other rule" if rises else "an INACTIVE reading tells them apart"
        raise Refused(f"with {telling} on {reading}")
    return f"no set of objects tells the rules apart, {proved_by(search)}"


def _always_explained(item: Any, certificate: Certificate, engine: EngineName) -> str:
    sealed = item["sealed"]
    if not sealed.get("p", 1) < 1 or "rule2" in sealed or sealed.get("later") or "order" in sealed["rule1"]:
        raise Refused("the detector is not one unreliable rule")
    if item["graded"]:
        raise Refused("a graded detector reads how many of its blickets are on")
    return _compare(item, certificate.data["other"], engine, rises=True)


def _silently_switched(item: Any, certificate: Certificate, engine: EngineName) -> str:
    sealed = item["sealed"]
    if "rule2" not in sealed or sealed.get("switch_by", "activations") != "activations" or "order" in sealed["rule1"]:
        raise Refused("the detector does not switch by activations from a rule without order")
    return _compare(item, certificate.data["other"], engine, rises=False)


EXAMINERS: Final[Mapping[str, Examiner]] = {
    "either-word": _either_word,
    "always-explained": _always_explained,
    "silently-switched": _silently_switched,
}
