"""The `aloq` command.

Each command is a module that imports what it needs only when it runs. So `aloq --help` is fast.
"""

from __future__ import annotations

import io
import signal
import sys
from typing import Annotated, Any

import typer

from aloq import __version__
from aloq.cli import hexapod
from aloq.cli.add import add
from aloq.cli.adopt import adopt
from aloq.cli.amend import amend, drop
from aloq.cli.ask import ask
from aloq.cli.best import best
from aloq.cli.check import check
from aloq.cli.errors import INTERRUPTED
from aloq.cli.export import export
from aloq.cli.fail import fail
from aloq.cli.init import init
from aloq.cli.journal import journal
from aloq.cli.report import report, watch
from aloq.cli.reproduce import reproduce
from aloq.cli.run import run
from aloq.cli.tasks import tasks
from aloq.cli.tell import tell
from aloq.cli.verify import verify


class App(typer.Typer):
    """The command line application.

    After Ctrl-C it ends with exit code 130, even if Ctrl-C is pressed again meanwhile.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except (KeyboardInterrupt, SystemExit) as ended:
            if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
                raise
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # otherwise another Ctrl-C would kill the interpreter while it ends
            sys.exit(INTERRUPTED)


app = App(name="aloq", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("tasks")(tasks)
app.command("init")(init)
app.command("check")(check)
app.command("run")(run)
app.command("ask")(ask)
# Unknown options are ignored because a negative return looks like an option.
app.command("tell", context_settings={"ignore_unknown_options": True})(tell)
app.command("fail")(fail)
app.command("add")(add)
app.command("amend", context_settings={"ignore_unknown_options": True})(amend)
app.command("drop")(drop)
app.command("adopt")(adopt)
app.command("best")(best)
app.command("verify")(verify)
app.command("export")(export)
app.command("report")(report)
app.command("watch")(watch)
app.command("reproduce")(reproduce)
app.add_typer(hexapod.app, name="hexapod")
app.add_typer(journal)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"aloq {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")]


@app.callback()
def main(version: Version = False) -> None:
    """Find policies that stay good when rare events strike."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # text that the terminal cannot show must not end a command
            stream.reconfigure(errors="backslashreplace")
