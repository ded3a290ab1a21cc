"""YAML as pools and programs have it: read in full, or in the part that plain files need."""
