"""What others may bring along: a belief without a Gaussian process, a kernel, a rule for pairs.

Each runs whole studies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array as JaxArray
from methods_play import PROBLEM, SMALL

from aloq.acquisition.pair import PairRule
from aloq.gp.fit import Scale
from aloq.gp.kernel import SE, Constant, Stationary
from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import State
from aloq.methods.model import Model
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.problem.objective import Expectation, Objective
from aloq.quadrature.belief import Belief
from aloq.study.study import Study


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Neighbours:
    """Believes a weighted mean of what was told nearby, and doubts where nothing was.

    Environments are all alike to it.
    """

    x: JaxArray  # (n, D)
    y: JaxArray  # (n,)
    seen: JaxArray  # (n,) 1 for pairs told or out, 0 for padding

    rounding = property(lambda self: jnp.full(1, 1e-12))
    noise = property(lambda self: jnp.full(1, 1e-2))

    def mean(self, pi: JaxArray) -> JaxArray:
        return self.mean_and_variance(pi)[0]

    def mean_and_variance(self, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
        near = jnp.exp(-50 * jnp.sum((pi[:, None] - self.x[None, :, : pi.shape[1]]) ** 2, axis=-1)) * self.seen
        return ((near @ self.y) / (near.sum(axis=1) + 0.1))[None], (1 / (1 + near.sum(axis=1)))[None]

    def sites(self, pi: JaxArray) -> JaxArray:
        return pi

    def between(self, some: JaxArray, others: JaxArray) -> JaxArray:
        return 0.1 * jnp.exp(-50 * jnp.sum((some[:, None] - others[None]) ** 2, axis=-1))[None]

    def pair_mean_and_variance(self, x: JaxArray) -> tuple[JaxArray, JaxArray]:
        return self.mean_and_variance(x[:, : self.x.shape[1] - 1])

    def variance_reduction(self, pi: JaxArray, x: JaxArray) -> JaxArray:
        return jnp.min(jnp.sum((x[:, None] - self.x[None]) ** 2, axis=-1) + 9 * (1 - self.seen), axis=1)[None]

    def awaiting(self, x: JaxArray) -> Self:
        place = jnp.sum(self.seen).astype(int)
        y = self.mean(x[None, :-1])[0, 0]
        return replace(self, x=self.x.at[place].set(x), y=self.y.at[place].set(y), seen=self.seen.at[place].set(1.0))


@register
@dataclass(frozen=True)
class NeighbourModel:
    """Learns nothing but how much it was told."""

    def serves(self, objective: Objective) -> bool:
        return isinstance(objective, Expectation)

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        return {"told": len(history.told)}

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        return bool(state) and state["told"] == len(history.told)  # type: ignore[index]

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        scale, size = Scale.of(history.values), padded_size(len(history.known) + room)
        y = np.append(scale.standardise(history.values), np.zeros(len(history.pending)))
        parts: list[Any] = [pad(part, size) for part in (history.known, y, np.ones(len(y)))]
        return ScaledBelief(encoding, Neighbours(*parts), scale)


@register
@dataclass(frozen=True)
class Exponential(Stationary):
    """exp(-Σ |gap|): a kernel that aloq does not have."""

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        return jnp.exp(-sum((jnp.abs(gap) for gap in gaps), 0 * ones))


@register
@dataclass(frozen=True)
class MostDoubt(PairRule):
    """The pair of highest variance among some drawn at random."""

    def choose(self, belief: Belief, encoding: Encoding, known: Array, incumbent: Array, taken: Array, seed: list[int]) -> Array:
        rng = np.random.default_rng(seed)
        pi = encoding.snap_policies(rng.uniform(size=(64, encoding.policy_dim)))
        theta = encoding.spread_environments(rng.uniform(size=(64, len(encoding.factors))))
        x = np.concatenate([pi, encoding.snap_environments(theta)], axis=1)
        return x[int(np.argmax(np.asarray(belief.pair_mean_and_variance(jnp.asarray(x))[1]).mean(axis=0)))]


METHODS = {
    "belief": replace(SMALL, model=NeighbourModel()),
    "kernel": replace(SMALL, model=Model(kernel=Constant() * Exponential() + Constant() * SE("policy"), warp="none")),
    "pair rule": replace(SMALL, pair_rule=MostDoubt()),
}


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Best at 0.7 where nothing happens, and ruined there by the rare payload."""
    p = policy["p"]
    return float(-((p - 0.7) ** 2) - 30.0 * (environment["payload"] > 5) * max(p - 0.5, 0.0))


def truth(p: float) -> float:
    return float(-((p - 0.7) ** 2) - 0.01 * 30.0 * max(p - 0.5, 0.0))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("together", [1, 4])
def test_a_whole_study(name: str, together: int, tmp_path: Any) -> None:
    """Serial and in batches: resumed half-way with the same trials as without, and the best
    policy is one of those simulated.
    """
    method, path = METHODS[name], tmp_path / "study.jsonl"
    studies = Study(PROBLEM, method), Study(PROBLEM, method, journal=path)
    while studies[0].evaluations < 24:
        for study in studies:
            for trial in study.ask(together):
                study.tell(trial, simulate(trial.policy, trial.environment))
        if studies[0].evaluations == 12:
            studies[1].close()
            studies = studies[0], Study.resume(path)
    assert studies[0].trials().equals(studies[1].trials())
    pairs = studies[0].trials()[["policy.p", "environment.payload"]]
    assert len(pairs.drop_duplicates()) >= 20
    assert pairs["environment.payload"].nunique() == 3
    best = studies[0].best()
    assert best.policy["p"] in pairs["policy.p"].to_numpy()
    assert best.std > 0
    if name == "kernel":  # the others do not aim at the expectation
        assert truth(best.policy["p"]) > truth(0.55) - 0.02


def test_a_pair_rule_that_is_given_makes_all_choices() -> None:
    """No leader has its turn: all policies after the design are new."""
    study = Study(PROBLEM, METHODS["pair rule"])
    for _ in range(14):
        trial = study.ask()
        study.tell(trial, simulate(trial.policy, trial.environment))
    assert study.trials()["policy.p"].nunique() == 14


def test_a_belief_that_says_nothing_of_its_reasons_makes_a_report(tmp_path: Any) -> None:
    study = Study(PROBLEM, METHODS["belief"])
    study.optimize(simulate, 10, progress=False)
    study.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


@register
@dataclass(frozen=True)
class Median(Objective):
    """An objective that no method here serves."""


@pytest.mark.parametrize("method", [ALOQ(), METHODS["belief"]])
def test_an_objective_that_a_method_cannot_serve_is_refused_when_the_study_is_made(method: ALOQ) -> None:
    problem = replace(PROBLEM, objective=Median())
    with pytest.raises(StudyError, match=r"`objective` must be one that the method can optimise, but ALOQ cannot optimise Median\(\)"):
        Study(problem, method)
    study = Study(PROBLEM, method)
    study.tell(study.ask(), 1.0)
    with pytest.raises(StudyError, match="ALOQ cannot optimise Median"):
        study.best(objective=Median())
    with pytest.raises(StudyError, match="`objective` must be an objective such as"):
        study.best(objective="mean")
    assert study.best(objective=Expectation()).mean == study.best().mean
