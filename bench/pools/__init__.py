"""Pools as files: those that come with the package, checks, statistics, and pools that commands make."""
