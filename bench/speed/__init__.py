"""Micro-benchmarks: how much faster than what, measured together in one run. `python -m bench.speed --help`."""
