"""Exact search and counting."""

if __name__ != "calibrant.solvers":  # one module, one name
    raise ImportError("import calibrant.solvers, not solvers", name=__name__)
