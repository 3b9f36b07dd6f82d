"""What was recommended at earlier times of a study.

A method is a pure function of what was told, the state it left, and the seed, and the journal keeps all three: so the recommendation of any
time can be had again, exactly as `best` would have given it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aloq.methods.interface import Method
from aloq.problem.problem import Problem
from aloq.study.best import Best, recommended
from aloq.study.journal.record import Record
from aloq.study.ledger import Ledger
from aloq.study.running.interrupts import checkpoint


def past_recommendations(
    problem: Problem, method: Method, seed: int, log: Sequence[Record], most: int, known: Mapping[int, Best]
) -> dict[int, Best]:
    """Number of returns → recommendation, at up to `most` times when a trial was asked for; those `known` are taken from there."""
    ledger, found = Ledger.of(problem), dict[int, Best]()
    returned = ("tell",) if problem.failure_value is None else ("tell", "fail")
    step = _step(sum(record["event"] in returned for record in log), most)
    for record in log:
        ledger.apply(record)
        count = ledger.returns
        # Without a state the method had learnt nothing yet, and what it would have recommended would be learnt only now.
        if record["event"] != "ask" or not record["state"] or not count or count % step or count in found:
            continue
        checkpoint()
        found[count] = known[count] if count in known else recommended(method, ledger, problem.encoding, ledger.state(), seed)
    return found


def _step(count: int, most: int) -> int:
    """The smallest power of two that leaves at most `most` multiples up to `count`: those of a growing study fall on earlier ones."""
    step = 1
    while count // step > most:
        step *= 2
    return step
