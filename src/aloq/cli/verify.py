"""`aloq verify`: check the recommended policy with fresh simulations."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import AsJson, Parallel, Retries, Timeout

if TYPE_CHECKING:
    from aloq.cli.jobs import RunRequest
    from aloq.study.verification import Verification

DISAGREES = 1


def verify(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TASK|STUDY.toml|FILE.py:problem|JOURNAL",
            help="What to simulate, as for `aloq run`. A journal alone prints what was found before.",
        ),
    ],
    evaluations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Fresh simulations of this policy in all, those in the journal included.")
    ] = 40,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help="The study's journal, if the study file names none.")] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="The study's method. [default: aloq]")] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", min=0, help="The study's seed. [default: 0]")] = None,
    parallel: Parallel = None,
    timeout: Timeout = None,
    retries: Retries = None,
    as_json: AsJson = False,
) -> None:
    """Check the expected return of the recommended policy with fresh simulations.

    The exit code is 0 if they agree with what the study believes, and 1 if they do not, so that a
    script can stop there. Errors end with 2.
    """
    with clean_exit():
        given: dict[str, Any] = {"journal": journal, "method": method, "seed": seed, "parallel": parallel}
        given |= {"timeout": timeout, "retries": retries}
        found = _recorded(Path(what)) if _is_journal(what) else _verified(what, given, evaluations)
        typer.echo(json.dumps(_as_json(found)) if as_json else f"{_policy(found)}\n{found}")
        if found.agrees is False:
            raise typer.Exit(DISAGREES)


def _is_journal(what: str) -> bool:
    path = Path(what)
    return path.is_file() and path.suffix not in (".toml", ".py")


def _recorded(path: Path) -> Verification:
    from aloq.problem.errors import StudyError
    from aloq.study.study import Study

    found = Study.read(path).verification()
    if found is None:
        raise StudyError(
            f"{path} holds no finished verification, and a journal does not know its simulator. Name what simulates, as for `aloq run`: "
            f"aloq verify STUDY.toml, or aloq verify FILE.py:problem --journal {path}."
        )
    return found


def _verified(what: str, given: dict[str, Any], evaluations: int) -> Verification:
    from aloq.cli.jobs import load
    from aloq.problem.errors import ProblemError

    job: RunRequest = replace(load(what), **{name: value for name, value in given.items() if value is not None})
    if job.journal is None or not job.journal.exists():
        missing = "there is no journal" if job.journal is None else f"{job.journal} does not exist"
        raise ProblemError(f"A study must have been run before it is verified, but {missing}. Use aloq run {what} --journal FILE first.")
    with job.opened(job.problem) as study:
        return study.verify(
            job.simulate, evaluations, parallel=job.parallel, timeout=job.timeout, retries=job.retries, patience=job.patience
        )


def _policy(found: Verification) -> str:
    return ", ".join(f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in found.policy.items())


def _as_json(found: Verification) -> dict[str, Any]:
    fields = asdict(found)
    del fields["rounding"]
    return fields | {"agrees": found.agrees}
