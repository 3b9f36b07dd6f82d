"""The interface between a study and a method.

encoding       the problem: variables as columns of the unit cube, p(environment) as nodes, and the
               objective
history        everything known so far, as arrays; values are signed so that larger is better
state          data that a method carries from step to step (chains, modes): plain JSON, written to
               the journal

A method is a pure function of (encoding, history, state, seed). It uses no clock and no hidden
randomness. That makes a study repeatable, and a resumed study exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from aloq.methods.history import Array, History
from aloq.problem.encoding import Encoding
from aloq.problem.objective import Expectation, Objective

if TYPE_CHECKING:
    from aloq.methods.scaled_belief import ScaledBelief

State = dict[str, Any]

BELIEVED = 0.5  # probability of meeting all constraints from which on a policy is believed feasible


@dataclass(frozen=True, eq=False)
class Suggestion:
    """The pair to simulate next, and the state to carry on."""

    point: Array  # (D,) a snapped point of the unit cube
    state: State


@dataclass(frozen=True, eq=False)
class Prediction:
    """Belief about the objective of m policies, in the units of `History.values`."""

    mean: Array  # (m,)
    std: Array  # (m,)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The policy believed best, and the belief about its objective."""

    policy: Array  # (d,)
    mean: float
    std: float
    feasible: float | None = None  # the probability that the constraints hold; None: the method does not say


@runtime_checkable
class Method(Protocol):
    """A method chooses what to simulate next.

    Implementations are frozen dataclasses, registered with `aloq.problem.codec`. The protocols
    below are optional abilities. A study finds out whether a method has their functions.
    """

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion: ...

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction: ...

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation: ...


@runtime_checkable
class SuggestsMany(Protocol):
    """A method that chooses many pairs at once faster than one after the other."""

    def suggest_many(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int) -> Iterator[Suggestion]:
        """Yield suggestions, each made as if those before it were out for simulation."""
        ...


@runtime_checkable
class Learns(Protocol):
    """A method whose suggestions need slow learning, which can be done elsewhere."""

    def learn(self, encoding: Encoding, history: History, state: State | None, seed: int) -> State:
        """Return the state that takes all told data into account."""
        ...

    def stale(self, history: History, state: State | None) -> bool:
        """Return whether `learn` is due before a batch, for the first time or again."""
        ...

    def suggest_many(
        self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool = False
    ) -> Iterator[Suggestion]:
        """Yield suggestions as in `SuggestsMany`. In a `hurry`, use the state as it is."""
        ...


@runtime_checkable
class RecommendsAtOnce(Protocol):
    """A method that can recommend without learning, fast enough to be asked after every step."""

    def recommend_at_once(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation | None:
        """Return what the state as it is recommends, or None if it has learnt nothing yet."""
        ...


@runtime_checkable
class ShowsBelief(Protocol):
    """A method that shows its belief to reports."""

    def belief(self, encoding: Encoding, history: History, state: State | None, seed: int) -> ScaledBelief: ...


@runtime_checkable
class PricesMeasures(Protocol):
    """A method that models measures, so that a belief about another formula needs no learning."""

    def prices(self, history: History) -> bool:
        """Return whether the belief from this history is about measures."""
        ...


@runtime_checkable
class SeesNoEnvironment(Protocol):
    """A method that treats environments as noise.

    Its belief holds only for the distribution that it drew environments from.
    """

    sees_no_environment: bool


@runtime_checkable
class HeedsConstraints(Protocol):
    """A method that says whether it heeds constraints on measures. Others do not."""

    def heeds(self) -> bool: ...


def heeds(method: Method) -> bool:
    """Return whether a method heeds constraints on measures."""
    return isinstance(method, HeedsConstraints) and method.heeds()


@runtime_checkable
class ServesObjectives(Protocol):
    """A method that says which objectives it can optimise. Others optimise only the expectation."""

    def serves(self, objective: Objective) -> bool: ...


def serves(method: Method, objective: Objective) -> bool:
    """Return whether a method can optimise an objective."""
    return method.serves(objective) if isinstance(method, ServesObjectives) else isinstance(objective, Expectation)
