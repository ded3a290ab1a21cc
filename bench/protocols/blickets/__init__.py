"""Rows of the extended blickets."""
