"""Runs step by step: what was stated after each, beside what the readings prove; and means over runs."""
