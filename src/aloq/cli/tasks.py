"""`aloq tasks`: what there is to run."""

from __future__ import annotations


def tasks() -> None:
    """List the tasks that `aloq run` knows."""
    from math import isnan

    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from aloq.problem.errors import UnavailableError
    from aloq.tasks import load, names

    table = Table(box=SIMPLE, padding=0)
    for heading in ("task", "policy", "environment", "goal", "best", "what it is"):
        names_of_variables = heading in ("policy", "environment")
        table.add_column(heading, no_wrap=not names_of_variables and heading != "what it is", max_width=13 if names_of_variables else None)
    for name in names():
        try:
            task = load(name)
        except UnavailableError as error:
            table.add_row(name, "", "", "", "", "needs " + escape(error.remedy))
            continue
        problem = task.problem
        variables = ", ".join(problem.policy_names), ", ".join(problem.environment_names)
        table.add_row(task.name, *variables, problem.direction[:3], "?" if isnan(task.best) else f"{task.best:.4g}", task.description)
    Console().print(table)
