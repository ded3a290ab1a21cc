"""Suites: releases of pools that certify themselves, and boards of submissions that are scored again."""
