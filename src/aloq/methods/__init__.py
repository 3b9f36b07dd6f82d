"""ALOQ, its ablations by composition, and the baselines. Each chooses the next simulation."""
