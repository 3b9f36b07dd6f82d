"""The page that shows all results, written from the finished runs.

Tables and figures go into a folder beside the page that has its name, with a folder for each
target. Remarks by hand are kept in NAME_remarks.md. The text before its first heading opens the
page, and the text under a heading `## TARGET` goes to that target.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from aloq.experiments import store
from aloq.experiments.figures.quartiles import curves, markdown
from aloq.experiments.reproduce import load, save
from aloq.experiments.target import ExperimentError, Target
from aloq.study.journal.record import Record

_OPENING = """# Reproduction

Made by `aloq reproduce all --docs docs/reproduction.md`; do not edit. Remarks by hand are in [{remarks}]({remarks}).

The paper is S. Paul, K. Chatzilygeroudis, K. Ciosek, J.-B. Mouret, M. A. Osborne and S. Whiteson, "Alternating Optimisation and Quadrature
for Robust Control", AAAI 2018; columns `paper_...` are its numbers. It prints no budgets: those here are ours. Numbers are quartiles over
runs of the true expected return of the policy that a method recommends at the end. ALOQ is the paper's configuration, `aloq (default)` the
library's own, and `aloq, measured` the same on the task told in full: the simulator reports measures, and a formula gives their worth.
"""


_HOURS = {"core hours": False, "hours in lockstep": True}  # whether runs shared a device


def write_page(targets: tuple[Target, ...], out: Path, page: Path) -> None:
    """Write the page from the results in `out`. Targets without results are only named."""
    remarks = _remarks(page.with_name(f"{page.stem}_remarks.md"))
    found = [target for target in targets if store.finished(out / target.name)]
    if not found:
        raise ExperimentError(f"There are no results in {out} to write a page from. Run the experiments first.")
    parts = [_OPENING.format(remarks=f"{page.stem}_remarks.md"), remarks.get("", "")]
    for target in found:
        parts += [_section(target, out / target.name, page), remarks.get(target.name, "")]
    if absent := [target.name for target in targets if target not in found]:
        parts.append(f"## Not run\n\nThere are no results yet for {', '.join(absent)}.")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(part.strip() for part in parts if part.strip()) + "\n", encoding="utf-8")


def _section(target: Target, folder: Path, page: Path) -> str:
    """Return the section of a target: title, budget, machine, table and figures."""
    header, runs = store.read(folder)
    own = page.with_suffix("") / target.name
    figures = _export(target, folder, own)
    seeds = len({run["seed"] for run in runs})
    lines = [f"## {target.title}", f"`aloq reproduce {target.name}`: {target.budget()}. {_runs(seeds)}. {_stamp(header, runs)}"]
    if header["smoke"]:
        lines.append("**These are results of the small setting. They show that everything works, and nothing else.**")
    table = target.table(load(folder))
    if table is not None:
        lines.append(markdown(table))
    lines += [f"![{target.title}: {path.stem}]({path.relative_to(page.parent).as_posix()})" for path in figures]
    return "\n\n".join(lines)


def _export(target: Target, folder: Path, own: Path) -> list[Path]:
    """Save the table, curves, steps (compressed), policies and figures with the page.

    Return the paths of the figures.
    """
    results = load(folder)
    own.mkdir(parents=True, exist_ok=True)
    save(results.runs, own / "runs.csv.gz")
    if len(results.policies):
        save(results.policies, own / "policies.csv")
        save(curves(results.runs), own / "curves.csv")
    table = target.table(results)
    if table is not None:
        save(table, own / "table.csv")
    return [Path(shutil.copy(path, own / path.name)) for path in sorted(folder.glob("*.png"))]


def _runs(seeds: int) -> str:
    return "One run" if seeds == 1 else f"{seeds} runs a method"


def _stamp(header: Record, runs: list[Record]) -> str:
    """Return which version ran, for how long, and on which machines."""
    machines = {tuple(run["machine"].items()): run["machine"] for run in runs}.values()
    places = "; ".join(
        f"{m['processor']} with {m['cpus']} CPUs, {m['platform']}, Python {m['python']}, JAX {m['jax']}{_on_device(m)}" for m in machines
    )
    spent = {what: sum(run["seconds"] for run in runs if ("device" in run["machine"]) == shared) for what, shared in _HOURS.items()}
    hours = ", ".join(f"{seconds / 3600:.2g} {what}" for what, seconds in spent.items() if seconds)
    return f"aloq {header['aloq']}, {hours}, on {places}."


def _on_device(machine: Record) -> str:
    """Return words about the device that runs in lockstep shared, if they did."""
    return f", in lockstep on {machine['device']}" if "device" in machine else ""


def _remarks(path: Path) -> dict[str, str]:
    """Return the remarks by heading. The text before the first heading has the key ""."""
    if not path.exists():
        return {}
    opening, *parts = re.split(r"^## +(\S+) *$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    without_title = re.sub(r"\A\s*# .*\n", "", opening)
    return {"": without_title} | dict(zip(parts[::2], parts[1::2], strict=True))
