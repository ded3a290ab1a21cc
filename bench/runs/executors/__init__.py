"""Executors of jobs: this process, spawned ones, or the workers of a cluster."""
