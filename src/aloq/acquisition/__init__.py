"""Choose the next simulation: rules for policy and environment, and searches for the best score."""
