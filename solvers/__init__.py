"""Exact search, counting and sampling of the models that fit an item's evidence."""

if __name__ != "calibrant.solvers":  # one module, one name
    raise ImportError("import calibrant.solvers, not solvers", name=__name__)
