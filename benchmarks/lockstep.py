"""Measure how long many runs in lockstep take on JAX's device, and where the time goes.

    python benchmarks/lockstep.py --task arm-collision --method aloq --runs 20 --evaluations 60

Runs with the seeds 0, 1, ... are followed as `aloq reproduce --lockstep` does, with a
recommendation after every evaluation. For each compiled program it prints the number of executions,
their calls and lanes (lanes beyond the calls are padding), how often it was compiled, and seconds.
`compile` is the first execution with new shapes, including loading from the cache. `execute` waits
for the device each time, which a run without measurement does not. The rest is the time of the
host: `joining` calls into batches, and the `studies`' own Python, including what they fetch from
the device and the switching from one to the next.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import jax
import numpy as np

from aloq import tasks
from aloq.experiments.batch import Batches
from aloq.experiments.follow import configured, follow
from aloq.experiments.lockstep import in_step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="arm-collision")
    parser.add_argument("--method", default="aloq")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=60)
    args = parser.parse_args()

    task, method = tasks.load(args.task), configured(args.method)
    checkpoints = range(1, args.evaluations + 1)
    works = [partial(follow, task, method, seed, args.evaluations, checkpoints) for seed in range(args.runs)]
    batches = Batches(args.runs, timed=True)
    device = jax.devices()[0].device_kind
    print(f"{args.runs} runs of {args.method} on {args.task} to {args.evaluations} evaluations, on {device}", flush=True)

    start = time.perf_counter()
    ends = dict(in_step(works, batches))
    wall = time.perf_counter() - start

    print(f"{'program':>20} {'batches':>8} {'calls':>8} {'lanes':>8} {'compiled':>8} {'compile s':>10} {'execute s':>10} {'ms/batch':>9}")
    for name, tally in sorted(batches.tallies.items(), key=lambda item: -item[1].seconds):
        each = 1e3 * tally.seconds / max(tally.batches - tally.compiled, 1)
        print(
            f"{name:>20} {tally.batches:8d} {tally.calls:8d} {tally.lanes:8d} {tally.compiled:8d}"
            f" {tally.compile_seconds:10.2f} {tally.seconds:10.2f} {each:9.2f}"
        )
    found = list(batches.tallies.values())
    count, compiling, executing = (sum(getattr(tally, name) for tally in found) for name in ("batches", "compile_seconds", "seconds"))
    joining, studies = batches.seconds - compiling - executing, wall - batches.seconds
    print(f"wall {wall:.1f} s = compile {compiling:.1f} + execute {executing:.1f} + joining {joining:.1f} + studies {studies:.1f}")
    print(f"{count} batches; joining {1e3 * joining / count:.2f} ms and studies {1e3 * studies / count:.2f} ms a batch")
    print(f"studies {1e3 * studies / args.runs / args.evaluations:.2f} ms a run and evaluation")
    print(f"without compilation {(wall - compiling) / args.runs:.2f} s a run")
    failed = {seed: result for seed, result in ends.items() if isinstance(result, BaseException)}
    for seed, error in failed.items():
        print(f"seed {seed} failed: {error!r}")
    true = [ends[seed].columns["true"][-1] for seed in sorted(ends) if seed not in failed]
    if true:
        quartiles = ", ".join(f"{value:.4g}" for value in np.quantile(true, [0.25, 0.5, 0.75]))
        print(f"true expected return at the end, quartiles: {quartiles}; best possible {task.best:.4g}")


if __name__ == "__main__":
    main()
