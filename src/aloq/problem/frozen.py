"""Frozen scipy distributions: recognise them, write them, read them back, print them.

scipy.stats takes a second to import. Only functions that get or make one of its distributions
import it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import ProblemError, nearest


def is_frozen(obj: object) -> bool:
    """Return whether `obj` is a frozen univariate scipy distribution: `stats.norm(0, 1)`, say."""
    return _from_scipy(obj) and all(hasattr(obj, name) for name in ("dist", "args", "kwds"))


def is_unfrozen(obj: object) -> bool:
    """Return whether `obj` is a distribution with open parameters, such as `stats.norm`."""
    return any(base.__name__ == "rv_generic" and _module(base) for base in type(obj).__mro__)


def parameters(law: Any) -> str:
    """Return the arguments of a frozen distribution, as source code."""
    shown = [repr(_python_value(arg)) for arg in law.args]
    return ", ".join(shown + [f"{key}={_python_value(value)!r}" for key, value in law.kwds.items()])


def describe(law: Any) -> str:
    """Return a frozen distribution as the user would write it."""
    return f"stats.{law.dist.name}({parameters(law)})" if is_named(law) else f"<frozen {type(law.dist).__name__}>"


def is_named(law: Any) -> bool:
    """Return whether scipy.stats itself offers this distribution under its name."""
    from scipy import stats

    return type(vars(stats).get(law.dist.name)) is type(law.dist)


def fields(law: Any) -> dict[str, Any]:
    """Return the fields that build a frozen distribution again.

    These are its `type` and the arguments of the reader for that type.
    """
    from scipy import stats

    common = {"args": list(law.args), "kwds": dict(law.kwds)}
    if isinstance(law.dist, stats.rv_histogram):
        counts, edges = law.dist._histogram
        return {"type": "histogram", "counts": list(counts), "edges": list(edges), "density": law.dist._density, **common}
    if is_named(law):
        return {"type": "scipy", "name": law.dist.name, **common}
    raise ProblemError(
        f"a distribution must be one of scipy.stats to be written as JSON, but got a {type(law.dist).__name__}. "
        "Give its values instead: Discrete(values, p), or Samples(law.rvs(1000))."
    )


def read_scipy(name: str, args: Sequence[Any] = (), kwds: Mapping[str, Any] | None = None) -> Any:
    """Return the frozen distribution `stats.<name>(*args, **kwds)`.

    Raises if `name` is not that of a distribution in scipy.stats.
    """
    from scipy import stats

    known = {key: value for key, value in vars(stats).items() if isinstance(value, stats.rv_continuous | stats.rv_discrete)}
    if name not in known:
        raise ProblemError(
            f"a scipy distribution must be one that scipy.stats offers, but the file has {name!r}.{nearest(name, known)} "
            "Check the name, or update scipy."
        )
    return known[name](*args, **(kwds or {}))


def read_histogram(
    counts: Sequence[float],
    edges: Sequence[float],
    density: bool | None = None,
    args: Sequence[Any] = (),
    kwds: Mapping[str, Any] | None = None,
) -> Any:
    """Return `stats.rv_histogram((counts, edges), density=density)(*args, **kwds)`."""
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns if bins differ in width and `density` is None. The user saw that warning when
        # the distribution was first made.
        warnings.simplefilter("ignore", RuntimeWarning)
        return stats.rv_histogram((counts, edges), density=density)(*args, **(kwds or {}))


def standard_variance(law: Any) -> float:
    """Return the variance. For a frozen distribution it is taken at scale 1.

    There it can neither overflow nor vanish.
    """
    if not is_frozen(law):
        return float(law.var())
    shapes = {key: value for key, value in law.kwds.items() if key not in ("loc", "scale")}
    return float(law.dist.var(*law.args[: law.dist.numargs], **shapes))


def bin_levels(law: Any) -> NDArray[np.float64] | None:
    """Return the distribution function at a histogram's bin edges, or None for other laws."""
    histogram = getattr(getattr(law, "dist", None), "_histogram", None)
    return None if histogram is None else np.asarray(law.dist.cdf(histogram[1]), dtype=np.float64)


def listed_values(law: Any) -> tuple[list[float], list[float]] | None:
    """Return values and probabilities of a frozen `rv_discrete(values=...)`; else None."""
    if not is_frozen(law) or not hasattr(law.dist, "xk"):
        return None
    loc = law.args[0] if law.args else law.kwds.get("loc", 0)
    # scipy accepts probabilities whose sum misses 1 by up to 1e-5.
    return (law.dist.xk + loc).tolist(), (law.dist.pk / law.dist.pk.sum()).tolist()


def _python_value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def _from_scipy(obj: object) -> bool:
    return _module(type(obj))


def _module(cls: type) -> bool:
    return cls.__module__.startswith("scipy.stats")
