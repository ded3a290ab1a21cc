"""Answers read from files of predictions, scored, and written as lines."""
