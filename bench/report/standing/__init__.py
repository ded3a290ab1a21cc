"""Answers of any benchmark by setting and system: rows, tables of its views with intervals, the plot of kinds."""
