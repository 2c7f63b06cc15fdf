"""Very fast decision trees: river's, a compiled one, and a booster's compiled trees as one kernel takes them."""
