"""Every error a user may meet derives from `AloqError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class AloqError(Exception):
    """Something the user can put right; the message says how."""


class ProblemError(AloqError, ValueError):
    """A problem, or a value that should fit it, is malformed."""


class StudyError(AloqError, RuntimeError):
    """A study was asked for something it cannot do in its present state."""


class JournalError(StudyError):
    """A journal cannot be read, or does not belong to this study."""


class JournalInUseError(JournalError):
    """Another study is writing the journal."""


class JournalChangedError(JournalError):
    """Somebody else changed a journal under a running study. `rescued` is the new file that holds everything, if it could be written."""

    def __init__(self, message: str, rescued: Path | None = None) -> None:
        super().__init__(message)
        self.rescued = rescued


class UnavailableError(AloqError, ImportError):
    """A part of aloq needs something that this machine lacks. The message ends with a colon and the way to get it."""

    @property
    def remedy(self) -> str:
        """The way to get it, alone."""
        return str(self).rpartition(": ")[2]


class MissingExtraError(UnavailableError):
    """A part of aloq needs a package that is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingExtraError:
        """What needs the package, and the extra that it comes with."""
        return cls(f"{what} needs {package}, which is not installed. To get it: {install(extra)}")


class MissingLibraryError(UnavailableError):
    """A package is installed but cannot be loaded: a library of the system is missing, or does not fit."""


def install(extra: str) -> str:
    """What to type to get the packages of an extra."""
    return f"pip install 'aloq[{extra}]'"


class SimulationError(AloqError, RuntimeError):
    """A simulation gave no return. The message is the whole reason: a trial that fails with it keeps no traceback."""


class InferenceError(AloqError, RuntimeError):
    """p(environment) cannot be learnt from these trials with this simulator."""


class InferenceWarning(UserWarning):
    """What was learnt about p(environment) should not be relied on as it is; the message says why."""


class SimulatorWarning(UserWarning):
    """A simulator does not seem to do what was asked of it; the message says why."""


def nearest(name: object, known: Iterable[str]) -> str:
    """The sentence " Did you mean 'x'?" for the known name closest to `name`, or "" if none is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    # 0.5 rather than difflib's 0.6, so that "max" still finds "maximize".
    match = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[match[0]]!r}?" if match else ""
