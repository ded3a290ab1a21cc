"""Consistency over copies of items, as a section of a report."""
