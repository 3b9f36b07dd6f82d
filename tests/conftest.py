"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples on every run, and no deadline: the first call of a JAX function compiles.
settings.register_profile("aloq", derandomize=True, deadline=None)
settings.load_profile("aloq")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the physics engine where it cannot be loaded, and say what is missing."""
    if item.get_closest_marker("hexapod") is None:
        return
    # Not above: what is imported there is imported before warnings are errors.
    from aloq.problem.errors import UnavailableError
    from aloq.tasks.hexapod.extra import dart

    try:
        dart()
    except UnavailableError as error:
        pytest.skip(str(error))
