"""Belief about fbar(pi), the return of a policy averaged over the environment."""
