"""Adapters that let sweeps run agents of other libraries on identical streams (the extra `peers`).

Only the constructor imports the library, so an adapter can be listed and described even if the library is not
installed.
"""
