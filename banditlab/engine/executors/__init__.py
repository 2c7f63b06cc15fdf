"""The executors of a sweep's tasks: this machine (`local`) or a Dask cluster (`cluster`)."""
