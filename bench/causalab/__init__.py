"""Output about CausaLab beside tables of runs: calibration rows over the released suites."""
