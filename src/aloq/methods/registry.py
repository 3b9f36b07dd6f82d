"""Methods by name, as the command line and the experiments call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aloq.acquisition.environment import RandomDraw, UncertaintySampling
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.methods.model import Model
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.methods.wsn import WSN
from aloq.problem.errors import ProblemError, nearest


def _unwarped() -> ALOQ:
    return replace(ALOQ.paper(), model=Model(warp="none"))


_METHODS: dict[str, Callable[[], Method]] = {
    "aloq": ALOQ,
    "aloq-paper": ALOQ.paper,
    "rq-aloq": lambda: replace(ALOQ.paper(), environment_rule=RandomDraw()),
    "us-aloq": lambda: replace(ALOQ.paper(), environment_rule=UncertaintySampling()),
    "unwarped-aloq": _unwarped,
    "one-step-aloq": lambda: replace(ALOQ.paper(), intensify=None),
    "naive": Naive,
    "wsn": WSN,
    "reinforce": Reinforce,
}


def names() -> tuple[str, ...]:
    """All methods that have a name."""
    return tuple(_METHODS)


def named(name: str) -> Method:
    """The method of that name."""
    if name not in _METHODS:
        raise ProblemError(f"There is no method {name!r}.{nearest(name, names())} The methods are: {', '.join(names())}.")
    return _METHODS[name]()
