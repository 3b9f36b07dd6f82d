from __future__ import annotations

import pytest

from aloq.problem.errors import AloqError, JournalError, ProblemError, StudyError, nearest


@pytest.mark.parametrize("error", [ProblemError, StudyError, JournalError])
def test_every_error_is_an_aloq_error(error: type[Exception]) -> None:
    assert issubclass(error, AloqError)


def test_errors_can_be_caught_as_the_builtin_they_resemble() -> None:
    assert issubclass(ProblemError, ValueError)
    assert issubclass(JournalError, StudyError)
    assert issubclass(StudyError, RuntimeError)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("frction", " Did you mean 'friction'?"),
        ("FRICTION", " Did you mean 'friction'?"),
        ("Maximise", " Did you mean 'maximize'?"),
        ("max", " Did you mean 'maximize'?"),
        ("zzz", ""),
        (3, ""),
    ],
)
def test_nearest_suggests_only_what_is_close(name: object, hint: str) -> None:
    assert nearest(name, ["friction", "payload", "maximize", "minimize"]) == hint
