"""Answers to several questions about one study, side by side.

i, j    questions
V_ij    the value, under question j, of the policy that is recommended for question i
C_ij    what that policy costs under question j: by how much V_ij is worse than V_jj
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import StudyError, nearest
from aloq.study.best import Best
from aloq.study.checks import shown
from aloq.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("environment", "objective", "value", "subject_to")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a study answers to several questions. `compare` makes one."""

    answers: Mapping[str, Best]  # by the name of the question
    values: NDArray[np.float64]  # (n, n) V, in the user's units
    costs: NDArray[np.float64]  # (n, n) C, where more is worse, whatever the direction of the problem

    def table(self) -> pd.DataFrame:
        """Return a table with one row for each question.

        Its columns are policy.NAME, value, low and high (the 90 % interval), feasible (the
        probability that the constraints hold, if there are some), and costs.QUESTION: what the
        recommendation of this row costs under that question. Such a cost is negative if the policy
        is better but breaks the constraints of that question.
        """
        import pandas as pd

        rows = []
        for best, costs in zip(self.answers.values(), self.costs.tolist(), strict=True):
            row: dict[str, Any] = {f"policy.{name}": value for name, value in best.policy.items()}
            row |= {"value": best.mean, "low": best.interval[0], "high": best.interval[1]}
            row |= {} if best.feasible is None else {"feasible": best.feasible}
            rows.append(row | {f"costs.{name}": cost for name, cost in zip(self.answers, costs, strict=True)})
        return pd.DataFrame(rows, index=pd.Index(self.answers, name="question"))

    def __str__(self) -> str:
        return str(self.table().to_string(float_format=lambda number: f"{number:.4g}"))


def compare(study: Study, questions: Mapping[str, Mapping[str, Any]]) -> Comparison:
    """Ask a study several questions, and say what the answer to one costs under the others.

    `questions` maps a name of each question to what `Study.best` is given for it, such as
    {"mean": {}, "worst 5 %": {"objective": aloq.CVaR(0.05)}}. No new simulation is needed.
    """
    _check(questions)
    answers = {name: study.best(**asked) for name, asked in questions.items()}
    policies = [best.policy for best in answers.values()]
    values = np.stack([study.predict(policies, **_without_limits(asked)).mean for asked in questions.values()], axis=1)
    costs = study.problem.sign * (np.diag(values) - values)
    return Comparison(answers, values, costs)


def _without_limits(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question without its constraints, which change no prediction."""
    return {key: given for key, given in asked.items() if key != "subject_to"}


def _check(questions: Any) -> None:
    example = 'Write {"mean": {}, "worst 5 %": {"objective": aloq.CVaR(0.05)}}, say.'
    if not isinstance(questions, Mapping) or not questions:
        raise StudyError(f"`questions` must be a dict of names to what `best` is given, but is {shown(questions)}. {example}")
    for name, asked in questions.items():
        if not isinstance(name, str) or not isinstance(asked, Mapping):
            raise StudyError(f"Each question must be a name and a dict, but {shown(name)}: {shown(asked)} came. {example}")
        for key in asked:
            if key not in KEYS:
                raise StudyError(f"The question {name!r} may have {', '.join(KEYS)}, but has {shown(key)}.{nearest(key, KEYS)}")
