"""Execution limits of an interpreted program: fuel, sizes of values, nesting; scopes of names; steps of a statement.

Method: a step counter ("fuel") and size checks, not a timeout, so that a verdict does not depend on the machine.
A statement costs a step and one more per NODES_PER_STEP nodes of its expressions; a copy one per MEMBERS_PER_STEP
members. The steps of a call are charged to the program too, with STEPS_PER_CALL on top.
Invariants: a bound on size precedes each allocation; budgets only fall, until `renew`; a container is charged in full
before it is compared, hashed or written, because nested ones share parts and would be walked again and again.
Bounds: memory of a value by MAX_SIZE, MAX_WEIGHT and MAX_DEPTH, time of a call by MAX_STEPS, of a program by MAX_WORK,
tables by MAX_ENTRIES. Each breach raises `Unsupported`, whose message is the one line about a refused program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from calibrant.dsl.causim.language.randomness import Choices, Uniform, Unsupported

# --- Execution limits of an interpreted program: fuel per call, sizes of the values it builds, depth of nesting -------
MAX_STEPS: Final = 20_000  # per call
# steps of a program while its tables are computed: about 2 s; the largest test vector takes 22,512
MAX_WORK: Final = 2_000_000
MAX_ENTRIES: Final = 20_000_000  # of all tables of a program together
MAX_SUPPORT: Final = 10_000  # values of a sampler
MEMBERS_PER_STEP: Final = 64  # members or characters that one step copies
STEPS_PER_CALL: Final = 20  # added to the steps of each call
MAX_SIZE: Final = 10_000  # characters of a string, members of a container
MAX_INTEGER: Final = 10**12
MAX_WEIGHT: Final = 20_000  # members of a container and of those nested in it; shared ones count at each occurrence
MAX_DEPTH: Final = 50  # of containers in containers
NODES_PER_STEP: Final = 8  # syntax nodes that one step evaluates; also members or characters that one step visits

SCALARS: Final = frozenset({str, int, float, bool, type(None)})
CONTAINERS: Final = (list, tuple, set, dict)


class Deferred(dict[str, Any]):
    """Values by name in a call; `read` supplies the value of a name that is looked up before it is assigned."""

    __slots__ = ("_chosen", "_read")

    def __init__(self, read: Callable[[str], Any], chosen: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._read = read
        self._chosen: dict[str, Any] = {} if chosen is None else chosen

    def __missing__(self, name: str) -> Any:
        if name not in self._chosen:
            self._chosen[name] = self._read(name)
        value = self[name] = self._chosen[name]
        return value

    def all_values(self) -> dict[str, Any]:
        """Return all values by name, including those that only an inner scope looked up."""
        return {**self._chosen, **self}

    def copy(self) -> Deferred:
        """Return the names of an inner scope, which shares the values chosen so far and later."""
        inner = Deferred(self._read, self._chosen)
        inner.update(self)
        return inner


class TooManyCombinations(Unsupported):
    """Tables have more than MAX_ENTRIES combinations of arguments."""


class StepBudget:
    """The budget of a program while it is turned into tables.

    left: remaining steps of all its calls; entries: remaining entries of all its tables
    """

    __slots__ = ("entries", "left")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Restore the full budget: tables under an intervention have one of their own."""
        self.left = MAX_WORK
        self.entries = MAX_ENTRIES

    def spend(self, steps: int) -> None:
        """Charge a call: its steps, and STEPS_PER_CALL."""
        self.charge(steps + STEPS_PER_CALL)

    def charge(self, steps: int) -> None:
        """Charge steps; `Unsupported` if none remain."""
        self.left -= steps
        if self.left < 0:
            raise Unsupported(f"reading the program takes more than {MAX_WORK} steps")

    def reserve(self, entries: int) -> None:
        """Charge the entries of a table; `TooManyCombinations` if none remain."""
        self.entries -= entries
        if self.entries < 0:
            raise TooManyCombinations(f"the tables have more than {MAX_ENTRIES} combinations of arguments together")

    def charge_text(self, text: str) -> None:
        """Charge one step for each 16 characters of a value's text, which is written, stored and parsed."""
        self.charge(len(text) // 16)


class Frame:
    """One call of a function.

    names: values by name; choices: source of random choices; left: remaining steps; result: returned value
    """

    __slots__ = ("choices", "left", "names", "result")

    def __init__(self, names: dict[str, Any], choices: Choices | None) -> None:
        self.names = names
        self.choices = choices
        self.left = MAX_STEPS
        self.result: Any = None

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Unsupported(f"a call takes more than {MAX_STEPS} steps")


def checked_number(value: Any) -> Any:
    """Return an integer within MAX_INTEGER; anything else as it is."""
    if type(value) is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise Unsupported(f"an integer beyond {MAX_INTEGER}")
    return value


def check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise Unsupported(f"a string or container of more than {MAX_SIZE} characters or members")


def charge_value(frame: Frame, value: Any) -> None:
    """Charge a value before it is compared, hashed or written; `Unsupported` if it is too deep or too large."""
    if type(value) in SCALARS or type(value) is range:
        return
    weight = 0
    stack = [(value, 1)]
    while stack:
        item, depth = stack.pop()
        kind = type(item)
        if kind is str:
            weight += len(item) // NODES_PER_STEP
        elif kind in CONTAINERS:
            weight += len(item)
            if depth > MAX_DEPTH or weight > MAX_WEIGHT:
                raise Unsupported("containers that nest too deeply or hold too much")
            members = [part for pair in item.items() for part in pair] if kind is dict else item
            stack.extend([(member, depth + 1) for member in members])
        elif kind is Uniform:
            raise Unsupported("a continuous random number is used other than in a comparison with a number")
        elif kind not in SCALARS and kind is not range:
            raise Unsupported(f"{kind.__name__} is used as a value")
        if weight > MAX_WEIGHT:
            raise Unsupported("containers that hold too much")
    frame.spend(weight // NODES_PER_STEP)


def charge_copy(frame: Frame, size: int) -> None:
    """Check the size of a value, in characters or members, and charge one copy of it."""
    check_size(size)
    frame.spend(size // MEMBERS_PER_STEP)


def require_ordered(frame: Frame, value: Any) -> Any:
    """Return a value that may be looped over; `Unsupported` for others.

    A set of at least two members that are not all numbers is refused: its order depends on the hash seed.
    """
    if type(value) is set:
        frame.spend(len(value) // NODES_PER_STEP)
    if type(value) is set and len(value) > 1 and any(type(member) not in (int, float, bool) for member in value):
        raise Unsupported("the order of a set is used")
    return value


def list_members(frame: Frame, value: Any) -> list[Any]:
    """Charge and return the members of an iterable; `Unsupported` for more than MAX_SIZE."""
    if type(value) is Uniform:
        raise Unsupported("a continuous random number is not a collection")
    elements = list(islice(require_ordered(frame, value), MAX_SIZE + 1))
    if len(elements) > MAX_SIZE:
        raise Unsupported(f"more than {MAX_SIZE} members are gone through at once")
    frame.spend(len(elements) // NODES_PER_STEP)
    return elements


def text_of(frame: Frame, value: Any) -> str:
    """Return `str(value)`; `Unsupported` if the text could depend on the machine or the hash seed."""
    kind = type(value)
    if kind is str:
        text: str = value
        return text
    if kind in CONTAINERS:
        charge_value(frame, value)
        if _holds_unordered(value):
            raise Unsupported("the order of a set is used")
    elif kind not in SCALARS and kind is not range:
        raise Unsupported(f"the text of {kind.__name__} is used")
    text = str(value)
    charge_copy(frame, len(text))
    return text


def _holds_unordered(value: Any) -> bool:
    if type(value) is set and len(value) > 1:
        return any(type(member) not in (int, float, bool) for member in value)
    if type(value) is dict:
        return any(_holds_unordered(member) for member in value.values())
    return type(value) in (list, tuple) and any(_holds_unordered(member) for member in value)


# --- The names that a function may use, those that a target binds, and what a statement costs -------------------------


class Scope:
    """The variables that a function may use, and whether it may draw random numbers.

    depth: current nesting of expressions; loops: number of loops around the statement that is compiled
    """

    def __init__(self, variables: frozenset[str], *, random: bool) -> None:
        self.variables = variables
        self.random = random
        self.depth = 0
        self.loops = 0

    def add_names(self, names: set[str]) -> Scope:
        """Return an inner scope with further variables."""
        inner = Scope(self.variables | names, random=self.random)
        inner.depth = self.depth
        return inner


def statement_cost(*nodes: ast.AST | None) -> int:
    """Return the steps of one execution of a statement with these expressions."""
    return 1 + sum(len(tree_nodes(node)) for node in nodes if node is not None) // NODES_PER_STEP


def tree_nodes(root: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree in the order of `ast.walk`, which takes two to three times as long."""
    nodes = [root]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif type(value) is list:
                nodes.extend([part for part in value if isinstance(part, ast.AST)])
    return nodes


def check_name(name: str) -> str:
    if name.startswith("_"):
        raise Unsupported(f"the name {name!a} begins with an underscore")
    return name


def target_names(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment or a loop binds."""
    if isinstance(target, ast.Name):
        yield check_name(target.id)
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from target_names(part)
