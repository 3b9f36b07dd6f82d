"""`check_belief_model` passes models and refuses broken beliefs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array as JaxArray
from testing_toys import Quadratic, QuadraticModel

from aloq.gp.kernel import SE, Constant
from aloq.methods.history import Array, History
from aloq.methods.interface import State
from aloq.methods.model import Model
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.testing import check_belief_model, problems

NUMBERS = {"numbers": problems()["numbers"]}
CHOICES = {"choices": problems()["choices"]}


@pytest.mark.parametrize(
    ("model", "on"),
    [
        (Model(), NUMBERS),
        pytest.param(Model(), problems(), marks=pytest.mark.slow),
        pytest.param(Model(kernel="matern52"), NUMBERS, marks=pytest.mark.slow),
        pytest.param(Model(kernel=Constant() * SE() + Constant() * SE("policy"), warp="none"), CHOICES, marks=pytest.mark.slow),
        (QuadraticModel(), problems()),
    ],
    ids=["se", "se widely", "matern52", "main effects", "toy"],
)
def test_a_model_passes(model: Any, on: Any) -> None:
    check_belief_model(model, on)


def belief(cls: type[Any]) -> type[Any]:
    """A kind of Quadratic that can be compiled too.

    Its name is part of its structure: JAX 0.10 takes dataclasses of the same fields for the same,
    whatever their class, and would now and then run what was compiled for another kind.
    """
    cls.__annotations__["kind"] = str
    cls.kind = field(default=cls.__name__, metadata={"static": True})
    return jax.tree_util.register_dataclass(dataclass(frozen=True, eq=False)(cls))


@belief
class Negative(Quadratic):
    def mean_and_variance(self, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
        mean, variance = super().mean_and_variance(pi)
        return mean, variance - 10.0


@belief
class Asymmetric(Quadratic):
    def between(self, some: JaxArray, others: JaxArray) -> JaxArray:
        return super().between(some, others) + 0.1 * (some[:, None, 1] - others[None, :, 1])


@belief
class Indefinite(Quadratic):
    def between(self, some: JaxArray, others: JaxArray) -> JaxArray:
        return super().between(some, others) - 5.0


@belief
class TooLittle(Quadratic):
    """Covariances with a policy itself are half its variance."""

    def between(self, some: JaxArray, others: JaxArray) -> JaxArray:
        return 0.5 * super().between(some, others)


@belief
class Worried(Quadratic):
    """Doubts more after another pair."""

    def awaiting(self, x: JaxArray) -> Any:
        return replace(self, cov=2 * self.cov)


@belief
class Excited(Quadratic):
    """Changes its means for a pair that is out."""

    def awaiting(self, x: JaxArray) -> Any:
        return replace(super().awaiting(x), weights=1.5 * self.weights)


@belief
class Hopeful(Quadratic):
    """Expects to learn a little more than it does."""

    def variance_reduction(self, pi: JaxArray, x: JaxArray) -> JaxArray:
        return 1.1 * super().variance_reduction(pi, x)


@belief
class Boundless(Quadratic):
    """Expects to learn more than there is."""

    def variance_reduction(self, pi: JaxArray, x: JaxArray) -> JaxArray:
        return 100 * super().variance_reduction(pi, x)


@belief
class FlatQuadratic(Quadratic):
    """Without the leading axis."""

    def mean(self, pi: JaxArray) -> JaxArray:
        return super().mean(pi)[0]

    def mean_and_variance(self, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
        return super().mean(pi), self._variance(self.sites(pi))


@belief
class Kinked(Quadratic):
    """A root without a slope where it is 0: at every policy that was simulated."""

    def mean_and_variance(self, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
        mean, variance = super().mean_and_variance(pi)
        return mean + 0 * jnp.sqrt(jnp.sum((pi - pi) ** 2)), variance


@belief
class ListedQuadratic(Quadratic):
    """Tables that do not follow a pair."""

    def tables(self, pi: Array, theta: Array) -> Any:
        return StuckTables(self, pi, theta)


class StuckTables:
    def __init__(self, belief: Quadratic, pi: Array, theta: Array) -> None:
        self._belief, self._pi, self._theta = belief, jnp.asarray(pi), jnp.asarray(theta)
        self.mean = np.asarray(belief.mean(self._pi))
        self.variance = np.asarray(belief.mean_and_variance(self._pi)[1])

    def _pairs(self, i: int) -> JaxArray:
        return jnp.concatenate([jnp.tile(self._pi[i], (len(self._theta), 1)), self._theta], axis=1)

    def pair_variance(self, i: int) -> Array:
        return np.asarray(self._belief.pair_mean_and_variance(self._pairs(i))[1])

    def variance_reduction(self, i: int) -> Array:
        return np.asarray(self._belief.variance_reduction(self._pi[i], self._pairs(i)))

    def await_pair(self, i: int, j: int) -> None:
        pass


BROKEN = (Negative, Asymmetric, Indefinite, TooLittle, Worried, Excited, Hopeful, Boundless, FlatQuadratic, Kinked, ListedQuadratic)
KINDS: dict[str, Callable[..., Quadratic]] = {kind.__name__: kind for kind in BROKEN}


@register
@dataclass(frozen=True)
class BrokenBeliefModel(QuadraticModel):
    """Forms a belief of a broken kind."""

    kind: str = "Negative"

    def belief(self, theta: Array, x: Array, y: Array) -> Quadratic:
        sound = super().belief(theta, x, y)
        return KINDS[self.kind](sound.weights, sound.cov, sound.theta)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Asymmetric", r"`between` must be symmetric, but Asymmetric has Cov\(a, b\) and Cov\(b, a\) differ by up to"),
        ("Indefinite", "`between` must be positive semidefinite, but Indefinite has covariances with the eigenvalue -"),
        ("TooLittle", "`between` of a policy with itself must be its variance, but TooLittle has them differ"),
        ("Worried", "`awaiting` must not raise a variance, but Worried raised one by"),
        ("Excited", "`awaiting` must leave means as they are, but Excited has them differ"),
        ("Hopeful", "`variance_reduction` must be what `awaiting` takes from the variance, but Hopeful has them differ"),
        ("Boundless", "`variance_reduction` must be at most the variance, but Boundless has it larger by"),
        ("FlatQuadratic", r"`mean` must have the shape \(1, 6\), but FlatQuadratic gave \(6,\)"),
        ("Kinked", "Slopes of `mean_and_variance` must be finite, also at a policy that was simulated, but Kinked gave"),
        ("ListedQuadratic", "`variance after` in tables must be that of the belief, but StuckTables has it differ"),
    ],
)
def test_a_broken_belief_is_refused(kind: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_belief_model(BrokenBeliefModel(kind), NUMBERS)


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt:RuntimeWarning")
def test_negative_variances_are_refused() -> None:
    with pytest.raises(AssertionError, match="Predictions must be finite, with standard deviations of at least 0, but BrokenBeliefModel"):
        check_belief_model(BrokenBeliefModel("Negative"), NUMBERS)


@pytest.mark.parametrize("kind", ["TooLittle", "Hopeful"])
def test_approximations_pass_where_they_are_said_to_be_some(kind: str) -> None:
    check_belief_model(BrokenBeliefModel(kind), NUMBERS, exact=False)


@register
@dataclass(frozen=True)
class Forgetful(QuadraticModel):
    """Never knows what it has met."""

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        return state is not None


@register
@dataclass(frozen=True)
class Gambler(QuadraticModel):
    """Learns something else each time."""

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        return {"told": len(history.told), "luck": float(np.random.default_rng().uniform())}


@register
@dataclass(frozen=True)
class Meddler(QuadraticModel):
    """Standardises the returns where they are."""

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        history.values[:] -= history.values.mean()
        return super().learn(encoding, history, state, samples, seed, lag)


@register
@dataclass(frozen=True)
class Secretive(QuadraticModel):
    """Its state is more than JSON can hold."""

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        return {"told": len(history.told), "weight": (1, 2)}

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> Any:
        found = super().believe(encoding, history, state, room)
        return found if isinstance(state["weight"], tuple) else replace(found, scale=replace(found.scale, location=0.0))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Forgetful(), "`learnt` must be false once more was told than the state has met, but Forgetful has met 10"),
        (Gambler(), "A model must learn the same from the same data and seed, but Gambler learnt something else"),
        (Meddler(), "Meddler.learn must leave its arguments alone, but `history` was changed"),
        (Secretive(), "A belief must be the same after its state was written as JSON and read, but the means of Secretive were"),
    ],
)
def test_a_broken_model_is_refused(model: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_belief_model(model, NUMBERS)
