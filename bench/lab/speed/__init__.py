"""Micro-benchmarks: how much faster than what, measured in one run. `python -m calibrant.bench.lab.speed --help`."""
