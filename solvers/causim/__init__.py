"""Exact engines for causal questions: local lookups, elimination, twin, SAT and enumeration."""
