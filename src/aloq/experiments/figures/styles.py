"""The look of each method, which is the same in every figure.

Colours are Okabe and Ito's. There are fewer colours than methods, so ablations are dashed. Colour
and dash together are unique, and in no panel do methods differ by the dash alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from aloq.report.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION


@dataclass(frozen=True)
class Style:
    """A method's name for readers, and its line."""

    label: str
    colour: str = GREY
    dash: str = "-"
    marker: str = "o"


STYLES = {
    "aloq": Style("aloq (default)", BLACK, "-", "o"),
    "aloq-measured": Style("aloq, measured", GREY, "-", "8"),
    "aloq-paper": Style("ALOQ", BLUE, "-", "s"),
    "aloq-appendix": Style("ALOQ, κ = 3, warps (2, ½)", BLUE, ":", "p"),
    "aloq-kappa-half": Style("ALOQ, κ = ½", BLUE, "-.", "H"),
    "naive": Style("naïve", ORANGE, "-", "^"),
    "wsn": Style("WSN", VERMILION, "-", "v"),
    "reinforce": Style("Reinforce", PURPLE, "-", "D"),
    "trpo": Style("TRPO", SKY, "-", "P"),
    "rq-aloq": Style("RQ-ALOQ", GREEN, "--", "X"),
    "us-aloq": Style("US-ALOQ", PURPLE, "--", "<"),
    "unwarped-aloq": Style("unwarped ALOQ", ORANGE, "--", ">"),
    "one-step-aloq": Style("one-step ALOQ", VERMILION, "--", "d"),
    "map": Style("MAP", SKY, "--", "*"),
    "best-intact": Style("best intact gait", VERMILION, ":", "h"),
}
OURS = ("aloq", "aloq-measured", "aloq-paper")
BASELINES = ("naive", "wsn", "reinforce", "trpo")
ABLATIONS = ("rq-aloq", "us-aloq", "unwarped-aloq", "one-step-aloq")


def style(method: str) -> Style:
    """Return the look of a method. An unknown method is grey, and its label is its name."""
    return STYLES.get(method, Style(method))


def ordered(methods: set[str]) -> list[str]:
    """Return methods in the order of every table and legend."""
    known = [method for method in STYLES if method in methods]
    return known + sorted(methods - set(known))
