"""`aloq tell`: what a simulation returned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, opened
from aloq.problem.errors import StudyError

Values = Annotated[
    list[str],
    typer.Argument(
        metavar="VALUE|NAME=VALUE",
        help="What the simulation returned: a number; or the study's measures, as distance=1.2 slip=nan fell=true or as a JSON object.",
    ),
]


def tell(
    what: What,
    trial: Annotated[int, typer.Argument(metavar="ID", help="The trial's number, as `aloq ask` gave it.")],
    values: Values,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="How long it took.")] = None,
) -> None:
    """Tell what a simulation returned. Once this ends, it is on the disk."""
    with clean_exit(), opened(what) as study:
        study.tell(trial, given(values, study.problem.measures), seconds=seconds)


def given(words: Sequence[str], measures: tuple[str, ...]) -> float | dict[str, Any]:
    """Return what the words say: a number, or measures by name."""
    if len(words) == 1 and "{" in words[0]:
        return _object(words[0])
    if len(words) > 1 or "=" in words[0]:
        return _pairs(words)
    value = _number(words[0])
    if measures:
        form = " ".join(f"{name}=..." for name in measures)
        raise StudyError(
            f"This study needs the measures {', '.join(measures)}, but {words[0]!r} came. Write {form}, with nan where one does not exist."
        )
    return value


def _object(text: str) -> dict[str, Any]:
    from aloq.study.returned import null_as_nan

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"Measures must be a JSON object, but {text!r} cannot be read: {error}. {_FORMS}") from None
    if not isinstance(found, dict):
        raise StudyError(f"Measures must be a JSON object, but {text!r} came. {_FORMS}")
    return null_as_nan(found)


def _pairs(words: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in words:
        name, equals, number = word.partition("=")
        if not equals or not name:
            raise StudyError(f"Measures must be NAME=NUMBER, or NAME=true or NAME=false, each, but {word!r} came. {_FORMS}")
        if name in found:
            raise StudyError(f"Each measure must come once, but {name!r} comes twice. Leave one of them out.")
        found[name] = number == "true" if number in ("true", "false") else _number(number, f" as the measure {name!r}")
    return found


def _number(text: str, where: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        raise StudyError(f"There must be a number, but {text!r} came{where}. {_FORMS}") from None


_FORMS = 'Write 7.25, or distance=1.2 clearance=nan, or \'{"distance": 1.2, "clearance": null}\' in quotes.'
