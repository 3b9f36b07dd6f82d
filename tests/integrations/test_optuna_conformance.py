"""Optuna's own tests of samplers. Of its four suites, the one for several objectives does not apply: the sampler refuses those."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from integrations_stub import LOADS, Sobol

pytest.importorskip("optuna")
suites = pytest.importorskip("optuna.testing.pytest_samplers", reason="this Optuna has no such tests")

from aloq.integrations.optuna import ALOQSampler  # noqa: E402
from aloq.methods.aloq import ALOQ  # noqa: E402


class TestSampler(suites.BasicSamplerTestCase, suites.RelativeSamplerTestCase, suites.SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], ALOQSampler]:
        return lambda: ALOQSampler(LOADS, method=Sobol())


@pytest.mark.slow
class TestSamplerWithItsModel(TestSampler):
    @pytest.fixture
    def sampler(self) -> Callable[[], ALOQSampler]:
        """With so short a design that most trials come from the model, and few samples, since this is not about how good they are."""
        return lambda: ALOQSampler(LOADS, method=ALOQ(initial=2, samples=2))
