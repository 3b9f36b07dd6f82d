from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for inference_truth

from aloq.gp.numerics import CACHE_VARIABLE


@pytest.fixture(scope="module", autouse=True)
def _no_cache_on_disk() -> Iterator[None]:
    """A test must not depend on compiled programs that an earlier run left on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, "off")
        yield
