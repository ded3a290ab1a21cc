"""Runs of protocols over pools, and their records."""
