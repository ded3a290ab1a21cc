"""Protocols of CausaLab."""
