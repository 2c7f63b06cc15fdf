"""Very fast decision trees, and a booster's trees as one kernel takes them."""
