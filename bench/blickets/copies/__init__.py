"""Copies of detectors under other names and orders."""
