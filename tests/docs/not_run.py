"""The one list of blocks of code that no test runs: where each stands, what it begins with, why, and how far it is looked at.

`tests/docs/test_not_run.py` keeps it true in both directions: each entry is one block of its page, and a block that is not
here is run by `tests/docs/test_pages.py`, or by the test that RUN_BY names for its page.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

INSTALLS = "it installs into the environment it runs in; .ci/run does the same"
NO_CLUSTER = "10.0.0.1 is nobody here; tests/engine/test_cluster.py plays the same commands on workers of this machine"
NO_QUEUE = (
    "no batch queue is here, nor SLURM's `sbatch --test-only`; tests/results/test_merge.py plays and merges parts"
)


class NotRun(NamedTuple):
    """A block that no test runs: its page, its first line, why.

    `looked_at` is "parsed": bash reads it, and our commands and Dask's in it by their own parsers; or "stand-in": it is run
    with a class of that name in the place of the cluster's, and a sweep that only takes its arguments.
    """

    page: str
    begins: str
    why: str
    looked_at: Literal["parsed", "stand-in"] = "parsed"


NOT_RUN = (
    NotRun("index.md", "pip install -e .", INSTALLS),
    NotRun("start.md", "python3 -m venv .venv", INSTALLS),
    NotRun("how-to/build-this-site.md", 'pip install -e ".[docs]"', INSTALLS),
    NotRun("how-to/build-this-site.md", "python -m docs", "it builds this very page; .ci/run runs it"),
    NotRun("how-to/notebooks.md", 'pip install -e ".[notebooks]"', INSTALLS),
    NotRun("tutorials/foreign-environments.md", "pip install buffalo-gym popgym gymnasium", INSTALLS),
    NotRun("README.md", "python3 -m venv .venv && ", INSTALLS),
    NotRun("README.md", '. .venv/bin/activate && pip install -e ".[test]"', "it runs the tests; .ci/run does the same"),
    NotRun("CONTRIBUTING.md", "python3 -m venv .venv && ", "it runs the tests; .ci/run does the same"),
    NotRun("cluster.md", 'pip install -e ".[cluster]"', NO_CLUSTER),
    NotRun("cluster.md", "export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem", NO_CLUSTER),
    NotRun("cluster.md", "dask scheduler --host 10.0.0.1 --port 8786", NO_CLUSTER),
    NotRun("cluster.md", "from dask_jobqueue import SLURMCluster", "no SLURM is here", "stand-in"),
    NotRun("cluster.md", "from dask_kubernetes.operator import KubeCluster", "no Kubernetes is here", "stand-in"),
    NotRun("cluster.md", "#!/bin/bash", NO_QUEUE),
    NotRun("cluster.md", "sbatch parts.sh", NO_QUEUE),
)
RUN_BY = {
    "errata.md": "tests/test_errata.py",
    "tutorials/from-table-to-production.md": "tests/policy/test_tutorial.py",
    "tutorials/another-policy.md": "tests/policy/test_tutorial_logs.py",
    "tutorials/which-model.md": "tests/policy/test_tutorial.py",
}
"""Pages whose blocks another test runs: as one script with a server in it, or against printed numbers."""
