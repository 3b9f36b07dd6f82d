"""p(environment) from physical trials.

`infer` is for noise with a density, `infer_abc` for noise inside the simulator.
"""

from __future__ import annotations

from aloq.inference.abc import Population, Rejection, infer_abc
from aloq.inference.emulator import Emulator
from aloq.inference.infer import infer
from aloq.inference.noise import GaussianNoise
from aloq.inference.posterior import Posterior
from aloq.inference.slice import SliceSampler

__all__ = ["Emulator", "GaussianNoise", "Population", "Posterior", "Rejection", "SliceSampler", "infer", "infer_abc"]
