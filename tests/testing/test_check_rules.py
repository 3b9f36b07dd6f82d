"""The checks of rules pass aloq's own and refuse broken ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array as JaxArray
from testing_toys import Doubtful, QuadraticModel

from aloq.acquisition.environment import EnvironmentRule, RandomDraw, Scored, UncertaintySampling, VarianceReduction
from aloq.acquisition.improvement import VisitedEI
from aloq.acquisition.pair import PairRule
from aloq.acquisition.policy import EI, UCB, Pointwise, PolicyRule
from aloq.methods.history import Array
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief, Tables
from aloq.testing import check_environment_rule, check_pair_rule, check_policy_rule, problems

SOME = {name: problems()[name] for name in ("numbers", "archive")}


@pytest.mark.parametrize(
    "rule", [UCB(), EI(), pytest.param(VisitedEI(draws=8), marks=pytest.mark.slow)], ids=lambda rule: type(rule).__name__
)
def test_a_rule_for_policies_passes(rule: PolicyRule) -> None:
    check_policy_rule(rule)
    check_policy_rule(rule, model=QuadraticModel())


@pytest.mark.parametrize("rule", [VarianceReduction(), UncertaintySampling()], ids=lambda rule: type(rule).__name__)
def test_a_rule_for_environments_passes(rule: EnvironmentRule) -> None:
    check_environment_rule(rule)
    check_environment_rule(rule, model=QuadraticModel())


def test_environments_as_they_come_may_be_taken() -> None:
    check_environment_rule(RandomDraw(), avoids_taken=False)
    with pytest.raises(AssertionError, match=r"must avoid the environments that are taken while others are left, but RandomDraw chose"):
        check_environment_rule(RandomDraw())


def test_a_rule_for_pairs_passes() -> None:
    check_pair_rule(Doubtful(), SOME, QuadraticModel())


@register
@dataclass(frozen=True)
class Whole(PolicyRule):
    """One score for all."""

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        return jnp.mean(belief.mean(pi))


@register
@dataclass(frozen=True)
class Relative(PolicyRule):
    """Compares candidates with each other."""

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        mean = jnp.mean(belief.mean(pi), axis=0)
        return mean - jnp.max(mean)


@register
@dataclass(frozen=True)
class Steep(PolicyRule):
    """The distance from the incumbent, by a root that has no slope there."""

    def reference(self, belief: Belief, known: Array, incumbent: Array, seed: list[int]) -> Array:
        return incumbent

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        return jnp.sqrt(jnp.sum((pi - reference) ** 2, axis=1))


@register
@dataclass(frozen=True)
class Moody(PolicyRule):
    """Another reference each time."""

    moods: ClassVar[Iterator[float]] = iter(np.random.default_rng(0).uniform(size=100).tolist())

    def reference(self, belief: Belief, known: Array, incumbent: Array, seed: list[int]) -> float:
        return next(self.moods)

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        return reference * jnp.mean(belief.mean(pi), axis=0)


@register
@dataclass(frozen=True)
class TwoFaced(Pointwise):
    """Says one thing of a mean and a standard deviation, and another of a belief."""

    def score_of(self, mean: Any, std: Any) -> Any:
        return mean + std

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        return jnp.mean(belief.mean(pi), axis=0)


@register
@dataclass(frozen=True)
class Unhashed(PolicyRule):
    weights: tuple[float, ...] = (1.0,)

    def score(self, belief: Belief, pi: JaxArray, reference: Any) -> JaxArray:
        return jnp.mean(belief.mean(pi), axis=0)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Whole(), r"`score` must give a number for each policy, but Whole gave the shape \(\) for 6"),
        (Relative(), "must not depend on the other candidates, since lists of them are padded, but Relative has scores differ"),
        (Steep(), "Slopes of `score` must be finite, also at a policy that was simulated, but Steep gave"),
        (Moody(), "`reference` must be the same for the same seed, but Moody gave another one"),
        (TwoFaced(), "The `score` of a Pointwise rule must be `score_of` its mean and standard deviation, but TwoFaced"),
        (Unhashed((1.0, 2.0)), r"Unhashed must be equal to itself after JSON, but Unhashed\(weights=\(1.0, 2.0\)\) came back as"),
        ("ucb", "must be a subclass of aloq.acquisition.policy.PolicyRule, but str is none"),
    ],
)
def test_a_broken_rule_for_policies_is_refused(rule: PolicyRule, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_policy_rule(rule, model=QuadraticModel())


@register
@dataclass(frozen=True)
class Nowhere(EnvironmentRule):
    """Between the listed environments."""

    def choose(self, belief: Belief, encoding: Any, pi: Array, taken: Array, seed: list[int], chance: Any = None) -> Array:
        return np.full(encoding.environment_dim, 0.4321)


@register
@dataclass(frozen=True)
class Greedy(EnvironmentRule):
    """Takes away what was given to it."""

    def choose(self, belief: Belief, encoding: Any, pi: Array, taken: Array, seed: list[int], chance: Any = None) -> Array:
        return encoding.draw_environments(np.full((1, seed.pop()), 0.5))[0]


@register
@dataclass(frozen=True)
class Averaged(Scored):
    """Has lost the leading axis."""

    def gain(self, belief: Belief, pi: JaxArray, x: JaxArray) -> JaxArray:
        return jnp.mean(belief.variance_reduction(pi, x), axis=0)

    def listed_gain(self, tables: Tables, i: int) -> Array:
        return tables.variance_reduction(i)


@register
@dataclass(frozen=True)
class Mixed(Scored):
    """Asks tables for something else than the belief."""

    def gain(self, belief: Belief, pi: JaxArray, x: JaxArray) -> JaxArray:
        return belief.variance_reduction(pi, x)

    def listed_gain(self, tables: Tables, i: int) -> Array:
        return tables.pair_variance(i)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Nowhere(), r"Nowhere must choose a possible environment, but it chose \[0.4321\], and the nearest possible one is"),
        (Greedy(), r"Greedy.choose must leave its arguments alone, but `seed` was changed to \[0, 10\]"),
        (Averaged(), r"`gain` must be finite and have the shape \(4, 5\)"),
        (Mixed(), "`listed_gain` must be what `gain` is, but Mixed has them differ"),
        (UCB(), "must be a subclass of aloq.acquisition.environment.EnvironmentRule, but UCB is none"),
    ],
)
def test_a_broken_rule_for_environments_is_refused(rule: EnvironmentRule, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_environment_rule(rule)


@register
@dataclass(frozen=True)
class StubbornPairs(PairRule):
    """Always the same pair."""

    def choose(self, belief: Belief, encoding: Any, known: Array, incumbent: Array, taken: Array, seed: list[int]) -> Array:
        return np.concatenate([incumbent, encoding.draw_environments(np.full((1, len(encoding.factors)), 0.5))[0]])


@register
@dataclass(frozen=True)
class Half(PairRule):
    """A policy without an environment."""

    def choose(self, belief: Belief, encoding: Any, known: Array, incumbent: Array, taken: Array, seed: list[int]) -> Array:
        return incumbent


@register
@dataclass(frozen=True)
class Between(PairRule):
    """Between whole numbers."""

    def choose(self, belief: Belief, encoding: Any, known: Array, incumbent: Array, taken: Array, seed: list[int]) -> Array:
        return np.full(encoding.policy_dim + encoding.environment_dim, 0.123)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (StubbornPairs(), "must avoid the pairs that are taken while others are left, but StubbornPairs chose"),
        (Half(), "Half must choose a pair as an array of 3 finite numbers of double precision, but it chose"),
        (Between(), "Between must choose a possible policy, but it chose"),
        (EI(), "must be a subclass of aloq.acquisition.pair.PairRule, but EI is none"),
    ],
)
def test_a_broken_rule_for_pairs_is_refused(rule: PairRule, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_pair_rule(rule, SOME, QuadraticModel())
    if isinstance(rule, StubbornPairs):
        check_pair_rule(rule, SOME, QuadraticModel(), avoids_taken=False)


def test_a_rule_that_cannot_be_written_is_refused() -> None:
    @dataclass(frozen=True)
    class Unwritten(UCB):
        pass

    with pytest.raises(ProblemError, match="a dataclass must be registered to be written as JSON, but Unwritten is not"):
        check_policy_rule(Unwritten(), model=QuadraticModel())
