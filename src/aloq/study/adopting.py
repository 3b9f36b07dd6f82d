"""The trials of a study under a problem that was changed: a wider range, other probabilities, a new
formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from aloq.methods.history import Array
from aloq.problem.errors import AloqError, StudyError
from aloq.problem.problem import Problem
from aloq.study.returned import check_bounds

if TYPE_CHECKING:
    from aloq.study.ledger import Entry


def fitted(problem: Problem, measures: tuple[str, ...], entries: Sequence[Entry]) -> tuple[list[Entry], Array]:
    """Return the entries with their values under another problem, and their points there, (asked,
    D).

    `measures` are those that were told. Raises if an entry does not fit. A dropped one need not,
    and then has a point of NaN.
    """
    if any(entry.status == "told" for entry in entries) and problem.measures != measures:
        raise StudyError(
            f"The measures must stay, because they are what was told: they are {list(measures)}, but the new problem has "
            f"{list(problem.measures)}. To go on without the old data, choose another journal."
        )
    encoding = problem.encoding
    points = np.full((len(entries), encoding.policy_dim + encoding.environment_dim), np.nan)
    found = []
    for number, entry in enumerate(entries):
        try:
            if entry.status != "dropped":
                pair = encoding.encode_policy(entry.trial.policy), encoding.encode_environment(entry.trial.environment)
                points[number] = np.concatenate(pair)
            found.append(_valued(problem, entry) if entry.status == "told" else entry)
        except AloqError as error:
            raise StudyError(
                f"All trials must fit the new problem, but trial {number} does not: {error} To leave it out, use study.drop({number}) "
                "under the old problem."
            ) from error
    return found, points


def _valued(problem: Problem, entry: Entry) -> Entry:
    """Return a told entry with the value that its measures have in a problem."""
    if problem.valuation is None:
        check_bounds(problem, entry.trial, entry.value)
        return entry
    measures = dict(zip(problem.measures, entry.measures, strict=True))
    value = problem.valuation.of(measures, entry.trial.policy, entry.trial.environment)
    if not math.isfinite(value):
        raise StudyError(f"its value is {value}.")
    check_bounds(problem, entry.trial, value)
    return replace(entry, value=value)
