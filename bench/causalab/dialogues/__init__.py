"""Items as conversations in the format of the paper."""
