"""Help of commands: groups of commands and options, options of items, examples, and exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

# --- Lists of commands and of a command's options in groups, with short helps that fit a line of 80 characters --------
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run everything once on bundled items",
        "list": "List the items of a pool",
        "show": "Show one item, or why it is ambiguous",
        "fit": "Fit an SCM or a formula to a table of 0 and 1",
        "family": "Count the logic models that fit perturbation data",
        "network": "Read, compare, simulate a Boolean network",
        "play": "Solve items yourself, in words or the browser",
    },
    "Score answers": {
        "prompts": "Write what a model is asked",
        "score": "Score responses: right, and was it earned?",
        "table": "Print rows of runs and scores",
        "report": "Write tables and plots of results",
    },
    "Run solvers": {
        "run": "Run solvers on pools",
        "protocols": "List the solvers and their options",
        "alternatives": "Collect SCMs that fit and differ",
    },
    "Judge items": {
        "audit": "Count what the evidence leaves open",
        "difficulty": "Explain which items are hard",
        "separate": "Rank the interventions that tell SCMs apart",
        "verify": "Check certificates by plain counting",
    },
    "Make items": {
        "generate": "Make items with known difficulty",
        "sample": "Make items quickly, without audits",
        "harden": "Add evidence until one answer is left",
        "training": "Write worked solutions to learn from",
    },
    "Publish": {
        "release": "Build a suite that certifies itself",
        "submission": "Write answers as a submission to a suite",
        "board": "Score submissions to a suite again",
        "variants": "Copy items under other names and orders",
    },
    "Files": {
        "pool": "Check, describe and convert pools",
        "export": "Write data sets for the Hub",
        "schema": "Print the JSON Schema of a file",
        "bench": "Measure speed on this machine",
    },
}
# headings of options, in this order; an option states its heading as `rich_help_panel`
ITEMS, INPUT, METHOD, VIEW, OUTPUT, EXECUTION = "Items", "Input", "Method", "View", "Output", "Execution"
FORMULAS = "Formulas (without --score)"
NETWORKS = "Networks (with --score)"
PANELS = (ITEMS, INPUT, METHOD, FORMULAS, NETWORKS, VIEW, OUTPUT, EXECUTION)
REST = "Other options"
MAX_OPTION_WIDTH = 30  # columns; a longer option has a line of its own, as in typer's lists
MIN_GROUPED_OPTIONS = 5  # fewer options are listed without headings
MAX_SHORT_HELP = 55  # characters, so that no line of the list is cut at 80 columns


def short_help(command: str) -> str:
    """Return the short help of a command."""
    return next(group[command] for group in GROUPS.values() if command in group)


class GroupedOptions(TyperCommand):
    """A command that lists its options under headings, which typer offers with rich only."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments: list[tuple[str, str]] = []
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or REST, []).append(record)
        sections = {"Arguments": arguments} | panels
        if sum(map(len, panels.values())) <= MIN_GROUPED_OPTIONS:  # --help is a further one
            sections = {"Arguments": arguments, "Options": [row for rows in panels.values() for row in rows]}
        width = min(MAX_OPTION_WIDTH, max((len(row[0]) for rows in panels.values() for row in rows), default=0))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in rows])


class GroupedCommands(TyperGroup):
    """A group that lists its commands under headings, and commands without a heading last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        headed = {name for group in GROUPS.values() for name in group}
        rest = [name for name in self.list_commands(ctx) if name not in headed]
        width = max(map(len, self.commands))
        for heading, names in [*GROUPS.items(), ("Other", dict.fromkeys(rest, ""))]:
            rows = [
                (name.ljust(width), names[name] or self.commands[name].get_short_help_str(MAX_SHORT_HELP))
                for name in names
                if name in self.commands and not self.commands[name].hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


# --- Help of commands that take options of items: it lists those of a benchmark ---------------------------------------
_BENCHMARK = "--benchmark"


class ItemOptionsCommand(GroupedOptions):
    """A command with `-o NAME=VALUE`; its help lists the options of --benchmark, or states how to list them."""

    command_name = "generate"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_BENCHMARK] = _stated_benchmark(args)  # help is printed before options are read
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        for title, lines in _listed_options(self.command_name, ctx.meta.get(_BENCHMARK)):
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, _, text in (line.partition(": ") for line in lines)])


class ConvertCommand(ItemOptionsCommand):
    """The command `pool convert`, which has no --benchmark."""

    command_name = "pool convert"


def _stated_benchmark(args: list[str]) -> str | None:
    for index, word in enumerate(args):
        if word == _BENCHMARK and index + 1 < len(args):
            return args[index + 1]
        if word.startswith(f"{_BENCHMARK}="):
            return word.removeprefix(f"{_BENCHMARK}=")
    return None


def _listed_options(command: str, benchmark: str | None) -> Iterator[tuple[str, list[str]]]:
    from calibrant.bench.core.names import TITLES
    from calibrant.bench.pools.item_options import item_option_struct, option_lines

    having = [name for name in TITLES if item_option_struct(command, name)]
    if command == "generate" and benchmark not in having:
        names = ", ".join(having)
        yield "Item options (-o)", [f"NAME=VALUE: Listed by `generate {_BENCHMARK} NAME --help` for {names}."]
        return
    for name in having:
        if benchmark in (None, name):
            yield f"Item options (-o) of {TITLES[name]}", option_lines(command, name)


# --- Examples in the help of every command; tests parse each ----------------------------------------------------------
EXAMPLES: Mapping[str, Sequence[str]] = {
    "run": (
        "calibrant run exact,posterior pool.yaml --out runs",
        "calibrant run exact pool.yaml --out runs -o max_parents=4 --budget 60",
        "calibrant run my_search.py:MySearch pool.yaml --out runs",
    ),
    "protocols": ("calibrant protocols", "calibrant protocols posterior"),
    "score": (
        "calibrant score pool.yaml predictions.jsonl",
        "calibrant score ordered.yaml hidden.yaml predictions.jsonl.gz --out scores.jsonl",
        "calibrant score pool.yaml out.jsonl --id-field task --text-field result.text",
        "zcat out.gz | calibrant score pool.yaml - --json",
        "calibrant score text_game_results.jsonl.gz --out runs.jsonl",
        "calibrant score pool.jsonl sets.jsonl --set-size 10 --out sets_scored.jsonl",
    ),
    "table": (
        "calibrant table runs scores.jsonl",
        "calibrant table runs --by stratum --columns n,HeldoutExact,Accuracy",
        "calibrant table --official pool.yaml",
        "calibrant table runs --attribution --pool pool.yaml",
    ),
    "report": (
        "calibrant report runs scores.jsonl --out report.html",
        "calibrant report runs --table 1 --table paired --format csv",
        "calibrant report runs --pool pool.jsonl --attribution --out report.html",
    ),
    "show": (
        "calibrant show pool.yaml INSTANCE",
        "calibrant show pool.yaml INSTANCE --why",
        "calibrant show pool.yaml INSTANCE --html why.html",
        "calibrant show pool.yaml INSTANCE --gold",
        "calibrant show pool.jsonl INSTANCE --run runs --html episodes.html",
        "calibrant show causim.jsonl INSTANCE --gold --html question.html",
    ),
    "fit": (
        "calibrant fit lamps.csv",
        "calibrant fit lamps.csv --target Y --html why.html",
        "calibrant fit lamps.csv --do set --score bde --best 5",
        "calibrant fit lamps.csv --do set --out lamps.jsonl --certificates certificates",
    ),
    "family": (
        "calibrant family prior.sif data.csv --time 30 --fit 0.1 --size 5 --next",
        "calibrant family prior.sif data.csv --time 30 --html family.html --out family",
        "calibrant family prior.sif data.csv --time 30 --of networks.csv --fail-on overclaimed",
        "calibrant family prior.sif series.csv --extra-errors 1 --max-parents 2",
    ),
    "network": (
        "calibrant network model.bnet --attractors --clamp EGF=1,PTEN=0",
        "calibrant network model.xml model.bnet --fail-on differ",
        "calibrant network model.xml --names name --out model.bnet",
    ),
    "difficulty": (
        "calibrant difficulty runs scores.jsonl --pools pool.jsonl",
        "calibrant difficulty runs --pools pool.jsonl --model rasch --html difficulty.html",
    ),
    "pool split": ("calibrant pool split pool.jsonl --by model --shares .8,.1,.1 --out parts",),
    "pool distinct": ("calibrant pool distinct test.jsonl new.jsonl --apart-from train.jsonl",),
    "pool subset": ("calibrant pool subset pool.jsonl small.jsonl --items 20 --runs runs",),
    "list": (
        "calibrant list pool.yaml",
        "calibrant list pool.yaml --why --html index.html",
        "calibrant list pool.jsonl --setting Hidden-order --limit 0 --json",
    ),
    "prompts": ("calibrant prompts pool.yaml --out prompts.jsonl", "calibrant prompts pool.yaml --limit 1 --text"),
    "sample": ("calibrant sample --seed 1 --out pool.jsonl --per-stratum 2",),
    "demo": ("calibrant demo", "calibrant demo --out demo --workers 1"),
    "audit": (
        "calibrant audit pool.yaml --html audit.html",
        "calibrant audit pool.yaml --out audits --certificates certs",
        "calibrant audit pool.yaml --fail-on ambiguous",
    ),
    "alternatives": ("calibrant alternatives runs --out alternatives.jsonl",),
    "harden": (
        "calibrant harden pool.yaml --out hard.jsonl --seed 1 --report hard_report.jsonl",
        "calibrant harden pool.yaml --out hard.jsonl --alternatives alternatives.jsonl",
        "calibrant harden causim.jsonl --out decided.jsonl --certificates certs",
    ),
    "separate": (
        "calibrant separate pool.yaml INSTANCE --members 8",
        "calibrant separate pool.yaml INSTANCE --against answer.json --targets 2",
    ),
    "training": ("calibrant training causim.jsonl --order topology --out training.jsonl",),
    "verify": ("calibrant verify certs/*.json pool.yaml",),
    "generate": (
        "calibrant generate --seed 1 --out pool.jsonl --per-stratum 2",
        "calibrant generate --benchmark blickets --seed 1 --strata easy-3,hard-3 --out pool.jsonl",
    ),
    "export": (
        "calibrant export pool.yaml --out dataset",
        "calibrant export easy.jsonl hard.jsonl --out dataset --name 'Two pools' --license cc-by-4.0",
    ),
    "variants": (
        "calibrant variants pool.jsonl --kinds rename,rows --copies 4 --out variants.jsonl",
        "calibrant variants pool.jsonl --check variants.jsonl",
    ),
    "submission": (
        "calibrant submission suite-1.0 questions.jsonl --system my-model --system-version 3f2c9d1"
        " --submitter 'A. Submitter' --date 2026-03-04 --out submissions/my-model",
    ),
    "board": ("calibrant board suite-1.0 submissions --out site",),
    "release": (
        "calibrant release suite.toml --out suite-1.0",
        "calibrant release suite.toml --lock suite-1.0/gold/suite.lock --out rebuilt",
    ),
    "play": (
        "calibrant play pool.jsonl INSTANCE",
        "calibrant play pool.jsonl INSTANCE --html episode.html",
        "agent | calibrant play pool.jsonl INSTANCE --jsonl",
    ),
    "pool convert": (
        "calibrant pool convert pool.yaml pool.jsonl --drop-results",
        "calibrant pool convert hard.jsonl hard.yaml",
        "calibrant pool convert 4nodes.jsonl pool.jsonl -o records=6 -o allowance=0",
        "calibrant pool convert state.json pool.jsonl -o each=5 -o types=counterfactual",
    ),
    "bench evaluator": ("calibrant bench evaluator", "calibrant bench evaluator --seconds 2 --json"),
    "pool alternatives": (
        "calibrant pool alternatives pool.yaml alternative_scm.jsonl --seed 1",
        "calibrant pool alternatives pool.yaml known_pairs.jsonl --from runs --from alternatives.jsonl --open-ended",
    ),
    "pool check": (
        "calibrant pool check pool.yaml --fields",
        "calibrant pool check programs.jsonl --nodes 20 --topology layered",
        "calibrant pool check program.py --reference nihss --map score=total",
    ),
    "pool unpack": ("calibrant pool unpack pool.jsonl folder",),
    "pool stats": ("calibrant pool stats ordered.yaml hidden.yaml",),
    "pool schema": ("calibrant pool schema",),
    "schema": ("calibrant schema records",),
}


def epilog(command: str) -> str | None:
    """Return the end of a command's help: its examples, one unwrapped line each; None if it has none."""
    lines = "\n".join(f"  {line}" for line in EXAMPLES.get(command, ()))
    return f"Examples:\n\n\b\n{lines}" if lines else None


# --- Meaning of exit code 1 for commands that have it; 0 is done, 2 bad input, 130 interrupted ------------------------
FAILED_CHECKS: Mapping[str, str] = {
    "audit": "`--fail-on` applies: an item is ambiguous, or has a finding of that kind",
    "board": "a submission, or the suite, is red",
    "demo": "an instance crashed",
    "family": "the models are too many to count, or `--fail-on` applies",
    "fit": "nothing of the class fits the table",
    "harden": "an item stays undecided",
    "network": "`--fail-on` applies",
    "play": "the answer was not right",
    "pool check": "a check failed",
    "run": "an instance crashed",
    "table": "a stored evaluation of `--official` comes out otherwise",
    "variants": "`--check` applies: a variant fails",
    "verify": "a certificate does not hold, or was not checked within its budget",
}
EXIT_CODES: dict[int, str] = {
    0: "done",
    2: "bad usage or input; a line on standard error names it",
    130: "interrupted",
}


def exit_codes(command: str) -> Mapping[int, str]:
    """Return exit code -> meaning for a command, in increasing order."""
    failed = {1: FAILED_CHECKS[command]} if command in FAILED_CHECKS else {}
    return dict(sorted((EXIT_CODES | failed).items()))
