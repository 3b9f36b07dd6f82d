from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gp")]  # for methods_play and gp_dense

from aloq.gp.numerics import CACHE_VARIABLE  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _no_cache_on_disk() -> Iterator[None]:
    """A test must not depend on compiled programs that an earlier run left on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, "off")
        yield
