"""The recommendations that a study made, or would have made, at earlier times.

A method is a pure function of the told returns, its last state and the seed. The journal keeps all
three. So the recommendation at any time can be computed again, exactly as `best` would have given
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aloq.methods.interface import Method
from aloq.problem.problem import Problem
from aloq.study.best import Best, recommended
from aloq.study.journal.record import Record
from aloq.study.ledger import Ledger
from aloq.study.question import question
from aloq.study.running.interrupts import checkpoint


def past_recommendations(
    problem: Problem, method: Method, seed: int, log: Sequence[Record], most: int, known: Mapping[int, Best]
) -> dict[int, Best]:
    """Return the recommendation for each of up to `most` numbers of returns.

    They are taken at times when a trial was asked for. Those in `known` are not computed again.
    Returns that the user added without counting them are known, but not in the number.
    """
    ledger, found = Ledger.of(problem), dict[int, Best]()
    returned = ("tell",) if problem.failure_value is None else ("tell", "fail")
    step = _step(sum(record["event"] in returned for record in log), most)
    for record in log:
        ledger.apply(record)
        count = ledger.evaluations
        # Without a state the method had learnt nothing, and would have to learn now to recommend.
        if record["event"] != "ask" or record["state"] == {} or not count or count % step or count in found:
            continue
        checkpoint()
        found[count] = known[count] if count in known else recommended(method, ledger, question(method, ledger), ledger.state(), seed)
    return found


def _step(count: int, most: int) -> int:
    """Return the smallest power of two that has at most `most` multiples up to `count`.

    With powers of two, a study that has grown needs few new times: its multiples are also multiples
    of the smaller steps used before.
    """
    step = 1
    while count // step > most:
        step *= 2
    return step
