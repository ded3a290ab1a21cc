"""The fields of a certificate file: what `calibrant schema` describes, and what a checker takes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType


class CertifiedClass(msgspec.Struct, forbid_unknown_fields=True):
    """The class that the count is of."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    max_size: Annotated[int | None, Meta(description="largest formula of a mechanism; null for any")]
    nested_roots: Annotated[
        bool, Meta(description="whether, where roots are hidden, only root sets with nested columns belong to it")
    ]
    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]


class UniqueMember(msgspec.Struct, forbid_unknown_fields=True):
    """The only member, and a refutation of a second one."""

    roots: Annotated[list[str], Meta(description="of the member")]
    mechanisms: Annotated[dict[str, str], Meta(description="variable -> formula")]
    variables: Annotated[
        dict[str, int],
        Meta(
            description="numbers of the propositional variables; `V <- S` selects a parent set, `U < V` says that "
            "U precedes V"
        ),
    ]
    cnf: Annotated[
        list[list[int]], Meta(description="clauses that say that there is a second member, as signed numbers")
    ]
    proof: Annotated[
        list[str],
        Meta(
            description="steps in DRUP, a clause each, ended by 0, with `d` before those that are dropped; the last "
            "is empty"
        ),
    ]


class CertificateFile(msgspec.Struct, forbid_unknown_fields=True, rename={"model_class": "class"}):
    """The claim that so many SCMs of a class fit the training worlds of an item."""

    format: Annotated[str, Meta(description="calibrant-certificate")]
    version: Annotated[int, Meta(description="version of the format")]
    instance: Annotated[str, Meta(description="id of the item, for the reader")]
    evidence: Annotated[str, Meta(description="SHA-256 of all that a solver sees")]
    model_class: Annotated[CertifiedClass, Meta(description="the class")]
    functions: Annotated[
        dict[str, dict[str, str]],
        Meta(description="variable -> functional parents -> functions of exactly these that fit, in decimal"),
    ]
    by_roots: Annotated[dict[str, str], Meta(description="root set -> members with it, in decimal")]
    count: Annotated[str, Meta(description="all members, in decimal")]
    unique: Annotated[UniqueMember | UnsetType, Meta(description="only where there is one")] = UNSET
