"""People in tests: the lines that a person types to solve an item, and pools of each kind."""
