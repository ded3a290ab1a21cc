"""Copies of questions about programs: other names, values, orders, programs and texts."""
