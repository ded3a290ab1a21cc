"""Tests of the benchmark of logic models."""
