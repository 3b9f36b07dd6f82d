from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for gp_dense and gp_posteriors

from aloq.gp.blas import single_threaded


@pytest.fixture(scope="module", autouse=True)
def _float64() -> Iterator[None]:
    """As `aloq.gp.numerics.computing`, but without compiled programs on disk: a test must not depend on what an earlier run left there."""
    with jax.enable_x64(True), single_threaded():
        yield
