"""Objectives: the property of a policy's random return that is optimised.

The bad returns are the low ones if the problem maximises, and the high ones if it minimises. The
definitions are in docs/maths/risk.md, and the formulas in `aloq.quadrature.risk`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from aloq.problem.checks import number
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError, nearest


@dataclass(frozen=True)
class Objective:
    """Base of all objectives: a functional of the return's distribution under p(environment)."""

    @property
    def quantity(self) -> str:
        """What the objective is about, in words."""
        return f"{self} of the return"

    def __str__(self) -> str:
        """Return the objective as `objective_of` reads it."""
        arguments = ", ".join(f"{getattr(self, each.name)!r}" for each in fields(self))
        return f"{type(self).__name__}({arguments})" if arguments else type(self).__name__


@register
@dataclass(frozen=True)
class Expectation(Objective):
    """The mean return."""

    @property
    def quantity(self) -> str:
        return "expected return"


@register
@dataclass(frozen=True)
class CVaR(Objective):
    """The mean of the worst returns, whose probability is `alpha` in all.

    Also called expected shortfall. CVaR(1) is the mean.
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _share(self.alpha, "CVaR"))


@register
@dataclass(frozen=True)
class Quantile(Objective):
    """The return that the worst returns, whose probability is `alpha` in all, do not exceed."""

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _share(self.alpha, "Quantile"))


@register
@dataclass(frozen=True)
class WorstCase(Objective):
    """The return in the worst environment that is possible at all."""

    @property
    def quantity(self) -> str:
        return "return in the worst case"


@register
@dataclass(frozen=True)
class MeanStd(Objective):
    """The mean return, made worse by `kappa` standard deviations of the return."""

    kappa: float

    def __post_init__(self) -> None:
        kappa = float(number(self.kappa, "`kappa` of MeanStd"))
        if kappa < 0:
            raise ProblemError(f"`kappa` of MeanStd must be at least 0, but got {kappa!r}. To ignore how returns vary, use Expectation().")
        object.__setattr__(self, "kappa", kappa)


OBJECTIVES: tuple[type[Objective], ...] = (Expectation, CVaR, Quantile, WorstCase, MeanStd)

_FORM = re.compile(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*")


def objective_of(text: Any) -> Objective:
    """Return the objective that a text names, such as "CVaR(0.1)" or "expectation"."""
    known = {kind.__name__.casefold(): kind for kind in OBJECTIVES}
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1].casefold() not in known:
        names = ", ".join(f'"{_form(kind)}"' for kind in OBJECTIVES)
        meant = nearest("" if found is None else found[1].casefold(), known)
        raise ProblemError(f"`objective` must be one of {names}, but is {text!r}.{meant}")
    kind: Callable[..., Objective] = known[found[1].casefold()]
    try:
        arguments = [float(word) for word in (found[2] or "").split(",") if word.strip()]
        return kind(*arguments)
    except ProblemError:
        raise
    except (TypeError, ValueError):
        raise ProblemError(f'`objective` must be written as "{_form(known[found[1].casefold()])}", but is {text!r}.') from None


def _form(kind: type[Objective]) -> str:
    """Return an example of how an objective is written."""
    return f"{kind.__name__}(0.1)" if fields(kind) else kind.__name__


def _share(value: Any, name: str) -> float:
    share = float(number(value, f"`alpha` of {name}"))
    if not 0 < share <= 1:
        raise ProblemError(
            f"`alpha` of {name} must be a probability above 0 and up to 1, but got {share!r}. The worst 5 % are {name}(0.05)."
        )
    return share
