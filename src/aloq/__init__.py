"""aloq: policies that stay good when rare events strike."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aloq import inference as inference
    from aloq import tasks as tasks
    from aloq.methods.aloq import ALOQ as ALOQ
    from aloq.problem.distributions import Discrete as Discrete
    from aloq.problem.distributions import Samples as Samples
    from aloq.problem.errors import AloqError as AloqError
    from aloq.problem.errors import InferenceError as InferenceError
    from aloq.problem.errors import InferenceWarning as InferenceWarning
    from aloq.problem.errors import JournalError as JournalError
    from aloq.problem.errors import ProblemError as ProblemError
    from aloq.problem.errors import SimulationError as SimulationError
    from aloq.problem.errors import StudyError as StudyError
    from aloq.problem.objective import CVaR as CVaR
    from aloq.problem.objective import Expectation as Expectation
    from aloq.problem.objective import MeanStd as MeanStd
    from aloq.problem.objective import Quantile as Quantile
    from aloq.problem.objective import WorstCase as WorstCase
    from aloq.problem.problem import Problem as Problem
    from aloq.problem.variables import Archive as Archive
    from aloq.problem.variables import Choice as Choice
    from aloq.problem.variables import Integer as Integer
    from aloq.problem.variables import Real as Real
    from aloq.study.running.stopping import Until as Until
    from aloq.study.study import Study as Study

__version__ = "0.1.0"

# Public names load on first use, so that `import aloq` and `aloq --help` stay fast.
_HOME = {
    "ALOQ": "aloq.methods.aloq",
    "AloqError": "aloq.problem.errors",
    "Archive": "aloq.problem.variables",
    "CVaR": "aloq.problem.objective",
    "Choice": "aloq.problem.variables",
    "Discrete": "aloq.problem.distributions",
    "Expectation": "aloq.problem.objective",
    "InferenceError": "aloq.problem.errors",
    "InferenceWarning": "aloq.problem.errors",
    "Integer": "aloq.problem.variables",
    "JournalError": "aloq.problem.errors",
    "MeanStd": "aloq.problem.objective",
    "Problem": "aloq.problem.problem",
    "ProblemError": "aloq.problem.errors",
    "Quantile": "aloq.problem.objective",
    "Real": "aloq.problem.variables",
    "Samples": "aloq.problem.distributions",
    "SimulationError": "aloq.problem.errors",
    "Study": "aloq.study.study",
    "StudyError": "aloq.problem.errors",
    "Until": "aloq.study.running.stopping",
    "WorstCase": "aloq.problem.objective",
}
_ROOMS = ("acquisition", "gp", "inference", "methods", "quadrature", "tasks")

__all__ = ["__version__", *sorted(_HOME), *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"aloq.{name}")
    else:
        raise AttributeError(f"module 'aloq' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
