"""Numerical tools without statistics: precision, padding, compilation, threads, minimisation."""
