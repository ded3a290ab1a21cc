"""Methods on the released suites of CausaLab, labels of generated items, and printed figures, measured."""
