"""`python -m benchmarks NAME`: one table per file of this folder. Nothing is asserted; the tests do that."""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from benchmarks import digits, estimator, forecasters, peers

TABLES = {"digits": digits.main, "estimator": estimator.main, "forecasters": forecasters.main, "peers": peers.main}


def main() -> None:
    """Print the table that was asked for, with BLAS on one thread."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(TABLES))
    parser.add_argument("--streams", type=int, help="peers only: over how many streams the medians are taken")
    parser.add_argument("--jobs", type=int, help="peers only: how many agents are measured at a time")
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    table = given.pop("name")
    if given and table != "peers":
        parser.error(f"{table} takes no --{next(iter(given))}")
    with threadpool_limits(1):
        TABLES[table](**given)


if __name__ == "__main__":
    main()
