"""Difficulty of items: exact features against outcomes, item response models, and subsets of a pool."""
