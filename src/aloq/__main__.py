"""`python -m aloq` is the command `aloq`."""

from __future__ import annotations

from aloq.cli.main import app

if __name__ == "__main__":
    app()
