"""Rows of CauSim tables that are not exact: shortcuts, single errors, capped pipelines and chance."""
