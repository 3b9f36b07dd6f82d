"""What a method has learnt from all that was told, found once for any number of questions about it."""

from __future__ import annotations

import copy

from aloq.methods.interface import Method, State
from aloq.study.ledger import Ledger


class Learnt:
    """The state of a method after the last return. The journal keeps the one after the last ask, and to go on from there takes time."""

    def __init__(self) -> None:
        self._known: tuple[int, State] | None = None  # number of records, state after them

    def state(self, method: Method, ledger: Ledger, seed: int) -> State | None:
        """Up to date where the method can say it, else as it was left; a copy."""
        learn = getattr(method, "learn", None)
        if learn is None:
            return ledger.state()
        count = len(ledger.log)
        if self._known is None or self._known[0] != count:
            self._known = count, learn(ledger.encoding, ledger.history(), ledger.state(), seed)
        return copy.deepcopy(self._known[1])
