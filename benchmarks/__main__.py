"""`python -m benchmarks NAME`: one table per file of this folder. Nothing is asserted; the tests do that."""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from benchmarks import digits, estimator

TABLES = {"digits": digits.main, "estimator": estimator.main}


def main() -> None:
    """Print the table that was asked for, with BLAS on one thread."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(TABLES))
    with threadpool_limits(1):
        TABLES[parser.parse_args().name]()


if __name__ == "__main__":
    main()
