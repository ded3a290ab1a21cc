"""Tests of difficulty."""
