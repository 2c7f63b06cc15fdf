"""`python -m benchmarks NAME`: one table per file of this folder. Nothing is asserted; the tests do that."""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from benchmarks import digits, estimator, forecasters

TABLES = {"digits": digits.main, "estimator": estimator.main, "forecasters": forecasters.main}


def main() -> None:
    """Print the table that was asked for, with BLAS on one thread."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(TABLES))
    parser.add_argument("--streams", type=int, help="peers only: over how many streams the medians are taken")
    given = parser.parse_args()
    if given.streams is not None and given.name != "peers":
        parser.error(f"{given.name} takes no --streams")
    with threadpool_limits(1):
        TABLES[given.name](**({} if given.streams is None else {"streams": given.streams}))


if __name__ == "__main__":
    main()
