"""Speed of CauSim."""
