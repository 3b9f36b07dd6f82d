"""Run the jobs of a target, keep every finished run, and write tables and figures.

Each target's folder gets these files:

    runs.jsonl                finished runs, as they end (see `aloq.experiments.store`)
    runs.csv, policies.csv    the same as tables: every recorded step; the final policy of each run
    table.csv, table.md       quartiles beside the paper's
    NAME.png                  figures
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aloq.experiments import lockstep, pool, registry, store
from aloq.experiments.extras import missing
from aloq.experiments.target import ExperimentError, Job, Results, Target, check_methods
from aloq.problem.errors import ProblemError
from aloq.study.running.progress import rich_bar

if TYPE_CHECKING:
    import pandas as pd

Say = Callable[[str], None]
RunJobs = Callable[[Sequence[Job], int], Iterable[pool.Finished]]
FLOATS = "%.6g"  # enough digits to tell runs apart, and few enough to keep files small


@dataclass(frozen=True)
class Reproduction:
    """What the user asked for.

    `methods` is None for all methods of a target. `lockstep` is None if all runs are in processes.
    """

    target: str
    runs: int = 20
    workers: int = 2
    out: Path = Path("out/reproduction")
    methods: tuple[str, ...] | None = None
    smoke: bool = False
    fresh: bool = False
    lockstep: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("runs", self.runs), ("workers", self.workers), ("lockstep", self.lockstep)):
            if value is not None and value < 1:
                raise ProblemError(f"`{name}` must be at least 1, but it is {value}.")

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets asked for. If methods were asked for, only targets that have one of them."""
        chosen = registry.targets(self.target)
        if self.methods is None:
            return chosen
        check_methods(self.methods, tuple(dict.fromkeys(method for target in chosen for method in target.methods)))
        return tuple(target for target in chosen if set(self.methods) & set(target.methods))

    def folder(self, target: Target) -> Path:
        return self.out / target.name


def jobs(plan: Reproduction, say: Say) -> list[Job]:
    """Return all runs, ordered by seed, then by method.

    So all methods advance evenly, and workers seldom compile the same program at the same time.
    """
    found = [(index, job) for index, target in enumerate(plan.targets) for job in target.jobs(plan.runs, plan.methods, plan.smoke)]
    names = dict.fromkeys(name for _, job in found for name in (job.method, job.task))
    absent = {name: error for name in names if (error := missing(name))}
    for name, error in absent.items():
        if name == plan.target or (plan.methods and name in plan.methods):
            raise error
        say(f"{name} is left out. {error}")
    order = list(dict.fromkeys(job.method for _, job in found))
    found.sort(key=lambda item: (item[1].seed, order.index(item[1].method), item[0]))
    return [job for _, job in found if job.method not in absent and job.task not in absent]


def reproduce(plan: Reproduction, say: Say, run: RunJobs = pool.run) -> None:
    """Run the jobs that have no result yet. Then write tables and figures of all results."""
    from aloq.report.drawing import blank

    targets, wanted = plan.targets, jobs(plan, say)
    blank(1, 1)  # raises now, not after hours, if figures cannot be drawn
    with ExitStack() as stack:
        stores = {}
        for target in targets:
            stores[target.name] = store.Store(plan.folder(target), target, plan.smoke, plan.fresh)
            stack.callback(stores[target.name].close)
        left = [job for job in wanted if job.key not in stores[job.target].done]
        if len(left) < len(wanted):
            say(f"{len(wanted) - len(left)} of {len(wanted)} runs are there already.")
        failed = _keep(_finished(left, plan, run), len(left), stores, say)
    for target in targets:
        if stores[target.name].records:
            write(target, plan.folder(target))
            say(f"{target.name}: tables and figures are in {plan.folder(target)}")
    if failed:
        count, first = f"{len(failed)} of {len(wanted)} runs failed; the others are kept", failed[0]
        raise ExperimentError(f"{count}. The first, {_line(first)}, ended with:\n{first.error}")


def rewrite(plan: Reproduction, say: Say) -> None:
    """Write tables and figures of the existing runs, whichever version ran them."""
    targets = [target for target in plan.targets if store.finished(plan.folder(target))]
    if not targets:
        raise ExperimentError(f"There are no results of {plan.target} in {plan.out}. Run the experiment first, without --report.")
    for target in targets:
        write(target, plan.folder(target))
        say(f"{target.name}: tables and figures are in {plan.folder(target)}")


def _finished(left: Sequence[Job], plan: Reproduction, run: RunJobs) -> Iterator[pool.Finished]:
    """Yield jobs as they finish.

    If lockstep was asked for, the jobs that suit it run in lockstep first. The others then run in
    processes.
    """
    together = [job for job in left if plan.lockstep is not None and lockstep.suits(job)]
    if plan.lockstep is not None:
        yield from lockstep.run(together, plan.lockstep)
    if apart := [job for job in left if job not in together]:
        yield from run(apart, plan.workers)


def _keep(finished: Iterable[pool.Finished], total: int, stores: dict[str, store.Store], say: Say) -> list[pool.Finished]:
    """Store the records of jobs as they finish. Return the jobs that failed."""
    failed = []
    with _bar(total, say) as advance:
        for one in finished:
            if one.record is None:
                failed.append(one)
            else:
                stores[one.job.target].add(one.record)
            advance(one)
    return failed


@contextmanager
def _bar(total: int, say: Say) -> Iterator[Callable[[pool.Finished], None]]:
    """Show a progress bar on a terminal; elsewhere, print a line for each run."""
    progress = rich_bar("{task.description}")
    if not progress.console.is_terminal or not total:
        count = iter(range(1, total + 1))
        yield lambda finished: say(f"[{next(count)}/{total}] {_line(finished)}")
        return
    with progress:
        task = progress.add_task("", total=total)
        yield lambda finished: progress.update(task, advance=1, description=_line(finished))


def _line(finished: pool.Finished) -> str:
    task, method, seed = finished.job.key
    took = "failed" if finished.record is None else f"{finished.record['seconds']:.0f} s"
    return f"{task} {method} seed {seed}: {took}"


def load(folder: Path) -> Results:
    """Return the finished runs in a target's folder."""
    return store.results(*store.read(folder))


def write(target: Target, folder: Path) -> None:
    """Write tables and figures of the finished runs in a target's folder."""
    from aloq.experiments.figures.quartiles import markdown

    results = load(folder)
    save(results.runs, folder / "runs.csv")
    if len(results.policies):
        save(results.policies, folder / "policies.csv")
    table = target.table(results)
    if table is not None:
        save(table, folder / "table.csv")
        (folder / "table.md").write_text(markdown(table), encoding="utf-8")
    for name, figure in target.figures(results).items():
        figure.savefig(folder / f"{name}.png")


def save(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, compressed if the name ends in .gz.

    The same table always gives the same bytes.
    """
    packed: dict[str, object] | None = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    frame.to_csv(path, index=False, float_format=FLOATS, compression=packed, lineterminator="\n")
