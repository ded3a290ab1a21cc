"""Agents under the conditions of the paper on extended blickets, learners, and its printed figures, measured."""
