"""`python -m calibrant`: the command."""

from __future__ import annotations

import sys

from calibrant.bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
