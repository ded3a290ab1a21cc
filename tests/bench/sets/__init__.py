"""Tests of answers that are sets."""
