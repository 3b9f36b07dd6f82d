"""aloq as a sampler of Optuna. It chooses environments as well as parameters.

Optuna's studies, storages, workers and dashboard can be used as usual.
"""

from aloq.problem.errors import MissingExtraError

try:
    import optuna  # noqa: F401
except ImportError:
    raise MissingExtraError.of("This", "Optuna", "optuna") from None

from aloq.integrations.optuna.records import environment
from aloq.integrations.optuna.sampler import ALOQSampler, aloq_best

__all__ = ["ALOQSampler", "aloq_best", "environment"]
