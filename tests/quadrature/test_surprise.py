"""What a belief allows for beyond its own variance: the errors at told pairs that are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from aloq import ALOQ, Discrete, Problem, Study
from aloq.gp.contraction import weighted_nodes
from aloq.gp.posterior import Points
from aloq.methods.history import History
from aloq.methods.model import Model
from aloq.numerics.computing import computing
from aloq.problem.errors import ProblemError
from aloq.quadrature.closed_form import believe
from aloq.quadrature.surprise import Surprise, left_out_errors

Array = NDArray[np.float64]

PLAIN = Model(warp="none")
WARY = replace(PLAIN, surprises=2)
LISTED = Problem({"x": (0.0, 1.0)}, {"t": Discrete([0.0, 0.5, 1.0], p=[0.6, 0.3, 0.1])})
DENSE = Problem({"x": (0.0, 1.0)}, {"t": stats.uniform(0, 1)})


def history_of(x: Array, jump: float = 5.0) -> History:
    values = np.sin(3 * x[:, 0]) + jump * (x[:, 1] > 0.8)
    return History.of(told=x, values=values, pending=x[:0], failed=x[:0], asked=len(x))


def some(count: int = 12, levels: tuple[float, ...] = (0.0, 0.5, 1.0)) -> Array:
    rng = np.random.default_rng(0)
    return np.stack([rng.random(count), rng.choice(levels, count)], axis=1)


def test_errors_are_those_of_beliefs_that_lack_a_pair() -> None:
    x, rng = some(), np.random.default_rng(1)
    structure, nodes = PLAIN.structure(1, (True, False)), weighted_nodes(LISTED.encoding)
    y, zeta = rng.normal(size=len(x)), 0.3 * rng.normal(size=(3, structure.size))

    def belief(keep: NDArray[np.bool_]) -> Any:
        told = keep.astype(float)
        parts: list[Any] = [np.concatenate([part[keep], part[~keep]]) for part in (x, told * y, told, told)]
        return believe(structure, zeta, Points(*parts), nodes)

    with computing():
        whole = belief(np.ones(len(x), bool))
        found = np.asarray(left_out_errors(whole.given, np.ones(len(x), bool)))
        for i in range(len(x)):
            less = belief(np.arange(len(x)) != i)
            mean, variance = (np.asarray(part)[:, 0] for part in less.pair_mean_and_variance(x[i : i + 1]))
            variance = variance + np.asarray(less.noise)
            total = np.sqrt(np.mean(variance) + np.var(mean))
            assert found[i] == pytest.approx(max(abs(y[i] - np.mean(mean)), total), rel=1e-6)


def averages(problem: Problem, history: History, policies: Array) -> tuple[Array, Array, Array]:
    """Standard deviations without and with surprises, and what these add."""
    state = PLAIN.learn(problem.encoding, history, None, 4, [0])
    belief = WARY.believe(problem.encoding, history, state)
    unwary, wary = replace(belief, surprise=None).average(policies), belief.average(policies)
    assert np.array_equal(unwary.mean, wary.mean)
    return unwary.std, wary.std, np.sqrt(wary.std**2 - unwary.std**2)


def test_two_surprises_widen_by_their_weight() -> None:
    x = some(levels=(0.1, 0.35, 0.6, 0.9))
    state = WARY.learn(DENSE.encoding, history_of(x), None, 4, [0])
    belief = WARY.believe(DENSE.encoding, history_of(x), state)
    surprise = belief.surprise
    assert surprise is not None
    with computing():
        errors = np.sort(np.asarray(left_out_errors(surprise.given, np.arange(len(surprise.given.known)) < len(x))))
    added = errors[-2:].sum() / len(x)
    policies = np.array([[0.3], [0.9], [x[0, 0]]])
    np.testing.assert_allclose(surprise.std(policies), added, rtol=1e-9)
    within = replace(belief, surprise=None).average(policies).std
    np.testing.assert_allclose(belief.average(policies).std, np.hypot(within, belief.scale.scale * added), rtol=1e-9)
    # No surprise is larger than what told returns differ by.
    np.testing.assert_allclose(replace(surprise, span=0.01).std(policies), 0.02 / len(x), rtol=1e-9)


def test_a_surprise_weighs_no_more_than_environments_like_it() -> None:
    """t is near 1 with a probability of .1, more than one in twelve; ice is there with .01."""
    problem = Problem({"x": (0.0, 1.0)}, {"t": stats.uniform(0, 1), "ice": Discrete([0, 1], p=[0.99, 0.01])})
    told = np.array([[0.3, 0.5, 0.0], [0.3, 1.0, 0.0], [0.4, 0.5, 1.0]])
    surprise = Surprise(problem.encoding, told, 1.0, None, 3)  # type: ignore[arg-type]
    assert surprise._alike() == pytest.approx([0.2, 0.1, 0.01], abs=0.02)


def test_a_policy_known_in_every_environment_is_not_widened() -> None:
    x = np.concatenate([some(), [[0.25, 0.0], [0.25, 0.5], [0.25, 1.0], [0.4, 0.0], [0.4, 0.5], [0.4, 0.5]]])
    unwary, wary, added = averages(LISTED, history_of(x), np.array([[0.25], [0.4], [0.7]]))
    assert wary[0] == unwary[0]
    assert added[1] == pytest.approx(added[2], rel=0.2)  # a tenth is left, more than one simulation in 17
    told = np.concatenate([x, [[0.4, 1.0]]])[-4:]
    share = Surprise(LISTED.encoding, told, 1.0, None, 2)  # type: ignore[arg-type]
    assert share._unseen(np.array([[0.4], [0.25], [0.1]])) == pytest.approx([0.0, 1.0, 1.0])


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_it_has_the_scale_of_the_returns(scale: float) -> None:
    x = some()
    policies = np.array([[0.3], [0.9]])
    small, large = history_of(x), history_of(x)
    large = replace(large, values=scale * large.values)
    np.testing.assert_allclose(averages(LISTED, large, policies)[1], scale * averages(LISTED, small, policies)[1], rtol=1e-6)


def test_a_smooth_return_is_hardly_widened() -> None:
    unwary, wary, _ = averages(LISTED, history_of(some(16), jump=0.0), np.array([[0.3], [0.7]]))
    rough, wide, _ = averages(LISTED, history_of(some(16)), np.array([[0.3], [0.7]]))
    assert np.max(wary) < 0.01 < np.min(wide)
    assert np.all(wary >= unwary)
    assert np.all(wide > rough)


def test_an_answer_in_every_place_is_the_same() -> None:
    study = Study(LISTED, ALOQ(model=WARY, samples=4, initial=6), seed=1)
    study.optimize(lambda policy, environment: policy["x"] + 3 * (environment["t"] > 0.8), 9, progress=False)
    best = study.best()
    found = study.predict([best.policy])
    belief = study.belief()
    assert belief is not None
    seen = belief.average(LISTED.encoding.encode_policy(best.policy)[None])
    assert best.std == pytest.approx(found.std[0]) == pytest.approx(seen.std[0])
    other = Study(LISTED, ALOQ(model=PLAIN, samples=4, initial=6), seed=1)
    other.optimize(lambda policy, environment: policy["x"] + 3 * (environment["t"] > 0.8), 9, progress=False)
    assert other.best().policy == best.policy
    assert other.best().mean == best.mean
    assert other.best().std < best.std


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ProblemError, match="`surprises` must be 0 or more, but it is -1"):
        Model(surprises=-1)
