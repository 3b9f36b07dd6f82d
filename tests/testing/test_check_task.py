"""`check_task` passes aloq's tasks and refuses broken ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from aloq import tasks
from aloq.testing import check_task

FSRE2 = tasks.load("fsre2")
calls = count()


@pytest.mark.parametrize("name", [name for name in tasks.names() if not name.startswith("hexapod")])
def test_a_task_passes(name: str) -> None:
    check_task(tasks.load(name))


def _a_number(pi: Any) -> Any:
    return 0.0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (replace(FSRE2, best=1.0), r"`best` must be the expected return of the best policy, but it is 1, and \{'pi': .*\} has 2.4"),
        (replace(FSRE2, expectation=lambda pi: np.sin(pi)), "`expected` must be the average of `simulate` over the environments, but"),
        (replace(FSRE2, expectation=_a_number), "`expected` must give a finite number for each policy, but it gave 0.0 for 3"),
        (replace(FSRE2, formula=lambda pi, theta: pi + next(calls)), "`simulate` must give a finite number, the same each time, but"),
        (replace(FSRE2, formula=lambda pi, theta: np.nan * pi), "`simulate` must give a finite number, the same each time, but .* nan"),
    ],
)
def test_a_broken_task_is_refused(task: tasks.Task, message: str) -> None:
    with pytest.raises(AssertionError, match=message) as caught:
        check_task(task)
    assert caught.value.__notes__ == ["While checking the task 'fsre2'."]
