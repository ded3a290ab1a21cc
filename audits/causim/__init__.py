"""What can be proved about CauSim models, questions, pipelines and printed tables."""
