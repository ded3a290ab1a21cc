"""CausaLab in reports: views by suite, the paper's Tables 3 to 12, plots of kinds, pictures of graphs."""
