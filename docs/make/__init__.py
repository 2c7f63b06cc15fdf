"""What the documentation site is made of: pages written at build time from docstrings, tables and notebooks."""
