"""Simulated participants by hand: `python -m tests.people --help`."""
