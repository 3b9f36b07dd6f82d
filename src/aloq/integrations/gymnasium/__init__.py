"""Gymnasium environments as simulators for aloq, and tasks of aloq as Gymnasium environments.

The second direction is for reinforcement learning.
"""

from aloq.problem.errors import MissingExtraError

try:
    import gymnasium  # noqa: F401
except ImportError:
    raise MissingExtraError.of("This", "Gymnasium", "gym") from None

from aloq.integrations.gymnasium.settings import Attribute, Constructor, Option
from aloq.integrations.gymnasium.simulator import Simulator, simulator
from aloq.integrations.gymnasium.task_env import TaskEnv
from aloq.integrations.gymnasium.trajectory import Trajectory

__all__ = ["Attribute", "Constructor", "Option", "Simulator", "TaskEnv", "Trajectory", "simulator"]
