"""Mutation testing: small faults put into one module at a time, and the tests that should notice them."""
