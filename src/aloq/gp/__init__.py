"""Belief about f(pi, theta): kernel, warp, hyperpriors, hyperparameter sampling, posterior."""
