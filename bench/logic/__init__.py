"""Logic models from perturbation data in bench."""
