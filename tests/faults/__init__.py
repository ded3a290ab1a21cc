"""What is lost when a part of a cluster is killed in the middle of the work: `python -m tests.faults`."""
