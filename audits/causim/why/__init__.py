"""Why a question about a program has several right answers."""
