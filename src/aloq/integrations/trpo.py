"""TRPO (Schulman et al., 2015) by sb3-contrib on a task's one-step episodes.

It is the paper's second policy gradient baseline. The actor is a Gaussian over policies, as in
`aloq.methods.reinforce`. There is nothing to observe, so a network would only be another way to
write its mean. Each update takes a batch of 5 episodes, as in the paper. Advantages are
standardised within the batch, so the critic, which is a constant, has no effect.

The Gaussian starts narrow, in the middle of the policy space, and the trust region is a third of
the usual size, because a step from 5 episodes is mostly noise. With wider starts and longer steps,
draws left the bounds, where clipping hides the gradient: on `arm-collision-no-wall` most such runs
ended with a joint folded back, 7 cm from the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aloq.problem.errors import MissingExtraError, ProblemError
from aloq.tasks import Task

BATCH = 5
WIDTH = 0.1  # of the unit cube; actions have twice its length
TRUST = 0.003  # Kullback-Leibler divergence of one update


def learn(task: Task, evaluations: int, seed: int, checkpoints: Sequence[int] = ()) -> list[tuple[int, dict[str, Any]]]:
    """Learn from `evaluations` simulations. Return the policies at `checkpoints` and at the end.

    A checkpoint is a number of simulations. Its policy is the mean of the Gaussian after the last
    whole batch. Stable-Baselines3 seeds the global generators of Python, NumPy and PyTorch.
    """
    wanted = sorted({*checkpoints, evaluations})
    if wanted[0] < 1 or wanted[-1] > evaluations:
        raise ProblemError(f"`checkpoints` must lie in 1, ..., {evaluations}, the number of evaluations, but got {list(checkpoints)}.")
    model = _model(task, seed)
    found = []
    for count in wanted:
        rest = count - count % BATCH - model.num_timesteps
        if rest > 0:
            model.learn(rest, reset_num_timesteps=False)
        found.append((count, _policy(task, model)))
    return found


def _model(task: Task, seed: int) -> Any:
    try:
        from sb3_contrib import TRPO
    except ImportError:
        raise MissingExtraError.of("This", "sb3-contrib", "rl") from None
    from aloq.integrations.gymnasium import TaskEnv

    shape: dict[str, Any] = {"net_arch": [], "log_std_init": math.log(2 * WIDTH)}
    env = TaskEnv(task, seed)
    steps: dict[str, Any] = {"n_steps": BATCH, "batch_size": BATCH, "n_critic_updates": 1, "target_kl": TRUST}
    return TRPO("MlpPolicy", env, **steps, policy_kwargs=shape, seed=seed, device="cpu")


def _policy(task: Task, model: Any) -> dict[str, Any]:
    action, _ = model.predict(np.zeros(1), deterministic=True)
    return task.problem.encoding.decode_policy((np.asarray(action, dtype=np.float64) + 1) / 2)
