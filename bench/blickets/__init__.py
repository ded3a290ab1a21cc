"""What is shown about blicket runs: the paper's tables with its rows and ours, and episodes as text."""
