"""Measures whether rows depend on names and orders; see `__main__`."""
