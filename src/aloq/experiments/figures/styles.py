"""How each method looks, the same in every figure.

Colours are Okabe and Ito's. There are fewer of them than methods, so ablations are dashed: colour and dash together are unique, and no
panel needs to tell methods apart by the dash alone.
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
OURS = ("aloq", "aloq-paper")
BASELINES = ("naive", "wsn", "reinforce", "trpo")
ABLATIONS = ("rq-aloq", "us-aloq", "unwarped-aloq", "one-step-aloq")


def style(method: str) -> Style:
    """The look of a method; a method without one of its own is grey and goes by its name."""
    return STYLES.get(method, Style(method))


def ordered(methods: set[str]) -> list[str]:
    """Methods in the order every table and legend lists them."""
    known = [method for method in STYLES if method in methods]
    return known + sorted(methods - set(known))
