"""Methods that are not exact."""

if __name__ != "calibrant.baselines":  # one module, one name
    raise ImportError("import calibrant.baselines, not baselines", name=__name__)
