"""The errors and warnings of aloq. Every error that a user may meet derives from `AloqError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class AloqError(Exception):
    """A mistake that the user can correct. The message says how."""


class ProblemError(AloqError, ValueError):
    """A problem, or a value that should fit it, is malformed."""


class StudyError(AloqError, RuntimeError):
    """A study was asked for something it cannot do in its present state."""


class JournalError(StudyError):
    """A journal cannot be read, or does not belong to this study."""


class JournalInUseError(JournalError):
    """Another study is writing the journal."""


class JournalChangedError(JournalError):
    """Somebody else changed the journal of a running study.

    `rescued` is the new file that holds everything, or None if it could not be written.
    """

    def __init__(self, message: str, rescued: Path | None = None) -> None:
        super().__init__(message)
        self.rescued = rescued


class UnavailableError(AloqError, ImportError):
    """A part of aloq needs something that this machine lacks.

    The message ends with a colon and the way to get it.
    """

    @property
    def remedy(self) -> str:
        """The part of the message that says how to get it."""
        return str(self).rpartition(": ")[2]


class MissingExtraError(UnavailableError):
    """A part of aloq needs a package that is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingExtraError:
        """Return the error. `what` needs the package, and the package comes with `extra`."""
        return cls(f"{what} needs {package}, which is not installed. To get it: {install(extra)}")


class MissingLibraryError(UnavailableError):
    """A package is installed but cannot be loaded. A system library is missing or does not fit."""


def install(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return f"pip install 'aloq[{extra}]'"


class SimulationError(AloqError, RuntimeError):
    """A simulation gave no return.

    The message is the whole reason. A trial that fails with this error keeps no traceback.
    """


class InferenceError(AloqError, RuntimeError):
    """p(environment) cannot be learnt from these trials with this simulator."""


class InferenceWarning(UserWarning):
    """The learnt p(environment) should not be relied on as it is. The message says why."""


class SimulatorWarning(UserWarning):
    """A simulator does not seem to do what was asked of it. The message says why."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the known name closest to `name`, or "" if none is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    # 0.5 rather than difflib's 0.6, so that "max" still finds "maximize".
    match = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[match[0]]!r}?" if match else ""
