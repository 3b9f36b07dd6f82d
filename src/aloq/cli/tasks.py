"""`aloq tasks`: what there is to run."""

from __future__ import annotations


def tasks() -> None:
    """List the tasks that `aloq run` knows."""
    from rich.console import Console
    from rich.table import Table

    from aloq.tasks import load, names

    table = Table()
    for heading in ("task", "policy", "environment", "goal", "best possible", "what it is"):
        table.add_column(heading, no_wrap=heading == "task")
    for task in map(load, names()):
        problem = task.problem
        variables = ", ".join(problem.policy_names), ", ".join(problem.environment_names)
        table.add_row(task.name, *variables, problem.direction, f"{task.best:.5g}", task.description)
    Console().print(table)
