"""Measures the time of a board with many systems; see `__main__`."""
