"""Agents for blicket episodes that are not exact: the paper's three ways of prompting, and a grid of simple ones."""
