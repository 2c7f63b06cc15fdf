"""Very fast decision trees, and all trees of a booster in one structure for a compiled kernel."""
