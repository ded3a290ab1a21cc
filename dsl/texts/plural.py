"""A number and the noun that it counts."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """Return a number with a plural noun, which is in the singular for one: 1 pool, 2 pools, 1 query, 1,000 queries."""
    if number != 1:
        return f"{number:,} {noun}"
    if noun.endswith(("ches", "shes", "sses", "xes")):
        return f"1 {noun[:-2]}"
    return f"1 {noun[:-3]}y" if noun.endswith("ies") and noun != "series" else f"1 {noun.removesuffix('s')}"
