"""Call the command line in this process, and write a study of a small program."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from aloq.cli.main import app


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def study_of(body: str, **settings: object) -> None:
    """Write study.toml, and sim.sh with this body. It gets x and ice as arguments."""
    Path("sim.sh").write_text(f"#!/bin/sh\n{body}\n")
    Path("sim.sh").chmod(0o755)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    text = 'command = ["./sim.sh", "{x}", "{ice}"]\njournal = "s.jsonl"\n'
    variables = "\n[policy]\nx = [0.0, 1.0]\n[environment]\nice = {values = [0, 1], p = [0.9, 0.1]}\n"
    Path("study.toml").write_text(text + "\n".join(lines) + variables)
