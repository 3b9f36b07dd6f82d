"""Load what `aloq run` and `aloq check` are given.

That is a task, a study file, or a problem in a Python file.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aloq.integrations.study_file import RUN_KEYS, Settings, StudyFile, read
from aloq.problem.errors import ProblemError, nearest

if TYPE_CHECKING:
    from aloq.problem.problem import Problem
    from aloq.study.running.outcome import Simulate
    from aloq.tasks import Task


@dataclass(frozen=True)
class RunRequest(Settings):
    """A problem, its simulator, and how to run the study."""

    name: str
    problem: Problem
    simulate: Simulate
    task: Task | None = None  # where the truth is known


def load(what: str) -> RunRequest:
    """Return the job that an argument of the command line names."""
    if what.endswith(".toml"):
        return _from_file(read(Path(what)))
    path, colon, name = what.rpartition(":")
    if what.endswith(".py") or (colon and path.endswith(".py")):
        return _from_python(Path(path if colon else what), name if colon else "problem")
    from aloq import tasks

    task = tasks.load(what)
    return RunRequest(f"{task.name}: {task.description}", task.problem, task.simulate, task=task)


def _from_file(file: StudyFile) -> RunRequest:
    if file.program is None:
        raise ProblemError(
            f'{file.path}: to simulate, there must be a `command`. Add command = ["./simulate", ...] above the first [table]. To simulate '
            f"by hand, use `aloq ask {file.path}` and `aloq tell`."
        )
    return RunRequest(str(file.path), file.problem, file.program, **{name: getattr(file, name) for name in RUN_KEYS})


def _from_python(path: Path, name: str) -> RunRequest:
    from aloq.problem.problem import Problem

    module = _module(path)
    problem, simulate = _named(module, name, path), _named(module, "simulate", path)
    if not isinstance(problem, Problem):
        raise ProblemError(f"{name!r} in {path} must be an aloq.Problem, but is {type(problem).__name__}. Write {path}:NAME with its name.")
    if not callable(simulate):
        raise ProblemError(f"`simulate` in {path} must be a function of (policy, environment), but is {type(simulate).__name__}.")
    return RunRequest(f"{path}:{name}", problem, simulate)


def _module(path: Path) -> Any:
    """Import the file as a module that other processes can import too.

    Its folder is added to `sys.path`, which is passed on to other processes.
    """
    if not path.is_file():
        raise ProblemError(f"There is no Python file {path}. Check the name.")
    path = path.resolve()
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    module = importlib.import_module(path.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise ProblemError(f"{path} must have a name of its own, but there is another module {path.stem!r}. Rename the file.")
    return module


def _named(module: Any, name: str, path: Path) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        known = [key for key in vars(module) if not key.startswith("_")]
        raise ProblemError(f"{path} must define {name!r}, but does not.{nearest(name, known)}") from None
