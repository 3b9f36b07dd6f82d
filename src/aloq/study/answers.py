"""What a study answers: the policy believed best, predictions, reports, and a table of its
trials.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.methods.interface import Method, Prediction, ShowsBelief
from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.best import Best, recommended
from aloq.study.book import Book
from aloq.study.ledger import Ledger
from aloq.study.past import past_recommendations
from aloq.study.question import bounded, question
from aloq.study.running import interrupts
from aloq.study.verification import Verification
from aloq.study.verifying import verification

if TYPE_CHECKING:
    import pandas as pd

    from aloq.methods.scaled_belief import ScaledBelief


class StudyAnswers:
    """The questions that a study answers. `Study` adds what changes it."""

    _problem: Problem
    _method: Method
    _seed: int
    _book: Book
    _computing: threading.RLock

    @contextmanager
    def _computation(self) -> Iterator[None]:
        """Guard a computation in the caller's thread.

        Ctrl-C waits until it ends, and no other thread computes meanwhile.
        """
        with interrupts.delayed(), interrupts.taken(self._computing):
            yield

    def best(
        self, environment: Any = None, objective: Any = None, value: str | None = None, subject_to: Mapping[str, float] | None = None
    ) -> Best:
        """Return the policy believed best among those simulated.

        Under constraints, it is the best of those that meet them with a probability of a half or
        more. If there are none, it is the one most likely to. `.feasible` is that probability.

        `environment` asks for the best under another distribution of the same variables,
        `objective` under another one, such as CVaR(0.05), `value` under another formula for what
        the measures are worth, and `subject_to` under other constraints ({} for none). None of
        these needs new simulations. Methods that treat environments as noise refuse the first,
        those that know only the expectation refuse the second, and those that do not model the
        measures refuse the third, and constraints on measures.
        """
        with self._computation():
            ledger = self._informed("best")
            asked = question(self._method, ledger, environment, objective, value, subject_to)
            return recommended(self._method, ledger, asked, ledger.state(), self._seed)

    def predict(
        self, policies: Sequence[Mapping[str, Any]], environment: Any = None, value: str | None = None, objective: Any = None
    ) -> Prediction:
        """Return the belief about the objective of each policy: arrays `.mean` and `.std`.

        `policies` is a list of dicts. `environment` asks for the belief under another distribution
        of the same variables. If that distribution is a single environment, the belief is about the
        return in it. `value` asks for the belief under another formula for the measures, and
        `objective` for that about another objective.
        """
        if isinstance(policies, Mapping | str) or not all(isinstance(policy, Mapping) for policy in policies):
            raise StudyError("`policies` must be a list of dicts, one a policy. For a single policy, give a list of one.")
        with self._computation():
            ledger = self._informed("predict")
            asked = question(self._method, ledger, environment, objective, value)
            if not policies:
                return Prediction(mean=np.empty(0), std=np.empty(0))
            encoded = np.stack([ledger.encoding.encode_policy(policy) for policy in policies])
            belief = bounded(asked, self._method.predict(asked.encoding, asked.history, ledger.state(), self._seed, encoded))
        return Prediction(mean=ledger.sign * np.asarray(belief.mean), std=np.asarray(belief.std))

    def belief(self, objective: Any = None) -> ScaledBelief | None:
        """Return the belief itself, for reports, or None if the method shows none.

        It is about the objective of the problem, or about the one given.

        In the belief a larger value is better, whatever the direction of the problem.
        """
        with self._computation():
            ledger, method = self._informed("belief"), self._method
            asked = question(method, ledger, objective=objective)
            return method.belief(asked.encoding, asked.history, ledger.state(), self._seed) if isinstance(method, ShowsBelief) else None

    def past(self, most: int = 32, known: Mapping[int, Best] | None = None) -> dict[int, Best]:
        """Return what `best` answered, or would have, at up to `most` earlier numbers of returns.

        Answers in `known` are not computed again.
        """
        with self._computation():
            return past_recommendations(self._book.origin, self._method, self._seed, self._book.known().log, most, known or {})

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write a page (.html) with the recommendation, the evidence for it, and all trials.

        The page can be read without a network. Its title is `title`, or the journal's name.
        """
        # Imported by name, because the report layer depends on this one and not the reverse.
        with self._computation():
            importlib.import_module("aloq.report.html").write(self, path, title)

    def _informed(self, verb: str) -> Ledger:
        ledger = self._book.known()
        if not ledger.returns:
            raise StudyError(f"`{verb}` needs at least one return, but this study was told none. Call `optimize`, or `ask` and `tell`.")
        return ledger

    def trials(self) -> pd.DataFrame:
        """Return a table with one row for each trial.

        Its columns are id, state (told, failed, pending), value, measure.NAME, policy.NAME,
        environment.NAME, reason and seconds.
        """
        from aloq.study.table import table

        return table(self._book.known())

    def verification(self) -> Verification | None:
        """Return what `verify` found last, also in another process, or None before it has ended.

        It is compared with what was believed when its simulations were chosen.
        """
        return verification(self._book.known())

    def _repr_html_(self) -> str:
        text: str = importlib.import_module("aloq.report.notebook").shown(self)
        return text
