"""`check_method` passes every method that has a name, and refuses broken ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from testing_toys import Doubtful, QuadraticModel, Wanderer, drawn

from aloq.acquisition.maximise import Direct, MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import Method, Prediction, Recommendation, State, Suggestion
from aloq.methods.naive import Naive
from aloq.methods.registry import named, names
from aloq.methods.wsn import WSN
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.objective import Objective
from aloq.testing import check_method, problems

NUMBERS = {"numbers": problems()["numbers"]}
# Environments come at random: the same pair may come again. And the mean of a Gaussian need not
# have been simulated.
FREE: dict[str, dict[str, bool]] = {"rq-aloq": {"avoids_taken": False}, "reinforce": {"recommends_simulated": False}}


def small(method: Any) -> Any:
    """The same with few samples, a short design and a short search."""
    if isinstance(method, Naive | WSN):
        return replace(method, search=small(method.search))
    if isinstance(method, ALOQ):
        search = MultiStart(starts=16, climbs=2, turns=5) if isinstance(method.maximiser, MultiStart) else Direct(evaluations=20)
        return replace(method, samples=4, initial=4, maximiser=search)
    return method


# Their parts pass alone: what is left to check of them takes longer to compile than it tells.
SLOW = {"aloq-cliffs", "aloq-paper", "rq-aloq", "us-aloq", "unwarped-aloq", "one-step-aloq", "naive", "wsn"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names()])
def test_a_method_passes(name: str) -> None:
    check_method(small(named(name)), NUMBERS, evaluations=8, **FREE.get(name, {}))


@pytest.mark.parametrize("name", [pytest.param("aloq", marks=pytest.mark.slow), pytest.param("naive", marks=pytest.mark.slow), "reinforce"])
def test_a_method_passes_on_every_kind_of_problem(name: str) -> None:
    check_method(small(named(name)), problems(), evaluations=8, **FREE.get(name, {}))


def test_methods_with_parts_of_others_pass() -> None:
    check_method(Wanderer())
    check_method(replace(small(ALOQ()), model=QuadraticModel()), NUMBERS, evaluations=8)
    check_method(replace(small(ALOQ()), model=QuadraticModel(), pair_rule=Doubtful()), NUMBERS, evaluations=8)


@pytest.mark.parametrize("name", FREE)
def test_what_is_allowed_to_these_is_refused_by_default(name: str) -> None:
    messages = {
        "rq-aloq": "A method must not suggest a pair again that is (out for simulation|reported as failed), but ALOQ suggests",
        "reinforce": "The policy recommended must be one that was simulated, but Reinforce recommends",
    }
    with pytest.raises(AssertionError, match=messages[name]):
        check_method(small(named(name)), NUMBERS, evaluations=8)


@register
@dataclass(frozen=True)
class ForgetfulWanderer(Wanderer):
    """Knows only what was told."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        return Suggestion(drawn(encoding, np.random.default_rng([seed, len(history.told)]), 1)[0], {})


@register
@dataclass(frozen=True)
class Random(Wanderer):
    """Hidden randomness."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        return Suggestion(drawn(encoding, np.random.default_rng(), 1)[0], {})


@register
@dataclass(frozen=True)
class Counting(Wanderer):
    """Remembers outside the state."""

    calls: ClassVar[list[int]] = []

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        self.calls.append(1)
        return replace(super().suggest(encoding, history, state, seed), state={"calls": len(self.calls)})


@register
@dataclass(frozen=True)
class Careless(Wanderer):
    """Sorts the returns where they are."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        history.values.sort()
        return super().suggest(encoding, history, state, seed)


@register
@dataclass(frozen=True)
class Appending(Wanderer):
    """Writes into the state that it was given."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        now = state or {"asked": []}
        now["asked"].append(history.asked)
        return replace(super().suggest(encoding, history, state, seed), state=now)


@register
@dataclass(frozen=True)
class Loose(Wanderer):
    """Does not snap."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        rng = np.random.default_rng([seed, history.asked])
        return Suggestion(rng.uniform(size=encoding.policy_dim + encoding.environment_dim), {})


@register
@dataclass(frozen=True)
class Heavy(Wanderer):
    """Carries an array."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        return replace(super().suggest(encoding, history, state, seed), state={"best": np.zeros(2)})


@register
@dataclass(frozen=True)
class Keyed(Wanderer):
    """Looks up a number, which JSON turns into a text."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        shift = 0 if state is None else state.get(7, 1)  # type: ignore[call-overload]  # on purpose
        point = drawn(encoding, np.random.default_rng([seed, history.asked, shift]), 1)[0]
        return Suggestion(point, {7: 2})  # type: ignore[dict-item]


@register
@dataclass(frozen=True)
class Dividing(Wanderer):
    """Divides by the spread of the returns."""

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        with np.errstate(all="ignore"):
            share = (history.values.max() - history.values.mean()) / np.std(history.values)
        return Prediction(np.full(len(policies), share), np.ones(len(policies)))


@register
@dataclass(frozen=True)
class Dreaming(Wanderer):
    """Recommends what was never tried."""

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        return Recommendation(encoding.snap_policies(np.full((1, encoding.policy_dim), 0.987))[0], 0.0, 1.0)


@register
@dataclass(frozen=True)
class Unsure(Wanderer):
    """A standard deviation below 0."""

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        return replace(super().recommend(encoding, history, state, seed), std=-1.0)


@register
@dataclass(frozen=True)
class Batching(Wanderer):
    """All pairs of a batch are one."""

    def suggest_many(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int) -> Iterator[Suggestion]:
        yield from [self.suggest(encoding, history, state, seed)] * count


@register
@dataclass(frozen=True)
class Stale(Wanderer):
    """Never knows that it has learnt."""

    def learn(self, encoding: Encoding, history: History, state: State | None, seed: int) -> State:
        return {}

    def stale(self, history: History, state: State | None) -> bool:
        return len(history.told) > 0

    def suggest_many(
        self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool = False
    ) -> Iterator[Suggestion]:
        for _ in range(count):
            yield self.suggest(encoding, history, state, seed)
            history = replace(history, asked=history.asked + 1)


@register
@dataclass(frozen=True)
class Lost(Wanderer):
    """Comes back from JSON as something else."""

    depth: tuple[int, ...] = ()


@register
@dataclass(frozen=True)
class Choosy(Wanderer):
    def serves(self, objective: Objective) -> bool:
        return False


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ForgetfulWanderer(), "A method must not suggest a pair again that is out for simulation, but ForgetfulWanderer suggests"),
        (Random(), "A method must give the same suggestion for the same arguments, but Random gave first .*, then"),
        (Counting(), "A method must give the same suggestion for the same arguments, but Counting gave states that differ"),
        (Careless(), r"Careless.suggest must leave its arguments alone, but `history` was changed to History\(.*Work on a copy"),
        (Appending(), "Appending.suggest must leave its arguments alone, but `state` was changed"),
        (Loose(), "Loose must choose a possible policy, but it chose"),
        (Heavy(), "A state must be plain JSON, but that of Heavy cannot be written: Object of type ndarray"),
        (Keyed(), "A state must mean the same after JSON, but Keyed gave first"),
        (Dreaming(), "The policy recommended must be one that was simulated, but Dreaming recommends"),
        (Unsure(), r"A recommendation must have .* a standard deviation of at least 0, but Unsure gave .* -1.0"),
        (Batching(), "`suggest_many` must give pairs that all differ, but Batching gave"),
        (Stale(), "`stale` must be true before anything was learnt, and false afterwards.*, but Stale says True, True and False"),
        (Lost((1, 2)), r"Lost must be equal to itself after JSON, but Lost\(depth=\(1, 2\)\) came back as"),
        (Choosy(), "A method must serve the objective of the problems that it is checked on, but Choosy does not"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Wanderer) else "",
)
def test_a_broken_method_is_refused(method: Method, message: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s){message}") as caught:
        check_method(method, NUMBERS, evaluations=8)
    assert str(caught.value).endswith(".")


def test_returns_that_are_all_alike_are_tried() -> None:
    with pytest.raises(AssertionError, match=r"A prediction must have a finite mean .* but Dividing predicts") as caught:
        check_method(Dividing(), NUMBERS, evaluations=8)
    assert caught.value.__notes__ == ["While checking constant returns.", "While checking Dividing() on the problem 'numbers'."]


@register
@dataclass(frozen=True)
class Amnesiac(Wanderer):
    """Follows what this object has seen, which a study that is resumed has not."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        seen = self.__dict__.setdefault("_seen", set())
        seen.add(history.asked)
        point = drawn(encoding, np.random.default_rng([seed, history.asked, len(seen)]), 1)[0]
        return Suggestion(point, {})


def test_what_a_resumed_study_has_forgotten_is_found() -> None:
    with pytest.raises(AssertionError, match="A resumed study must go on with the same trials, but Amnesiac asked for"):
        check_method(Amnesiac(), NUMBERS, evaluations=8)
