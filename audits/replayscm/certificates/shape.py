"""The fields of a certificate file: what `calibrant schema` describes, and what a checker takes."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class CertifiedClass(msgspec.Struct, forbid_unknown_fields=True):
    """The class that the count is of.

    max_size: largest formula of a mechanism; null for any
    nested_roots: whether, where roots are hidden, only root sets with nested columns belong to it
    """

    max_parents: int
    max_size: int | None
    nested_roots: bool
    in_words: str


class UniqueMember(msgspec.Struct, forbid_unknown_fields=True):
    """The only member, and a refutation of a second one.

    roots: of the member; mechanisms: variable -> formula
    variables: numbers of the propositional variables; `V <- S` selects a parent set, `U < V` says that U precedes V
    cnf: clauses that say that there is a second member, as signed numbers
    proof: steps in DRUP, a clause each, ended by 0, with `d` before those that are dropped; the last is empty
    """

    roots: list[str]
    mechanisms: dict[str, str]
    variables: dict[str, int]
    cnf: list[list[int]]
    proof: list[str]


class CertificateFile(msgspec.Struct, forbid_unknown_fields=True, rename={"model_class": "class"}):
    """The claim that so many SCMs of a class fit the training worlds of an item.

    format: calibrant-certificate; instance: id of the item, for the reader; evidence: SHA-256 of all that a solver sees
    class: the class; functions: variable -> functional parents -> functions of exactly these that fit, in decimal
    by_roots: root set -> members with it, in decimal; count: all members, in decimal; unique: only where there is one
    """

    format: str
    version: int
    instance: str
    evidence: str
    model_class: CertifiedClass
    functions: dict[str, dict[str, str]]
    by_roots: dict[str, str]
    count: str
    unique: UniqueMember | UnsetType = UNSET
