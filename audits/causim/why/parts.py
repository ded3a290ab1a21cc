"""The parts of the reason for a question about a program."""

from __future__ import annotations

import msgspec

from calibrant.audits.why import Experiment, Why


class AnswerGroup(msgspec.Struct, frozen=True):
    """Worlds with one answer: values that the unknown noise has in them, and values of the nodes that differ.

    probability: of these worlds among all that fit, as a fraction
    """

    answer: dict[str, str]
    worlds: str
    noise: dict[str, tuple[str, ...]]
    probability: str


class QuestionNode(msgspec.Struct, frozen=True):
    """A variable of the program with its noise.

    noise_value: where it is given; num_values: values that its noise can have; do, observed: as asked
    values: under the question, over the worlds that are listed
    """

    name: str
    parents: tuple[str, ...]
    noise: str
    noise_value: str | None
    num_values: int
    do: str | None
    observed: str | None
    values: tuple[str, ...]


class CodeLine(msgspec.Struct, frozen=True):
    """A line of a function; ends: noise values for which it gives the result; branches: whether worlds part here."""

    text: str
    ends: tuple[str, ...]
    branches: bool


class Branch(msgspec.Struct, frozen=True):
    """The line of the program at which two worlds with different answers part.

    node: whose function it is; noise: that differs there; condition: the code that decides
    """

    node: str
    noise: str
    condition: str
    code: tuple[CodeLine, ...]


class SealedWorld(msgspec.Struct, frozen=True):
    """The world that the question was drawn from: noise, and values of the nodes before and under `do`."""

    noise: dict[str, str]
    before: dict[str, str]
    after: dict[str, str]


class QuestionWhy(Why, frozen=True, kw_only=True):
    """The reason for a question: answers grouped, noise that is not given, values that decide if revealed.

    groups: every answer, where the worlds that fit are listed; unknown: noise that is not given and differs
    reveal: the fewest unknown noise variables whose values, whatever they are, leave one answer; () where not decided
    pair: noise of two worlds with different answers; true_world: where gold is revealed
    """

    num_worlds: str
    unknown: tuple[str, ...]
    groups: tuple[AnswerGroup, ...]
    experiments: tuple[Experiment, ...]
    reveal: tuple[str, ...]
    prompt: str
    nodes: tuple[QuestionNode, ...]
    branch: Branch | None = None
    pair: tuple[dict[str, str], dict[str, str]] | None = None
    true_world: SealedWorld | None = None
