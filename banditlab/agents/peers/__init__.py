"""Adapters: methods of other libraries as agents, so that sweeps run them on identical streams (the extra `peers`).

The library is imported by the constructor: listing and describing an adapter works without it.
"""
