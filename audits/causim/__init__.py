"""Findings about CauSim models, questions, pipelines and printed tables, each with a proof or left open."""
