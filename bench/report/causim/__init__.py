"""CauSim in a report."""
