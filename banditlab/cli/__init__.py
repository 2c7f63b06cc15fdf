"""The command line: `banditlab run, compare, status, report, list, describe, check, new`.

This package reads arguments and prints. Other packages compute the output, and none of them imports this one.
"""
