"""The command line: `banditlab run, compare, status, report, list, describe, check, new`.

Reads arguments and prints; what it shows is computed by the other rooms, none of which imports it.
"""
