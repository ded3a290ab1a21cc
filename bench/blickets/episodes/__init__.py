"""Episodes at a detector for readers and players: timelines, a text environment, words for actions."""
