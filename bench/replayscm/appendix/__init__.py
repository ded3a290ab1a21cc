"""Tables of the paper's appendices, made where they are asked for: `calibrant report --table F.9A`."""
