"""Checks for a model and the beliefs that it forms.

s    leading axis: equally likely versions of the belief
pi   (m, d)  policies, of which the first was simulated
x    (q, D)  pairs, of which the first half has the first policy
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from aloq.acquisition.environment import paired
from aloq.methods.history import Array, History
from aloq.methods.interface import State
from aloq.methods.model import BeliefModel
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.compiled import compiled
from aloq.numerics.computing import computing
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.quadrature.belief import Belief, Explains, Tabulates
from aloq.testing.problems import history_of, pairs
from aloq.testing.problems import problems as small_problems
from aloq.testing.requirement import bits, finite, left_alone, noting, require, require_written

TOLD, POLICIES, PAIRS, ROOM = 10, 6, 6, 4
# Of the largest variance. A variance is a difference, and noise of 1e-8 of it leaves half of the
# digits.
ROUNDING = 1e-6


def check_belief_model(model: BeliefModel, problems: Mapping[str, Problem] | None = None, samples: int = 4, exact: bool = True) -> None:
    """Check a model and its beliefs on small data of several problems.

    `samples` is what `learn` is told. A belief is `exact` where `variance_reduction` is what
    `awaiting` does, and where the covariance of a policy with itself is its variance. Say False
    where one of them is an approximation.
    """
    require_written(model, hashable=False)
    for name, problem in (problems or small_problems()).items():
        encoding = problem.encoding
        history = history_of(pairs(encoding, TOLD)).awaiting(pairs(encoding, 1, seed=4)[0])
        with noting(f"{model!r} on the problem {name!r}"), computing():
            state = check_learning(model, encoding, history, samples)
            belief = check_believing(model, encoding, history, state)
            check_belief(belief, encoding, history, exact)


def check_learning(model: BeliefModel, encoding: Encoding, history: History, samples: int) -> State:
    """What is learnt is the same each time, plain JSON, and known to the model as being learnt.

    Returns it.
    """
    name, seed = type(model).__name__, [0, 1]
    with left_alone(f"{name}.learn", history=history, seed=seed):
        state = model.learn(encoding, history, None, samples, seed)
    model.learn(encoding, history, None, samples, [5, 6])  # so that nothing is remembered from the last call
    require(
        bits(model.learn(encoding, history, None, samples, [0, 1])) == bits(state),
        "A model must learn the same from the same data and seed",
        f"{name} learnt something else the second time",
        "Draw all random numbers from np.random.default_rng(seed)",
    )
    check_learnt(model, encoding, history, state)
    more = _more_than(history, encoding)
    with left_alone(f"{name}.learn", state=state):
        model.learn(encoding, more, state, samples, seed)
    return state


def check_learnt(model: BeliefModel, encoding: Encoding, history: History, state: State) -> None:
    """The model knows whether a state has met the data."""
    name = type(model).__name__
    require(
        model.learnt(history, state, 0.0) and not model.learnt(history, None, 0.0),
        "`learnt` must be true of the state that has met the data, and false of None",
        f"{name} says {model.learnt(history, state, 0.0)} and {model.learnt(history, None, 0.0)}",
        "Write into the state how many pairs it has met",
    )
    require(
        not model.learnt(_more_than(history, encoding), state, 0.0),
        "`learnt` must be false once more was told than the state has met",
        f"{name} has met {TOLD} pairs, and says that it has met {4 * TOLD}",
        "Compare the number in the state with `len(history.told)`",
    )


def _more_than(history: History, encoding: Encoding) -> History:
    """A history in which four times as much was told."""
    return history_of(np.concatenate([history.told, pairs(encoding, 3 * TOLD, seed=5)]))


def check_believing(model: BeliefModel, encoding: Encoding, history: History, state: State) -> Belief:
    """The belief is the same after the state was written as JSON. Returns it."""
    name, pi = type(model).__name__, history.told[:POLICIES, : encoding.policy_dim]
    written = json.loads(json.dumps(state, allow_nan=False))
    with left_alone(f"{name}.believe", history=history, state=state):
        scaled = model.believe(encoding, history, state, room=ROOM)
    require(isinstance(scaled, ScaledBelief), "`believe` must give a ScaledBelief", f"{name} gave {scaled!r}", "Wrap the belief in it")
    first, second = scaled.average(pi), model.believe(encoding, history, written, room=ROOM).average(pi)
    require(
        bits(first) == bits(second),
        "A belief must be the same after its state was written as JSON and read",
        f"the means of {name} were {first.mean}, and then {second.mean}",
        "Keep nothing outside the state, and only what JSON can hold inside",
    )
    require(
        finite(first.mean, first.std) and np.all(first.std >= 0),
        "Predictions must be finite, with standard deviations of at least 0",
        f"{name} predicts {first.mean} ± {first.std}",
        "Look at the scale of the belief",
    )
    return scaled.belief


def check_belief(belief: Belief, encoding: Encoding, history: History, exact: bool = True) -> None:
    """All that a belief can be asked, on policies that were simulated and others."""
    pi = np.concatenate([history.told[:1], pairs(encoding, POLICIES - 1, seed=6)])[:, : encoding.policy_dim]
    theta = pairs(encoding, PAIRS, seed=7)[:, encoding.policy_dim :]
    x = np.concatenate([paired(pi[0], theta[: PAIRS // 2]), pairs(encoding, PAIRS - PAIRS // 2, seed=8)])
    now = {name: np.asarray(value) for name, value in _answers(belief, pi, x).items()}
    name = type(belief).__name__
    check_shapes(name, now)
    check_means(name, now)
    check_covariance(name, now, exact)
    check_awaiting(name, now, exact)
    check_slopes(name, now)
    if isinstance(belief, Tabulates):
        check_tables(belief, pi, theta, now)
    if isinstance(belief, Explains) and any(factor.columns for factor in encoding.factors):
        check_explanations(belief, encoding, pi, x, now)


@compiled()
def _answers(belief: Any, pi: jax.Array, x: jax.Array) -> dict[str, jax.Array]:
    """Everything at once. Compiled, since that is how beliefs are asked."""
    mean, variance = belief.mean_and_variance(pi)
    pair_mean, pair_variance = belief.pair_mean_and_variance(x)
    sites = belief.sites(pi)
    after = [belief.awaiting(one).mean_and_variance(pi) for one in x[:2]]

    def total(pi: jax.Array) -> jax.Array:
        return sum(jnp.sum(jnp.sin(part)) for part in belief.mean_and_variance(pi))  # type: ignore[return-value]

    return {
        "rounding": belief.rounding,
        "noise": belief.noise,
        "mean": belief.mean(pi),
        "mean of mean_and_variance": mean,
        "variance": variance,
        "between": belief.between(sites, sites),
        "between others": belief.between(belief.sites(pi[:2]), sites),
        "pair mean": pair_mean,
        "pair variance": pair_variance,
        "variance_reduction": belief.variance_reduction(pi[0], x),
        "mean after": jnp.stack([mean for mean, _ in after]),
        "variance after": jnp.stack([variance for _, variance in after]),
        "slopes": jax.grad(total)(pi),
    }


def check_shapes(name: str, now: Mapping[str, Array]) -> None:
    """Every answer has its shape, with the same leading axis, and is finite; variances are not
    negative.
    """
    s, m, q = len(now["noise"]), POLICIES, PAIRS
    shapes = {"rounding": (s,), "noise": (s,), "mean": (s, m), "mean of mean_and_variance": (s, m), "variance": (s, m)}
    shapes |= {"between": (s, m, m), "between others": (s, 2, m), "pair mean": (s, q), "pair variance": (s, q)}
    shapes |= {"variance_reduction": (s, q), "mean after": (2, s, m), "variance after": (2, s, m)}
    for what, shape in shapes.items():
        way_out = "See the shapes in aloq.quadrature.belief.Belief"
        require(now[what].shape == shape, f"`{what}` must have the shape {shape}", f"{name} gave {now[what].shape}", way_out)
        require(finite(now[what]), f"`{what}` must be finite", f"{name} gave {now[what]}", "Guard divisions and roots")
    for what in ("rounding", "noise", "variance", "pair variance", "variance_reduction", "variance after"):
        require(
            np.all(now[what] >= 0),
            f"`{what}` must be at least 0",
            f"{name} gave {now[what].min():g}",
            "A difference of larger numbers can fall below 0: clip it at `rounding`",
        )


def check_means(name: str, now: Mapping[str, Array]) -> None:
    """Both functions that give a mean give the same."""
    gap = np.max(np.abs(now["mean"] - now["mean of mean_and_variance"]))
    way_out = "Let one call the other"
    scale = 1 + np.max(np.abs(now["mean"]))
    require(gap <= ROUNDING * scale, "`mean` must agree with `mean_and_variance`", f"{name} has them differ by {gap:g}", way_out)


def check_covariance(name: str, now: Mapping[str, Array], exact: bool) -> None:
    """Covariances are symmetric, positive semidefinite, and agree with the variances."""
    between, variance, slack = now["between"], now["variance"], _slack(now)
    gap = np.max(np.abs(between - between.transpose(0, 2, 1)))
    way_out = "Cov(a, b) is Cov(b, a)"
    require(gap <= slack, "`between` must be symmetric", f"{name} has Cov(a, b) and Cov(b, a) differ by up to {gap:g}", way_out)
    gap = np.max(np.abs(between[:, :2] - now["between others"]))
    way_out = "A covariance is about two policies alone"
    require(gap <= slack, "`between` must not depend on the other policies at the sites", f"{name} has it differ by up to {gap:g}", way_out)
    lowest = np.min(np.linalg.eigvalsh((between + between.transpose(0, 2, 1)) / 2))
    require(
        lowest >= -slack,
        "`between` must be positive semidefinite",
        f"{name} has covariances with the eigenvalue {lowest:g}",
        "No random variables have such covariances",
    )
    gap = np.max(np.abs(np.diagonal(between, axis1=1, axis2=2) - variance))
    require(
        not exact or gap <= slack,
        "`between` of a policy with itself must be its variance",
        f"{name} has them differ by up to {gap:g}",
        "Mend one of them, or say `exact=False` where it is an approximation",
    )


def check_awaiting(name: str, now: Mapping[str, Array], exact: bool) -> None:
    """A pair that is out changes no mean, raises no variance, and does what `variance_reduction`
    says.
    """
    slack, before, reduction = _slack(now), now["variance"], now["variance_reduction"]
    gap = np.max(np.abs(now["mean after"] - now["mean"]))
    require(
        gap <= ROUNDING * (1 + np.max(np.abs(now["mean"]))),
        "`awaiting` must leave means as they are",
        f"{name} has them differ by up to {gap:g}",
        "A pair that is out enters at its predicted mean",
    )
    rise = np.max(now["variance after"] - before)
    require(rise <= slack, "`awaiting` must not raise a variance", f"{name} raised one by {rise:g}", "One more pair never tells less")
    excess = np.max(reduction - before[:, :1])
    way_out = "No simulation takes away more than there is"
    rule = "`variance_reduction` must be at most the variance"
    require(not exact or excess <= slack, rule, f"{name} has it larger by {excess:g}", way_out)
    gap = np.max(np.abs((before - now["variance after"])[:, :, 0].T - reduction[:, :2]))
    require(
        not exact or gap <= slack,
        "`variance_reduction` must be what `awaiting` takes from the variance",
        f"{name} has them differ by up to {gap:g}",
        "Mend one of them, or say `exact=False` where it is an approximation",
    )


def check_slopes(name: str, now: Mapping[str, Array]) -> None:
    """Slopes of mean and variance are finite, also at a policy that was simulated."""
    require(
        finite(now["slopes"]),
        "Slopes of `mean_and_variance` must be finite, also at a policy that was simulated",
        f"{name} gave {now['slopes']}",
        "A root has no slope at 0",
    )


def check_tables(belief: Any, pi: NDArray[np.float64], theta: NDArray[np.float64], now: Mapping[str, Array]) -> None:
    """Tables say what the belief says, and follow a pair that goes out."""
    tables = belief.tables(pi, theta)
    told = {name: np.asarray(value) for name, value in _answers(belief, pi, paired(pi[0], theta)).items()}
    found = {"mean": tables.mean, "variance": tables.variance}
    found |= {"pair variance": tables.pair_variance(0), "variance_reduction": tables.variance_reduction(0)}
    tables.await_pair(0, 0)
    found |= {"mean after": tables.mean, "variance after": tables.variance}
    wanted = told | {"mean after": told["mean after"][0], "variance after": told["variance after"][0]}
    for what, table in found.items():
        gap = np.max(np.abs(table - wanted[what])) if table.shape == wanted[what].shape else np.inf
        require(
            gap <= max(_slack(now), ROUNDING * np.max(np.abs(wanted[what]))),
            f"`{what}` in tables must be that of the belief",
            f"{type(tables).__name__} has it differ by up to {gap:g}",
            "Compute both from the same formula, or leave out `tables`: a batch is then slower",
        )


def check_explanations(belief: Any, encoding: Encoding, pi: Array, x: Array, now: Mapping[str, Array]) -> None:
    """What a belief says for reports has its shape; over all nodes of a factor it is the belief
    itself.
    """
    s, dim, grid = len(now["noise"]), x.shape[1], np.linspace(0, 1, 5)
    factor = next(factor for factor in encoding.factors if factor.columns)
    found = {name: np.asarray(value) for name, value in _explanations(belief, pi, x, grid, factor.weights).items()}
    shapes = {"length_scales": (s, dim), "warps": (s, len(grid), dim), "cross": (s, len(pi), len(x))}
    for what, shape in shapes.items():
        name, way_out = type(belief).__name__, "See the shapes in aloq.quadrature.belief.Explains"
        require(found[what].shape == shape, f"`{what}` must have the shape {shape}", f"{name} gave {found[what].shape}", way_out)
    mean, variance = found["mean over parts"][:, 0], found["variance over parts"][:, 0]
    gap = max(np.max(np.abs(mean - now["mean"][:, 0])), np.max(np.abs(variance - now["variance"][:, 0])))
    require(
        gap <= ROUNDING * (1 + np.max(np.abs(now["mean"]))),
        "`over_parts` with the weights of a factor must be the belief about the policy",
        f"{type(belief).__name__} has them differ by {gap:g}",
        "Mend `over_parts`",
    )


@compiled()
def _explanations(belief: Any, pi: jax.Array, x: jax.Array, grid: jax.Array, weights: jax.Array) -> dict[str, jax.Array]:
    mean, variance = belief.over_parts(pi[0], 0, weights[None])
    answers = {"length_scales": belief.length_scales(), "warps": belief.warps(grid), "cross": belief.cross(pi, x)}
    return answers | {"mean over parts": mean, "variance over parts": variance}


def _slack(now: Mapping[str, Array]) -> float:
    """By how much variances may differ."""
    return float(max(ROUNDING * np.max(now["variance"]), ROUNDING * np.max(now["pair variance"]), np.max(now["rounding"])))
