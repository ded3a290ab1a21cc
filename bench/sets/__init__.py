"""Answers that are sets: several hypotheses for an item, scored by how many of all that fit they recover."""
