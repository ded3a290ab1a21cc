"""Printed tables of the CauSim paper."""
