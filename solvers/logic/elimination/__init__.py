"""Elimination of a prior network, node by node, through states of live nodes."""
