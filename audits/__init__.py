"""Judgements of items, certificates and hardened items."""

if __name__ != "calibrant.audits":  # one module, one name
    raise ImportError("import calibrant.audits, not audits", name=__name__)
