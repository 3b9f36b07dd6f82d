"""aloq as a sampler of Optuna: its studies, storages, workers and dashboard, with environments chosen beside the parameters."""

from aloq.problem.errors import MissingExtraError

try:
    import optuna  # noqa: F401
except ImportError:
    raise MissingExtraError.of("This", "Optuna", "optuna") from None

from aloq.integrations.optuna.records import environment
from aloq.integrations.optuna.sampler import ALOQSampler, aloq_best

__all__ = ["ALOQSampler", "aloq_best", "environment"]
