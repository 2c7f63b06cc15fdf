"""Very fast decision trees, and a booster's trees in the form that one kernel takes."""
