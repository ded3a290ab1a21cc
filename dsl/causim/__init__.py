"""CauSim: causal questions about a structural causal model that is given as a program or as prose."""
