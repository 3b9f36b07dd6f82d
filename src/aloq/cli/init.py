"""`aloq init`: a study file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit

TEMPLATE = """\
# A study: which policy is best on average, when the environment varies? Run it as it is, then make it yours:
#   aloq check {name}    simulate a few times, and say what came back
#   aloq run {name}      find the policy

# The simulator: any program. {{speed}} and the like stand for values, each stays one argument, and no shell reads them.
# It must print the return as the last line. Here: how far a car gets with a speed, less what skidding on ice costs.
command = ["awk", "-v", "speed={{speed}}", "-v", "tyres={{tyres}}", "-v", "ice={{ice}}", "-v", "slope={{slope}}",
           'BEGIN {{ skid = (tyres == "winter") ? 4 : 8; print speed * (1 - slope / 10) - skid * ice * speed ^ 2 }}']
# input = "json"          # the program reads {{"policy": {{...}}, "environment": {{...}}}} from standard input instead
# field = "return"        # the program prints JSON, and the return is this field of it
# shell = false           # true: command is one string for `sh`, with pipes and all; write "{{speed}}" in quotes there
# The next two go together: what the program measures, and what that is worth.
# measures = ["distance", "skid"]            # it prints {{"distance": 1.2, "skid": null}} as the last line; null: there is none
# value = "distance - where(skid > 0, 4 * skid, 0)"    # numbers, names, + - * / **, comparisons, where(condition, a, b), ...

direction = "maximize"    # or "minimize"
# objective = "CVaR(0.1)"    # the mean of the worst 10 % of cases; or "Quantile(0.1)", "WorstCase", "MeanStd(1)"; else the mean
evaluations = 40          # simulations in all, those in the journal included
# parallel = 4            # simulations at the same time
# timeout = 600           # seconds after which a simulation is ended and counts as failed
# retries = 1             # how often a failed simulation is tried again
# patience = 20           # failures in a row that end the run
# failure_value = -10.0   # what a failure is worth, if it is the policy's fault (the car crashed); else it says nothing
# bounds = [0.0, inf]     # the least and the highest return that are possible at all, if that is known
journal = {journal}    # every trial is kept here; give the command again to go on
# seed = 0
# method = "aloq"

[policy]                  # what you choose
speed = [0.0, 2.0]                              # a number in a range; {{low = 1e-4, high = 1.0, log = true}} on a log scale
tyres = {{choices = ["summer", "winter"]}}        # one of some labels; {{integer = [1, 8]}} for a whole number

[environment]             # what you do not choose, and how it varies
ice = {{values = [0, 1], p = [0.9, 0.1]}}         # listed numbers with their probabilities; {{choices = [...], p = [...]}} for labels
slope = {{dist = "uniform", loc = 0.0, scale = 2.0}}    # any distribution of scipy.stats, with its parameters by name

# [subject_to]            # conditions, and the share of the environment in which each must hold
# "speed <= 1.5 or tyres == 'winter'" = 1.0      # on what you choose: nothing else is simulated
# "skid <= 0.2" = 0.99                           # on what the program measures: in 99 of 100 cases
"""


def init(file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path("study.toml")) -> None:
    """Write a commented study file that runs as it is, to be changed."""
    with clean_exit():
        from aloq.problem.errors import ProblemError

        if file.suffix != ".toml":
            raise ProblemError(f"A study file must end in .toml, but {file} does not. Write `aloq init {file.with_suffix('.toml')}`.")
        try:
            with file.open("x", encoding="utf-8") as handle:
                handle.write(template(file.name))
        except FileExistsError:
            raise ProblemError(f"{file} is there already, and is left as it is. Choose another name, or delete it first.") from None
        except OSError as error:
            raise ProblemError(f"{file} cannot be written: {error.strerror}.") from error
        typer.echo(f"{file} is written. Next: aloq check {file}")


def template(name: str) -> str:
    """Return the text of a study file called `name`."""
    import json

    return TEMPLATE.format(name=name, journal=json.dumps(f"{Path(name).stem}.jsonl"))
