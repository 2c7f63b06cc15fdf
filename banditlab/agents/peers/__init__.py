"""Adapters for agents of other libraries, so that sweeps run them on identical streams (the extra `peers`).

The constructor imports the library: an adapter can be listed and described without it.
"""
