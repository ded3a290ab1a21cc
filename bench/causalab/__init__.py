"""What is shown about CausaLab beside the tables of runs: its calibration rows over the released suites."""
