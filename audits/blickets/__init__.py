"""Findings about blicket items, episodes and printed statistics, each with a proof or left open."""
