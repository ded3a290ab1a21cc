"""Commands on suites: release and board."""
