"""Optuna's own tests of samplers.

Of its four suites, the one for several objectives does not apply: the sampler refuses those.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from integrations_stub import LOADS, Sobol

pytest.importorskip("optuna")
pytest.importorskip("optuna.testing.pytest_samplers", reason="this Optuna has no such tests")

from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from aloq.integrations.optuna import ALOQSampler
from aloq.methods.aloq import ALOQ


class TestSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], ALOQSampler]:
        return lambda: ALOQSampler(LOADS, method=Sobol())


@pytest.mark.slow
class TestSamplerWithItsModel(TestSampler):
    @pytest.fixture
    def sampler(self) -> Callable[[], ALOQSampler]:
        """With so short a design that most trials come from the model, and few samples, since this
        is not about how good they are.
        """
        return lambda: ALOQSampler(LOADS, method=ALOQ(initial=2, samples=2))
