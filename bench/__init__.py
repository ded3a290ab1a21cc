"""Running protocols, recording answers, tables, pages and the command."""

if __name__ != "calibrant.bench":  # one module, one name
    raise ImportError("import calibrant.bench, not bench", name=__name__)
