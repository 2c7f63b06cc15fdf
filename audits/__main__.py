"""What is audited by hand, hours each: `python -m audits NAME [--setting VALUE]`."""

from __future__ import annotations

import sys

from benchmarks.__main__ import run_part, use_one_thread

PARTS = {
    "attacks": "kills, flipped bits, replaced inputs, odd files, hostile plug-ins: docs/results/attacks.md",
    "mutants": "random wrong lines in the package, and whether the tests notice them: docs/results/mutants.md",
}

if __name__ == "__main__":
    use_one_thread()
    run_part("audits", __doc__, PARTS, "", sys.argv[1:])
