"""`python -m banditlab` runs the command line `banditlab`."""

from __future__ import annotations

from banditlab.cli.main import main

if __name__ == "__main__":
    main()
