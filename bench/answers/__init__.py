"""Scored answers: rates, intervals, names of systems."""
