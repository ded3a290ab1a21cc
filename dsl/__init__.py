"""The meaning of each benchmark: languages, worlds, items, file formats, scorers and generators."""

if __name__ != "calibrant.dsl":  # one module, one name
    raise ImportError("import calibrant.dsl, not dsl", name=__name__)
