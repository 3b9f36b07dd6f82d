"""The true values of the gallery's problems, computed without aloq, and the pictures of its pages.

    PYTHONPATH=tests/support python docs/_site/gallery.py [NAME ...]

A problem here has two policy variables. `truths` of a problem gives for policies (x, y) the true
expected cost or return, and what it would be if nothing rare happened. The dynamics of the crane,
the car, the truss and the dam are written again, for many policies at once. The gripper and the
shop are simulated by the page's own function, in all environments.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docs_blocks
import numpy as np
from scipy import stats

from aloq.report.drawing import BLACK, ORANGE, SKY, VERMILION, blank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = Any
Names = dict[str, Any]  # what a page's blocks define

FOLDER = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Problem:
    """A problem of the gallery, and what is known about it."""

    policy: tuple[str, str]  # its variables, x and y
    labels: tuple[str, str]
    grid: tuple[Array, Array]  # values of x and y
    truths: Callable[[Names, Array, Array], tuple[Array, Array]]  # (m,), (m,) -> expected, without the rare event
    rare: Callable[[dict[str, Any]], bool]  # of an environment
    most: float  # where the colours of bad values end
    sign: int = 1  # -1: larger is better


def tables(problem: Problem, names: Names) -> tuple[Array, Array]:
    """Return expected values, and those without the rare event, on the grid: (x, y) each."""
    x, y = (points.ravel() for points in np.meshgrid(*problem.grid, indexing="ij"))
    shape = tuple(len(values) for values in problem.grid)
    expected, likely = problem.truths(names, x, y)
    return expected.reshape(shape), likely.reshape(shape)


def best(problem: Problem, table: Array) -> tuple[Any, Any]:
    """Return the policy (x, y) of the grid that is best in a table."""
    row, column = np.unravel_index((problem.sign * table).argmin(), table.shape)
    return problem.grid[0][row], problem.grid[1][column]


def at(problem: Problem, names: Names, policy: dict[str, Any]) -> tuple[float, float]:
    """Return the true expected value of one policy, and its value without the rare event."""
    expected, likely = problem.truths(names, *(np.array([policy[name]]) for name in problem.policy))
    return float(expected[0]), float(likely[0])


def critical(margin: Callable[[Array], Array], shape: tuple[int, ...], most: float) -> Array:
    """Return how strong an event must be until a margin is used up, which falls with its strength: by bisection."""
    low, high = np.zeros(shape), np.full(shape, most)
    for _ in range(24):
        middle = (low + high) / 2
        safe = margin(middle) >= 0
        low, high = np.where(safe, middle, low), np.where(safe, high, middle)
    return low


# The crane.


def crane_clearance(seconds: Array, rope: Array, gust: Array, moment: Array) -> Array:
    """Return the least room beside the load, for arrays of the same shape."""
    swing, rate, widest = (np.zeros(np.broadcast(seconds, rope, gust, moment).shape) for _ in range(3))
    for t in 0.02 * np.arange(int((np.max(seconds) + 8.0) / 0.02) + 1):
        done = np.minimum(t / seconds, 1.0)
        trolley = 30.0 / seconds**2 * (60 * done - 180 * done**2 + 120 * done**3)
        wind = np.maximum(gust, 0.0) * np.sin(np.pi * np.clip((t - moment * seconds) / 6.0, 0.0, 1.0))
        push = 0.6 * 1.2 * 30.0 * wind**2 / 5000.0
        rate = rate + 0.02 * ((push - trolley) * np.cos(swing) - 9.81 * np.sin(swing) - 0.3 * rate) / rope
        swing = swing + 0.02 * rate
        widest = np.where(t < seconds + 8.0, np.maximum(widest, np.abs(rope * np.sin(swing))), widest)
    return 2.2 - widest


def crane(names: Names, seconds: Array, rope: Array) -> tuple[Array, Array]:
    law, s, r, moments = stats.gumbel_r(5.0, 1.8), seconds[:, None], rope[:, None], (np.arange(10) + 0.5) / 10
    gusts = critical(lambda gust: crane_clearance(s, r, gust, moments), (len(seconds), 10), 40.0)
    sure = seconds + 2.5 * (12.0 - rope)
    calm = crane_clearance(s, r, law.median(), moments) < 0
    return sure + 1000 * law.sf(gusts).mean(axis=1), sure + 1000 * calm.mean(axis=1)


# The car.


def car_return(right: Array, left: Array, power: float) -> Array:
    """Return the rewards of Gymnasium's MountainCarContinuous-v0, from a start at -0.5."""
    position, speed, effort = np.full(right.shape, -0.5), np.zeros(right.shape), np.zeros(right.shape)
    arrived = np.zeros(right.shape, dtype=bool)
    for _ in range(999):
        force = np.where(speed >= 0, right, -left)
        effort += np.where(arrived, 0.0, 0.1 * force**2)
        faster = np.clip(speed + force * power - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        further = np.clip(position + faster, -1.2, 0.6)
        faster = np.where((further == -1.2) & (faster < 0), 0.0, faster)
        position, speed = np.where(arrived, position, further), np.where(arrived, speed, faster)
        arrived |= position >= 0.45
    return 100.0 * arrived - effort


def car(names: Names, right: Array, left: Array) -> tuple[Array, Array]:
    built, worn, failing = (car_return(right, left, power) for power in (0.0015, 0.0010, 0.0007))
    return 0.95 * built + 0.03 * worn + 0.02 * failing, built


# The truss.


def truss_failure(outer: Array, middle: Array, weld: float) -> Array:
    """Return the probability that a bar yields: exact in the load, Gauss-Hermite in angle and strength."""
    z, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    a, b, angle = 1e-4 * outer[:, None], 1e-4 * weld * middle[:, None], np.radians(8.0 * z)
    # By symmetry sideways and downward loads do not mix. Displacements for 1 kN, times the modulus.
    aside, down = np.sin(angle) * 1e3 / (a / np.sqrt(2)), np.cos(angle) * 1e3 / (a / np.sqrt(2) + b)
    stresses = np.stack([(aside + down) / 2, (down - aside) / 2, down + 0 * aside])
    critical = (250.0 + 12.0 * z) / (np.abs(stresses).max(axis=0) / 1e6)[:, :, None]  # kN
    return np.einsum("a,mas,s->m", weights, stats.gumbel_r(30.0, 4.0).sf(critical), weights)


def truss(names: Names, outer: Array, middle: Array) -> tuple[Array, Array]:
    sound, weak = (truss_failure(outer, middle, weld) for weld in (1.0, 0.4))
    steel = 10 * (2.83 * outer + middle)
    return steel + 5000 * (0.98 * sound + 0.02 * weak), steel + 5000 * sound


# The dam.


def dam_freeboard(start: Array, release: Array, gates: float, peak: Array) -> Array:
    """Return how far the water stays below the crest."""
    level = highest = start
    for hour in np.arange(72 * 60) / 60:
        inflow = peak * hour / 24 if hour < 24 else peak * (72 - hour) / 48
        level = np.maximum(level + 60 * (inflow - gates * release) / (4e6 + 1e5 * (level - 30)), start)
        highest = np.maximum(highest, level)
    return 52.0 - highest


def dam(names: Names, level: Array, release: Array) -> tuple[Array, Array]:
    law = stats.gumbel_r(500.0, 120.0)
    works, stuck = (law.sf(critical(partial(dam_freeboard, level, release, gates), level.shape, 5000.0)) for gates in (1.0, 0.2))
    sure = 10 * (50 - level) + 0.2 * release
    return sure + 10000 * (0.95 * works + 0.05 * stuck), sure + 10000 * works


# The gripper and the shop, by the functions of their pages.


def gripper(names: Names, grip: Array, acceleration: Array) -> tuple[Array, Array]:
    policies = [{"grip": float(g), "acceleration": float(a)} for g, a in zip(grip, acceleration, strict=True)]
    masses = [0.225, 0.275, 0.325, 0.375]
    dry, dusty, oily = (_averaged(names, policies, [{"friction": f, "mass": m} for m in masses]) for f in (0.8, 0.5, 0.15))
    return 0.90 * dry + 0.08 * dusty + 0.02 * oily, (0.90 * dry + 0.08 * dusty) / 0.98


def shop(names: Names, reorder: Array, lot: Array) -> tuple[Array, Array]:
    policies = [{"reorder": int(r), "lot": int(n)} for r, n in zip(reorder, lot, strict=True)]
    demands = [8.667, 10.0, 11.333]
    none, short, long = (_averaged(names, policies, [{"demand": d, "outage": days} for d in demands]) for days in (0, 10, 40))
    return 0.93 * none + 0.05 * short + 0.02 * long, none


def _averaged(names: Names, policies: list[dict[str, Any]], environments: list[dict[str, Any]]) -> Array:
    """Return what each policy is worth on the average over some environments."""
    value, simulate = names["problem"].valuation.of, names["simulate"]
    return np.array([np.mean([value(simulate(policy, each), policy, each) for each in environments]) for policy in policies])


PROBLEMS = {
    "crane": Problem(
        ("seconds", "rope"),
        ("seconds for the way", "rope (m)"),
        (np.linspace(8, 25, 35), np.linspace(4, 12, 17)),
        crane,
        lambda environment: environment["gust"] > 10,
        most=45,
    ),
    "car": Problem(
        ("right", "left"),
        ("push to the right", "push to the left"),
        (np.linspace(0.05, 1, 39), np.linspace(0.05, 1, 39)),
        car,
        lambda environment: environment["power"] < 0.0015,
        sign=-1,
        most=90,
    ),
    "gripper": Problem(
        ("grip", "acceleration"),
        ("grip (N)", "acceleration (m/s²)"),
        (np.linspace(2, 40, 20), np.linspace(1, 15, 8)),
        gripper,
        lambda environment: environment["friction"] < 0.2,
        most=2,
    ),
    "shop": Problem(
        ("reorder", "lot"),
        ("reorder at", "pieces in an order"),
        (np.arange(60, 601, 54), np.arange(100, 501, 40)),
        shop,
        lambda environment: environment["outage"] > 10,
        most=4000,
    ),
    "truss": Problem(
        ("outer", "middle"),
        ("outer bars (cm²)", "middle bar (cm²)"),
        (np.linspace(0.2, 3, 57), np.linspace(0.2, 4, 77)),
        truss,
        lambda environment: environment["weld"] < 1,
        most=120,
    ),
    "dam": Problem(
        ("level", "release"),
        ("level before the flood (m)", "release (m³/s)"),
        (np.linspace(25, 50, 26), np.linspace(100, 1000, 19)),
        dam,
        lambda environment: environment["gates"] < 1,
        most=700,
    ),
}


# The pictures.


def draw(problem: Problem, names: Names, study: Any) -> Figure:
    """Draw the return without the rare event on the left, and the expected return on the right."""
    figure = blank(9, 3.7)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    expected, likely = tables(problem, names)
    levels = np.linspace(*sorted((problem.most, problem.sign * (problem.sign * likely).min())), 13)
    for axes, table, title in zip(panels, (likely, expected), ("If nothing rare happened", "In expectation"), strict=True):
        colours = axes.contourf(*problem.grid, table.T, levels=levels, cmap="viridis_r" if problem.sign > 0 else "viridis", extend="both")
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel(problem.labels[0])
    panels[0].set_ylabel(problem.labels[1])
    figure.colorbar(colours, ax=panels, label="cost" if problem.sign > 0 else "return", format="%.4g")
    _draw_simulated(panels[1], problem, study)
    marks: list[tuple[Any, str, str, str]] = [
        (best(problem, likely), "X", VERMILION, "best if nothing rare happened"),
        (best(problem, expected), "P", "white", "best in expectation"),
        (tuple(study.best().policy[name] for name in problem.policy), "*", ORANGE, "aloq"),
    ]
    for axes, (policy, marker, colour, label) in product(panels, marks):
        axes.plot(
            *policy, marker, color=colour, markeredgecolor=BLACK, markersize=12, clip_on=False, zorder=5, label=label, linestyle="none"
        )
    handles, labels = panels[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize="small")
    return figure


def _draw_simulated(axes: Axes, problem: Problem, study: Any) -> None:
    told = [trial for trial in study.trials().to_dict("records") if trial["state"] == "told"]
    for rare, colour, label in ((False, "white", "simulated"), (True, SKY, "simulated in the rare event")):
        chosen = [trial for trial in told if problem.rare(_environment(trial)) == rare]
        x, y = ([trial[f"policy.{name}"] for trial in chosen] for name in problem.policy)
        axes.plot(x, y, "o", color=colour, markeredgecolor=BLACK, markeredgewidth=0.6, markersize=4.5, label=label)


def _environment(trial: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("environment."): value for name, value in trial.items() if name.startswith("environment.")}


def write(name: str) -> None:
    """Run a page, print what its policies are truly worth, and draw its picture."""
    from PIL import Image

    problem = PROBLEMS[name]
    picture = FOLDER / "images" / "gallery" / f"{name}.png"
    with in_a_new_folder():
        names = docs_blocks.run(f"docs/gallery/{name}.md")
        study = studied(names)
        expected, likely = tables(problem, names)
        found = study.best()
        print(f"{name}: {found}")
        rows = {"without the rare event": best(problem, likely), "in expectation": best(problem, expected)}
        policies = {what: dict(zip(problem.policy, values, strict=True)) for what, values in rows.items()}
        for what, policy in {**policies, "aloq": found.policy}.items():
            worth, calm = at(problem, names, policy)
            print(f"  {what}: {policy}, expected {worth:.4g}, without the rare event {calm:.4g}")
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(problem, names, study).savefig(picture, dpi=110)
    # Few colours are enough, and make the file small.
    Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)
    print(f"  {picture}: {picture.stat().st_size / 1000:.0f} kB")


def studied(names: Names) -> Any:
    """Return the study that a page made, in Python or by the command line."""
    import aloq

    return names["study"] if "study" in names else aloq.Study.read(next(Path.cwd().glob("*.jsonl")))


@contextmanager
def in_a_new_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


if __name__ == "__main__":
    for each in sys.argv[1:] or PROBLEMS:
        write(each)
