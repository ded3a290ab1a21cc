"""ReplaySCM for people: words, views of pages, and checks while a formula is typed."""
