"""ALOQ, its ablations by composition, and the baselines: each chooses what to simulate next."""
