"""Tables of the paper's appendices that are made where they are asked for: `calibrant report --table F.9A`."""
