"""The checks are plain functions: they need no pytest, and Python's -O does not switch them off."""

from __future__ import annotations

import subprocess
import sys

import pytest
from study_processes import LONGEST

CODE = """
import sys
from dataclasses import dataclass
from aloq.gp.kernel import SE
from aloq.problem.codec import register
from aloq.testing import check_kernel

@register
@dataclass(frozen=True)
class Tripled(SE):
    def __call__(self, values, u, v):
        return 3 * super().__call__(values, u, v)

assert False, "this is run with -O"
try:
    check_kernel(Tripled("policy"))
except AssertionError as error:
    print(error)
print("pytest" in sys.modules)
"""


@pytest.mark.slow
def test_a_check_runs_without_pytest_and_with_asserts_switched_off() -> None:
    done = subprocess.run([sys.executable, "-O", "-c", CODE], capture_output=True, text=True, check=True, timeout=LONGEST)
    message, loaded = done.stdout.splitlines()[0], done.stdout.splitlines()[-1]
    assert message.startswith("`diagonal` must be k(u, u) of every row, but it is [1. ")
    assert loaded == "False"
