"""Play in the browser: a server on the loopback interface, one page, games that survive reloads and kills."""
