"""Tables 1 to 4 of the blicket paper: what agents have, behaviours and classes, from the code; and its runs."""

from __future__ import annotations

from calibrant.baselines.blickets.context import BEHAVIOURS, GRAPH, THRESHOLD, Behaviour
from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB, Prompting
from calibrant.bench.blickets.paper_tables.printed import paper
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow
from calibrant.dsl.blickets.score import Exposed

AGENTS = (BASE, CG, CG_DB)
_ACTIVATIONS = {Exposed.PRE: "< N", Exposed.EXACTLY_N: "= N", Exposed.RE: "> N"}


def setup_tables() -> tuple[Table, ...]:
    """Return Tables 1, 2 and 3 as the code has them, and 4 with the headlines that the paper draws from its runs."""
    return _agents(), _behaviours(), _classes(), _runs()


def _agents() -> Table:
    def yes(values: list[bool]) -> list[str]:
        return ["yes" if value else "no" for value in values]

    graphs = [agent.start is not None for agent in AGENTS]
    extended = [bool(agent.behaviours) for agent in AGENTS]
    properties = {
        "task description in the system prompt": yes([True] * len(AGENTS)),
        "context graph": [_graph_text(agent) for agent in AGENTS],
        "state transitions declared by the agent": yes(graphs),
        "dynamic behaviours": [str(len(agent.behaviours)) if agent.behaviours else "no" for agent in AGENTS],
        "notices during the episode": yes(extended),
    }
    rows = tuple(TableRow((name,), tuple(map(Cell, cells))) for name, cells in properties.items())
    headings = tuple(Heading(agent.name, agent.name) for agent in AGENTS)
    return Table("1", "What the agents have", "", (Heading("property", "Property"),), headings, rows)


def _graph_text(agent: Prompting) -> str:
    if agent.start is None:
        return "no"
    states = f"{len(GRAPH.states)} states"
    return f"{states}, up to {len(agent.behaviours)} more" if agent.behaviours else states


def _behaviours() -> Table:
    headings = (
        Heading("state", "State (type)"),
        Heading("from", "From"),
        Heading("to", "To"),
        Heading("condition", "Condition"),
        Heading("min_steps", "Steps, at least"),
        Heading("fire_threshold", "Fires from"),
    )
    rows = tuple(TableRow((f"{b.key} {b.name}",), _behaviour_cells(b)) for b in BEHAVIOURS)
    return Table("2", "Dynamic behaviours", "", (Heading("behaviour", "Behaviour"),), headings, rows)


def _behaviour_cells(behaviour: Behaviour) -> tuple[Cell, ...]:
    texts = (
        f"{behaviour.state.name} ({behaviour.state.type})",
        ", ".join(behaviour.sources),
        ", ".join(behaviour.targets),
        behaviour.condition,
        str(behaviour.minimum),
        f"{THRESHOLD} of 10",
    )
    return tuple(map(Cell, texts))


def _classes() -> Table:
    rows = tuple(TableRow((str(name),), (Cell(text),)) for name, text in _ACTIVATIONS.items())
    return Table(
        "3",
        "Classes of episodes",
        "By the paper, all answers before the switch are right, and none at exactly N.",
        (Heading("class", "Class"),),
        (Heading("activations", "Activations"),),
        rows,
    )


def _runs() -> Table:
    table, headlines = paper().tables["4"], {row[0]: row[1] for row in paper().tables["4h"].rows}
    names = {"episodes": "Episodes", "condition": "Condition", "objects": "Objects", "agents": "Agents"}
    names |= {"manipulation": "Manipulation"}
    headings = (*(Heading(key, names[key]) for key in table.columns), Heading("headline", "Credited with"))
    rows = tuple(
        TableRow((row[0],), (*map(Cell, row[1:]), Cell(headlines[row[0]]) if row[0] in headlines else NOTHING))
        for row in table.rows
    )
    return Table("4", "Runs, and what they are credited with", "", (Heading("run", "Run"),), headings, rows)
