"""Read an environment: return the laws that it consists of, or say what is wrong with it."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from aloq.problem import checks, frozen, listed_law
from aloq.problem.continuous import Continuous, continuous
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.problem.listed_law import ListedLaw
from aloq.problem.variables import Archive, Choice, Integer, Real

Source = ListedLaw | Continuous


def checked_environment(environment: Any) -> Samples | dict[str, Any]:
    """Return the environment in its stored form.

    All columns of samples have names there, and a scipy law with listed values is a `Discrete`.
    """
    if isinstance(environment, Samples):
        return environment if environment.names else _renamed(environment, _numbered("e", environment))
    if not isinstance(environment, Mapping):
        raise ProblemError(
            f"`environment` must be a dict of names to distributions, or Samples, but got {type(environment).__name__}. "
            "Write environment={'friction': stats.uniform(0.4, 0.6)}."
        )
    if not environment:
        raise ProblemError("`environment` must have a variable, but got none. If nothing varies, write {'none': Discrete([0])}.")
    return {checks.variable_name(name): _with_own_values(name, law) for name, law in environment.items()}


def sources(environment: Samples | Mapping[str, Any]) -> tuple[Source, ...]:
    """Return the independent laws of a plain environment, in order."""
    if isinstance(environment, Samples):
        return (listed_law.samples(environment.names or (), environment),)
    return tuple(_source(name, law) for name, law in environment.items())


def _with_own_values(name: str, law: Any) -> Any:
    listed = frozen.listed_values(law)
    if listed is not None:
        return Discrete(*listed)
    if isinstance(law, Samples) and law.points.shape[1] > 1 and not law.names:
        return _renamed(law, _numbered(name, law))
    return law


def _source(name: str, law: Any) -> Source:
    try:
        return _read(name, law)
    except ProblemError as error:
        raise ProblemError(f"environment variable {name!r}: {error}") from error


def _read(name: str, law: Any) -> Source:
    if isinstance(law, Discrete):
        return listed_law.discrete(name, law)
    if isinstance(law, Choice):
        return listed_law.choice(name, law)
    if isinstance(law, Samples):
        return listed_law.samples((name,) if law.points.shape[1] == 1 else law.names or (), law)
    if frozen.is_unfrozen(law):
        raise ProblemError(_freeze(law))
    if not isinstance(law, type) and hasattr(law, "ppf") and hasattr(law, "cdf"):
        if hasattr(law, "pmf"):
            return listed_law.enumerated(name, law)
        if hasattr(law, "pdf"):
            return continuous(name, law)
    raise ProblemError(_refusal(law))


def _freeze(law: Any) -> str:
    needs = law.shapes + ", ..." if law.shapes else ""
    known = f"stats.{law.name}" if getattr(law, "name", None) not in (None, "Distribution") else "law"
    return f"a scipy distribution must be frozen, but got {known} with open parameters. Freeze it: {known}({needs})."


def _refusal(law: Any) -> str:
    """Return why `law` is not a distribution, and what to write instead."""
    rule = f"a distribution must be frozen from scipy.stats, or Discrete, Choice or Samples, but got {_shown(law)}."
    if isinstance(law, Real | Integer) or _is_range(law):
        return f"{rule} A range has no probabilities: write stats.uniform(low, high - low), or stats.randint(low, high + 1)."
    if isinstance(law, numbers.Number | str):
        kind = "Choice" if isinstance(law, bool | str) else "Discrete"
        return f"{rule} For a constant write {kind}([{law!r}]), or leave it out."
    if isinstance(law, Archive):
        return f"{rule} An Archive holds policies: write Samples(points, weights)."
    if isinstance(law, Mapping):
        return f"{rule} Write Discrete(list(d), p=list(d.values()))."
    if isinstance(law, list | tuple | set) or hasattr(law, "__array__"):
        return f"{rule} Write Discrete(values, p) for numbers, Choice(values, p) for labels, Samples(points) for draws."
    if hasattr(law, "icdf"):
        return f"{rule} Use the frozen form, stats.norm(mean, std) instead of stats.Normal(mu=mean, sigma=std)."
    if hasattr(law, "rvs") or hasattr(law, "resample"):
        draws = "dist.rvs(1000)" if hasattr(law, "rvs") else "dist.resample(1000).T"
        return f"{rule} Without `ppf`, `cdf` and `pdf` it can only be drawn from: write Samples({draws})."
    return f"{rule} Draw from it and write Samples(draws)."


def _shown(law: Any) -> str:
    return repr(law) if isinstance(law, tuple | list | str | numbers.Number | Real | Integer) else type(law).__name__


def _is_range(law: Any) -> bool:
    return isinstance(law, tuple) and len(law) == 2 and all(isinstance(end, numbers.Real) for end in law)


def _numbered(stem: str, law: Samples) -> tuple[str, ...]:
    return tuple(f"{stem}{i}" for i in range(law.points.shape[1]))


def _renamed(law: Samples, names: tuple[str, ...]) -> Samples:
    return Samples(law.points, law.weights, names)
