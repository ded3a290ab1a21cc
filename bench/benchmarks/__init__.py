"""One adapter for each benchmark: what runner, records, tables and commands have to know of it, and nothing else."""
