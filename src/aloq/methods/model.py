"""Models, which learn from returns and make beliefs.

state   data that a model carries from step to step: plain JSON, written to the journal
lag     share by which the data may grow after a model learnt, before it learns again
room    pairs that will join a belief as being out for simulation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from aloq.gp.amplitude import varying
from aloq.gp.contraction import weighted_nodes
from aloq.gp.fit import Chains, Scale, update
from aloq.gp.hyper import Structure
from aloq.gp.kernel import KERNELS, Constant, Kernel, Prior, check_prior
from aloq.gp.posterior import Points
from aloq.gp.warp import WARPS
from aloq.methods.chain_state import chains_from_state, state_of_chains
from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.last_result import keep_last_result
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError, nearest
from aloq.problem.objective import Expectation, Objective
from aloq.quadrature.closed_form import ClosedForm, believe
from aloq.quadrature.surprise import Surprise

T = TypeVar("T")

VARYING = "varying"  # the kernel that is composed for the columns of a problem
# A sample whose covariance cannot be factorised gets a hundred times the noise, up to so often.
MORE_NOISE, ATTEMPTS = float(np.log(100)), 12
ROOMY = 160.0  # pairs up to which a batch is chosen with all samples

# Questions between two trials, such as which policy is best, need the same belief as the choice of
# the next trial.
_update, _believe = keep_last_result(update), keep_last_result(believe)


class BeliefModel(Protocol):
    """A model learns from told data and makes beliefs.

    Implementations are frozen, and registered with `aloq.problem.codec`.
    """

    def serves(self, objective: Objective) -> bool:
        """Return whether it can make a belief about this objective."""
        ...

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        """Return the state that takes the told data into account.

        If the state before is recent enough, it is returned.
        """
        ...

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        """Return whether the data have grown by a share of at most `lag` since the state learnt."""
        ...

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        """Return the belief, given the pairs that were told and those that are out."""
        ...


@register
@dataclass(frozen=True)
class Model:
    """A Gaussian process of the return, averaged over the environment in closed form.

    `kernel` is a name, or a kernel composed of others. The name "varying" stands for main
    effects and an amplitude that varies with the environment (see `aloq.gp.amplitude.varying`).
    A composed kernel has its own priors of variances and length scales. A prior is (mean,
    standard deviation) of the logarithm. With `rounded`, hyperparameter samples are kept in half
    precision, and a journal takes an eighth of the space. With `surprises`, the standard
    deviation of fbar allows for as many (see `aloq.quadrature.surprise`).
    """

    kernel: str | Kernel = "se"
    warp: str = "beta"
    variance: Prior = (0.0, 1.0)
    length_scale: Prior = (0.0, 0.75)
    shape: Prior = (0.0, 0.5)
    noise: Prior = (-8.0, 4.0)
    rounded: bool = False
    surprises: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            _check_choice("kernel", self.kernel, (*KERNELS, VARYING))
        _check_choice("warp", self.warp, WARPS)
        for name in ("variance", "length_scale", "shape", "noise"):
            object.__setattr__(self, name, check_prior(name, getattr(self, name)))
        if not self.surprises >= 0:
            raise ProblemError(f"`surprises` must be 0 or more, but it is {self.surprises!r}.")

    def structure(self, policy_dim: int, warped: tuple[bool, ...]) -> Structure:
        """Return the structure of the model applied to columns of the unit cube."""
        kernel = self.kernel
        if kernel == VARYING:
            kernel = varying(policy_dim, warped, self.variance, self.length_scale)
        elif isinstance(kernel, str):
            kernel = Constant(self.variance) * KERNELS[kernel](length_scale=self.length_scale)
        return Structure(kernel, policy_dim, warped, self.warp, self.shape, self.noise)

    @property
    def has_paths(self) -> bool:
        """Whether paths can be drawn, as all objectives but the expectation need."""
        return not isinstance(self.kernel, Kernel) or self.kernel.has_paths

    def serves(self, objective: Objective) -> bool:
        return isinstance(objective, Expectation)

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        if state is not None and self.learnt(history, state, lag):
            return state
        known = history.distinct()
        y = Scale.of(known.values).standardise(known.values)
        return state_of_chains(_update(self._structure(encoding), known.told, y, chains_from_state(state), samples, seed), self.rounded)

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        chains = chains_from_state(state)
        return chains is not None and chains.told <= len(history.distinct().told) <= (1 + lag) * chains.told

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        chains, turn, history = chains_from_state(state), history.asked, history.distinct()
        if chains is None:
            raise ProblemError("A model must learn before it believes, but the state holds no samples of its hyperparameters.")
        known, scale = history.known, Scale.of(history.values)
        if room:
            chains = _thinned(chains, len(known) + room, turn)
        size = padded_size(len(known) + room)
        told, out = np.ones(len(history.told)), np.ones(len(known))
        parts: list[Any] = [pad(part, size) for part in (known, scale.standardise(history.values), told, out)]
        structure = self._structure(encoding)

        def closed(zeta: NDArray[np.float64]) -> tuple[ClosedForm, Any]:
            made = _believe(structure, zeta, Points(*parts), weighted_nodes(encoding))
            return made, made.given.weights

        belief = solved(structure, chains.zeta, closed)
        span = float(np.ptp(scale.standardise(history.values)))
        wary = self.surprises and encoding.factors  # without environments, returns differ by noise
        surprise = Surprise(encoding, history.told, span, belief.given, self.surprises) if wary else None
        return ScaledBelief(encoding, belief, scale, surprise=surprise)

    def _structure(self, encoding: Encoding) -> Structure:
        return self.structure(encoding.policy_dim, tuple(encoding.warped))


def solved(structure: Structure, zeta: NDArray[np.float64], make: Callable[[NDArray[np.float64]], tuple[T, Any]]) -> T:
    """Return a belief under zeta, (..., P), with more noise in samples under which the covariance
    cannot be factorised.

    Where f hardly has noise and its amplitude varies by orders of magnitude, the noise may be less
    than rounding. Nothing is known from such a sample, and one of them would spoil the average.
    `make` returns the belief under other samples, and its weights, (..., n), which tell.
    """
    for _ in range(ATTEMPTS):
        belief, weights = make(zeta)
        failed = ~np.isfinite(np.asarray(weights)).all(axis=-1)
        if not failed.any():
            break
        zeta = zeta + MORE_NOISE * failed[..., None] * structure.named("noise")
    return belief


def _thinned(chains: Chains, size: int, turn: int) -> Chains:
    """Return a part of the samples, another one each time.

    The more pairs there are, the smaller the part, so that a batch is chosen fast.
    """
    # The step depends on the padded size and is a power of two, so that few shapes are compiled.
    count, wanted, step = len(chains.zeta), (padded_size(size) / ROOMY) ** 2, 1
    while 2 * step <= min(wanted, count // 4):
        step *= 2
    return replace(chains, zeta=chains.zeta[turn % step :: step])


def _check_choice(what: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ProblemError(f"`{what}` must be one of {', '.join(map(repr, known))}, but it is {value!r}.{nearest(str(value), known)}")


# Main effects, and an amplitude that varies with the environment. With an amplitude, warps are in
# the way: both explain why f varies more in one place, and the warp explains it worse.
VARYING_MODEL = Model(kernel=VARYING, warp="none", rounded=True, surprises=3)
