"""REINFORCE (Williams, 1992) on one-step episodes: the paper's simple policy gradient baseline.

mu, log s   (d,)     a Gaussian over policies, in the unit cube; draws are clipped to it, and pulled
                     to what constraints allow, before they are simulated
e           (b, d)   standard normal noise of a batch: policy = mu + s e
A           (b,)     returns of the batch, less their mean, over their standard deviation

    mu    <- mu + rate · s · mean(A e)
    log s <- log s + spread_rate · mean(A (e² - 1))

This is the gradient of the expected return with Williams' choice of a step proportional to s². That
makes the step independent of the scale of the policy. Dividing by the batch's standard deviation
makes it independent of the scale of the returns. The environment is drawn from p(theta). A return
counts with the noise that its policy was drawn with, whenever it comes back. Failed simulations do
not count, and neither do pairs that were not drawn: those that the user has added. If a return is
corrected, the Gaussian begins again, because a step that was taken cannot be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from aloq.methods.history import Array, History
from aloq.methods.interface import Recommendation, State, Suggestion
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError

# Bounds of s. It must neither vanish nor grow beyond the cube.
NARROW, WIDE = 1e-3, 0.5


@register
@dataclass(frozen=True)
class Reinforce:
    """A Gaussian over policies that follows the gradient of the expected return, in batches.

    It starts in the middle of the policy space with standard deviation `width`. The returns of the
    last `memory` batches are the estimate of the Gaussian's expected return.
    """

    sees_no_environment: ClassVar[bool] = True

    batch: int = 5
    rate: float = 1.0
    spread_rate: float = 0.1
    width: float = 0.3
    memory: int = 10

    def __post_init__(self) -> None:
        if self.batch < 2:
            raise ProblemError(f"`batch` must be at least 2, since returns are compared with each other, but it is {self.batch!r}.")
        if self.memory < 1:
            raise ProblemError(f"`memory` must be at least 1, but it is {self.memory!r}.")
        if not (0 < self.rate < np.inf and 0 <= self.spread_rate < np.inf):
            raise ProblemError(f"Rates must be finite and not negative, but `rate` is {self.rate!r}, `spread_rate` {self.spread_rate!r}.")
        if not NARROW <= self.width <= WIDE:
            raise ProblemError(f"`width` must lie in [{NARROW}, {WIDE}], but it is {self.width!r}.")

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        """Return a draw from the Gaussian, in an environment drawn at random."""
        now = self._learnt(encoding, history, state)
        rng = np.random.default_rng([seed, history.asked])
        noise = rng.standard_normal(encoding.policy_dim)
        pi = encoding.feasible_policies(np.clip(np.array(now["mean"]) + np.exp(now["log_std"]) * noise, 0, 1)[None])[0]
        theta = encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]
        out = [*now["out"], {"policy": pi.tolist(), "noise": noise.tolist()}]
        return Suggestion(np.concatenate([pi, theta]), now | {"out": out})

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> NoReturn:
        """Raise an error: a policy gradient has no belief about policies it does not follow."""
        raise ProblemError("Reinforce has no belief about given policies: it only knows what its own earn. Ask for `best()`, or use ALOQ.")

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """Return the Gaussian's mean, with the average return of the last batches and its error.

        The error is the standard error. The average is over draws around the mean and over the
        environments that came up. Rare events that did not come up are not in it.
        """
        now = self._learnt(encoding, history, state)
        own = history.values if history.added.all() else history.values[~history.added]
        recent = own[-self.memory * self.batch :]
        policy = encoding.feasible_policies(np.array(now["mean"])[None])[0]
        error = float(np.std(recent, ddof=1)) / np.sqrt(len(recent)) if len(recent) > 1 else abs(float(recent[0]))
        return Recommendation(policy, float(np.mean(recent)), float(error))

    def _learnt(self, encoding: Encoding, history: History, state: State | None) -> State:
        """Return the state after the new returns. The cost grows with their number alone."""
        now = dict(state) if state else self._start(encoding.policy_dim, history)
        d, out, batch, new = encoding.policy_dim, list(now["out"]), list(now["batch"]), now["told"]
        for pair, value, added in zip(history.told[new:], history.values[new:], history.added[new:], strict=True):
            noise = None if added else out.pop(_nearest(out, pair[:d]))["noise"]
            if noise is not None:
                batch.append({"noise": noise, "value": float(value)})
            if len(batch) == self.batch:
                now, batch = now | self._step(now, batch), []
        for pair in history.failed[now["failed"] :]:
            out.pop(_nearest(out, pair[:d]))
        return now | {"out": out, "batch": batch, "told": len(history.told), "failed": len(history.failed)}

    def _start(self, d: int, history: History) -> State:
        """Return the first state. What was drawn before, and with which noise, is not known."""
        out = [{"policy": pair[:d].tolist(), "noise": None} for pair in history.pending]
        known = {"out": out, "batch": [], "told": len(history.told), "failed": len(history.failed)}
        return {"mean": [0.5] * d, "log_std": [float(np.log(self.width))] * d} | known

    def _step(self, now: State, batch: list[State]) -> State:
        """Return mean and log standard deviation after one step along the gradient."""
        noise, value = np.array([draw["noise"] for draw in batch]), np.array([draw["value"] for draw in batch])
        deviation = np.std(value)
        gain = (value - np.mean(value)) / deviation if deviation > 0 else np.zeros(len(value))
        mean = np.array(now["mean"]) + self.rate * np.exp(now["log_std"]) * (gain @ noise) / len(gain)
        log_std = np.array(now["log_std"]) + self.spread_rate * (gain @ (noise**2 - 1)) / len(gain)
        return {"mean": np.clip(mean, 0, 1).tolist(), "log_std": np.clip(log_std, np.log(NARROW), np.log(WIDE)).tolist()}


def _nearest(out: list[State], policy: Array) -> int:
    """Return which of the draws that are out was simulated as `policy`.

    It is the nearest one, because a study may round the coordinates.
    """
    return int(np.argmin([np.max(np.abs(np.array(draw["policy"]) - policy)) for draw in out]))
