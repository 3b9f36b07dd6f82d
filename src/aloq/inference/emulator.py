"""The settings of an emulator, and its budget of simulations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aloq.problem.errors import ProblemError
from aloq.study.checks import whole

if TYPE_CHECKING:
    from aloq.methods.model import Model

FEWEST = 4


@dataclass(frozen=True)
class Emulator:
    """A Gaussian process that replaces an expensive simulator, learnt from `budget` calls of it.

    The share `refine` of the calls is made where a first emulator, learnt from the others, puts the
    posterior. `samples` is the number of hyperparameter samples. `model` is the kernel and its
    hyperpriors.
    """

    budget: int
    refine: float = 0.5
    samples: int = 8
    model: Model | None = field(default=None)

    def __post_init__(self) -> None:
        whole("budget", self.budget, least=FEWEST)
        whole("samples", self.samples, least=1)
        if not 0 <= self.refine < 1:
            raise ProblemError(f"`refine` must be at least 0 and below 1, but it is {self.refine!r}.")

    def runs(self, policies: int) -> tuple[int, int]:
        """Return the numbers of simulations for each policy: over the prior, near the posterior."""
        each = self.budget // policies
        first = each - int(self.refine * each)
        if first < FEWEST:
            raise ProblemError(
                f"an emulator needs {FEWEST} simulations or more for each policy before it is refined, but a budget of {self.budget} "
                f"leaves {first} for each of {policies}. Raise `budget`, or try fewer different policies."
            )
        return first, each - first
