"""Findings about items of any benchmark that claims things through audits.claims: found, shown, written, checked."""
