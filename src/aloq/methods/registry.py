"""Methods by name, for the command line and the experiments.

A method is imported when it is asked for. So the names can be listed without loading JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aloq.problem.errors import ProblemError, nearest

if TYPE_CHECKING:
    from aloq.methods.interface import Method


def _aloq() -> Method:
    from aloq.methods.aloq import ALOQ

    return ALOQ()


def _cliffs() -> Method:
    from aloq.methods.aloq import ALOQ
    from aloq.methods.regimes import Regimes

    return ALOQ(model=Regimes())


def _paper(**exchanged: Any) -> Method:
    """Return the paper's method with some parts exchanged."""
    from aloq.methods.aloq import ALOQ

    return replace(ALOQ.paper(), **exchanged)


def _random_environments() -> Method:
    from aloq.acquisition.environment import RandomDraw

    return _paper(environment_rule=RandomDraw())


def _uncertain_environments() -> Method:
    from aloq.acquisition.environment import UncertaintySampling

    return _paper(environment_rule=UncertaintySampling())


def _unwarped() -> Method:
    from aloq.methods.model import Model

    return _paper(model=Model(warp="none"))


def _naive() -> Method:
    from aloq.methods.naive import Naive

    return Naive()


def _wsn() -> Method:
    from aloq.methods.wsn import WSN

    return WSN()


def _reinforce() -> Method:
    from aloq.methods.reinforce import Reinforce

    return Reinforce()


DEFAULT = "aloq"  # the method of a study that names none

_METHODS: dict[str, Callable[[], Method]] = {
    DEFAULT: _aloq,
    "aloq-cliffs": _cliffs,
    "aloq-paper": _paper,
    "rq-aloq": _random_environments,
    "us-aloq": _uncertain_environments,
    "unwarped-aloq": _unwarped,
    "one-step-aloq": lambda: _paper(intensify=None),
    "naive": _naive,
    "wsn": _wsn,
    "reinforce": _reinforce,
}


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return tuple(_METHODS)


def named(name: str) -> Method:
    """Return the method of that name."""
    if name not in _METHODS:
        raise ProblemError(f"There is no method {name!r}.{nearest(name, names())} The methods are: {', '.join(names())}.")
    return _METHODS[name]()
