"""SCMs and formulas of a table of Boolean columns."""
