"""A cell of a notebook that shows how a run goes. It needs nothing but the notebook itself."""

from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Sequence
from typing import Any

_PAUSE = 0.2  # seconds between two changes of the cell

_BAR = '<div style="font-family:inherit"><progress value="{told}" max="{total}" style="width:min(24em,60%)"></progress> {text}</div>'


class OutputCell:
    """The output of the cell that runs, changed in place."""

    def __init__(self, display: Any) -> None:
        self._display, self._handle, self._due = display, None, 0.0

    def show(self, told: int, total: int, texts: Sequence[str], last: bool) -> None:
        """Show a bar and some texts. Changes that come too fast are left out, but for the last."""
        if time.monotonic() < self._due and not last:
            return
        text = ", ".join([f"{told} of {total}", *texts])
        bundle = {"text/plain": text, "text/html": _BAR.format(told=told, total=total, text=html.escape(text))}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        self._due = time.monotonic() + _PAUSE


def cell() -> OutputCell | None:
    """Return the output of the cell that runs, or None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal has none
        return None
    return OutputCell(importlib.import_module("IPython.display").display)
