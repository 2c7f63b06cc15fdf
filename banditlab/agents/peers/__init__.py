"""Adapters that let sweeps run agents of other libraries on identical streams (the extra `peers`).

The constructor imports the library: an adapter can be listed and described without it.
"""
