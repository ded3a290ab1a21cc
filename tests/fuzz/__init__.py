"""Fuzzers of the two doors through which untrusted input comes in: answers to be scored, and pool files.

    python -m tests.fuzz submissions --count 1000000 --seed 1
    python -m tests.fuzz responses --count 200000 --seed 1 --workers 2
    python -m tests.fuzz pools --count 10000 --seed 1 --workers 2

A case is determined by the seed and its number alone, so `--first 4711 --count 1` repeats one.
"""
