"""Play by people: games in words and in the browser, their journal and records, studies."""
