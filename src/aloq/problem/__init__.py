"""What is optimised: variables, distributions, direction, objective. Frozen, and written as JSON."""
