"""Random problems with random returns, and what must hold for a study of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.methods.measures_model import MeasuresModel
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.objective import CVaR, Expectation, MeanStd, Quantile, WorstCase
from aloq.problem.problem import Problem
from aloq.problem.spaces import Variable
from aloq.problem.variables import Archive, Choice, Integer, Real
from aloq.study.study import Study

# Small, so that a step takes milliseconds once compiled.
SMALL = ALOQ(samples=4, initial=4, maximiser=MultiStart(starts=16, climbs=2, turns=5), measures=MeasuresModel(draws=4, frequencies=8))
SCALES = (1.0, 1e12, 1e-12)

reals = st.builds(lambda low, width: Real(low, low + width), st.sampled_from([-1e6, 0.0, 3.0]), st.sampled_from([1e-3, 1.0, 1e9]))
policies = st.one_of(reals, st.just(Real(1e-4, 1.0, log=True)), st.just(Integer(1, 3)), st.just(Choice(["a", "b", "c"])))
environments = st.one_of(
    st.just(Discrete([0.0, 1.0, 9.0], p=[0.9, 0.09, 0.01])),
    st.just(Choice(["ok", "failed"], p=[0.999, 0.001])),
    st.just(stats.norm(3, 2)),
    st.just(stats.uniform(-1, 1e-6)),
    st.just(stats.expon(scale=1e6)),
)
# Of several variables at once: policies from a list, a joint sample of environments with a point
# twice.
GAITS = Archive(np.array([[0.0, 1e5], [0.0, -1e5], [1.0, 0.0], [0.5, 3.0], [0.25, 4.0]]))
WEATHER = Samples(np.array([[0.0, 5.0], [1.0, 5.0], [1.0, 7.0], [1.0, 7.0]]), names=["wind", "load"])


@dataclass(frozen=True)
class RandomStudy:
    problem: Problem
    kind: str  # of returns
    scale: float
    seed: int


objectives = st.sampled_from([Expectation(), CVaR(0.1), Quantile(0.2), WorstCase(), MeanStd(1.0)])
FORMULAS = {("m0",): "m0", ("m0", "m1"): "where(m1 > 0, m0, 2 * m0 - m1)", ("m0", "hit"): "m0 - 5 * hit"}


@st.composite
def scenes(draw: st.DrawFn) -> RandomStudy:
    """Problems of one return and its mean, which every method serves."""
    return RandomStudy(draw(_problems()), *draw(_returns()))


@st.composite
def risky_scenes(draw: st.DrawFn) -> RandomStudy:
    """Problems with measures, constraints, and objectives other than the mean."""
    problem, measures = draw(_problems()), draw(st.sampled_from([(), *FORMULAS]))
    told: dict[str, Any] = {"measures": measures, "value": FORMULAS[measures], "failure_value": None} if measures else {}
    of_measures, of_policies = draw(st.booleans()), draw(st.booleans())
    limits = {"m0 >= 0": draw(st.sampled_from([0.9, 1.0]))} if of_measures and measures else {}
    if of_policies:
        limits[_on_the_policy(problem)] = 1.0
    return RandomStudy(replace(problem, objective=draw(objectives), subject_to=limits, **told), *draw(_returns()))


@st.composite
def _problems(draw: st.DrawFn) -> Problem:
    variables = {f"p{i}": draw(policies) for i in range(draw(st.integers(1, 2)))}
    kinds: list[Archive | Mapping[str, Variable]] = [variables, variables, variables, GAITS]
    policy = draw(st.sampled_from(kinds))
    environment = {f"e{i}": draw(environments) for i in range(draw(st.integers(1, 2)))}
    if draw(st.sampled_from([False, False, False, True])):
        environment["weather"] = WEATHER
    value = draw(st.sampled_from([None, -5.0]))
    return Problem(policy, environment, draw(st.sampled_from(["maximize", "minimize"])), failure_value=value)


@st.composite
def _returns(draw: st.DrawFn) -> tuple[str, float, int]:
    kind = draw(st.sampled_from(["constant", "duplicated", "discontinuous", "random"]))
    return kind, draw(st.sampled_from(SCALES)), draw(st.integers(0, 1000))


def _on_the_policy(problem: Problem) -> str:
    """Return a constraint that some policies meet, and others break."""
    name = problem.policy_names[0]
    if isinstance(problem.policy, Archive):
        return f"{name} >= 0.2"
    variable = problem.policy[name]
    if isinstance(variable, Choice):
        return f"{name} != 'a'"
    assert isinstance(variable, (Real, Integer))
    return f"{name} <= {(variable.low + variable.high) / 2!r}"


def value_of(scene: RandomStudy, point: Any, rng: np.random.Generator) -> float:
    if scene.kind == "constant":
        return scene.scale
    if scene.kind == "duplicated":
        return scene.scale * float(rng.integers(2))
    if scene.kind == "discontinuous":
        return scene.scale * (100.0 if point.sum() % 0.3 > 0.15 else 0.0)
    return scene.scale * float(rng.standard_cauchy())


def told_of(scene: RandomStudy, point: Any, rng: np.random.Generator) -> Any:
    """Return what a simulation tells: a number, or the measures."""
    value = value_of(scene, point, rng)
    every = {"m0": value, "m1": scene.scale * float(rng.normal()), "hit": bool(rng.random() < 0.3)}
    return {name: every[name] for name in scene.problem.measures} or value


def _policies(problem: Problem) -> float:
    """How many there are."""
    if isinstance(problem.policy, Archive):
        return len(problem.policy.points)
    counts = [len(v.values) if isinstance(v, Choice) else 3 if isinstance(v, Integer) else math.inf for v in problem.policy.values()]
    return math.prod(counts)


def survives(scene: Any, method: Method) -> None:
    """Ask for several at a time, tell and fail in any order, and look at what came."""
    study = Study(scene.problem, method, seed=scene.seed)
    rng = np.random.default_rng(scene.seed)
    encoding, out = scene.problem.encoding, list[Any]()
    for count in (3, 2, 1, 2, 1):
        out += study.ask(count)
        points = [np.concatenate([encoding.encode_policy(t.policy), encoding.encode_environment(t.environment)]) for t in out]
        assert all(((p >= 0) & (p <= 1)).all() for p in points)
        limits = scene.problem.constraints
        assert limits is None or all(limits.allow(trial.policy) for trial in out), "a policy outside its constraints is asked for"
        if limits is None and _policies(scene.problem) * encoding.environment_count > 4 * len(out):
            assert len({p.tobytes() for p in points}) == len(points), "a pair is out twice"
        for i in sorted(rng.choice(len(out), size=len(out) // 2, replace=False), reverse=True):
            trial = out.pop(int(i))
            if rng.random() < 0.2:
                study.fail(trial, "no")
            else:
                study.tell(trial, told_of(scene, points[int(i)], rng))
    if study.evaluations:
        best = study.best()
        assert np.isfinite(best.mean)
        assert best.std >= 0
        assert best.feasible is None or 0 <= best.feasible <= 1
