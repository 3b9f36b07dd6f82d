from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gp")]  # for acquisition_beliefs and gp_dense

from aloq.gp.blas import single_threaded  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _float64() -> Iterator[None]:
    """As `aloq.gp.numerics.computing`, but without compiled programs on disk: a test must not depend on what an earlier run left there."""
    with jax.enable_x64(True), single_threaded():
        yield
