"""The command `python -m calibrant.bench.lab.extended`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping

from calibrant.bench.lab.extended.calibration import calibration_lines
from calibrant.bench.lab.extended.enumerated import enumerated_lines
from calibrant.bench.lab.extended.minima import bundled_lines, mean_lines
from calibrant.bench.lab.extended.noisy import deciding_lines, hidden_lines, protocol_lines
from calibrant.bench.lab.extended.text_use import text_lines

MEASUREMENTS: Mapping[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "calibration": lambda options: calibration_lines(options.items, options.seed),
    "means": lambda options: mean_lines(options.items, options.strata.split(",")),
    "bundled": lambda options: bundled_lines(options.items),
    "enumerated": lambda options: enumerated_lines(options.items, options.rates.split(",")),
    "noisy": lambda options: deciding_lines(options.items, options.variables, options.rates.split(","), options.worlds),
    "hidden": lambda options: hidden_lines(options.items, options.variables),
    "protocol": lambda options: protocol_lines(
        options.items, options.variables, options.rates.split(","), [int(text) for text in options.hidden.split(",")]
    ),
    "text": lambda options: text_lines(options.items),
}
"""What is measured, by name."""


def main(arguments: list[str] | None = None) -> int:
    """Run one measurement and print its lines."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.extended", description=__doc__)
    parser.add_argument("name", choices=MEASUREMENTS)
    parser.add_argument("--items", type=int, default=5, help="items of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variables", type=int, default=6, choices=(6, 8, 10), help="observed variables")
    parser.add_argument("--rates", default="1/50,1/20,1/10,1/5")
    parser.add_argument("--hidden", default="0,1,2", help="numbers of hidden variables, of `protocol`")
    parser.add_argument("--worlds", type=int, help="allowance of `noisy`, by default the stratum's")
    parser.add_argument("--strata", default="hs_n6_easy_calibration")
    for line in MEASUREMENTS[parser.parse_args(arguments).name](parser.parse_args(arguments)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
