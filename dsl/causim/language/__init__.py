"""An interpreter for CauSim programs: a subset of Python, parsed here and never executed by Python.

Method: closure generation (Feeley and Lapalme, "Using closures for code generation", 1987). `ast.parse` runs once for
each top-level statement; every node becomes a Python closure `frame -> value`, so a call walks no tree. Samplers run
once per path of random choices (exhaustive enumeration with exact fractions); the table of a mechanism is a forward
dynamic programme over its statements, which merges runs that agree on the live variables.
Invariants: only nodes on an allow list become closures, all others raise `Unsupported`; a bound on size precedes
each allocation; no result depends on the hash seed, the clock or the machine.
Bounds: MAX_STEPS a call, MAX_WORK steps and MAX_ENTRIES table entries a program, MAX_SIZE a string or container,
MAX_DEPTH of nesting (all in `execution_limits`); a table costs one run per distinct live state and statement.
"""
