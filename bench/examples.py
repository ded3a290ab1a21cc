"""Examples of every command, as its help shows them; tests parse each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
        "calibrant table runs --by stratum --columns n,TrainExact,HeldoutExact",
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
    "pool alternatives": ("calibrant pool alternatives pool.yaml alternative_scm.jsonl --seed 1",),
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
    """Return the examples of a command as the end of its help: a line each, as it stands."""
    lines = "\n".join(f"  {line}" for line in EXAMPLES.get(command, ()))
    return f"Examples:\n\n\b\n{lines}" if lines else None
