"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# The same examples on every run, and no deadline: the first call of a JAX function compiles.
settings.register_profile("aloq", derandomize=True, deadline=None)
settings.load_profile("aloq")
