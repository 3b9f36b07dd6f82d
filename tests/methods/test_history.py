"""What a history says about the simulator, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aloq.methods.history import Array, History

PAIRS = np.array([[0.1, 0.0], [0.5, 1.0], [0.1, 0.0], [0.9, 0.0], [0.5, 1.0]])


def history(values: list[float], pairs: Array = PAIRS) -> History:
    none = pairs[:0]
    return History.of(pairs[: len(values)], np.array(values), none, none, len(values))


@pytest.mark.parametrize(
    ("values", "deterministic"),
    [
        ([], False),  # nothing known
        ([1.0, 2.0], False),  # nothing repeated
        ([1.0, 2.0, 1.0], True),
        ([1.0, 2.0, 1.0, 5.0, 2.0], True),
        ([1.0, 2.0, 1.0, 5.0, 2.0 + 1e-15 * 4], False),  # one repeat differs in the last digit
        ([1.0, 2.0, 3.0], False),
    ],
)
def test_a_simulator_is_deterministic_if_all_repeats_agree(values: list[float], deterministic: bool) -> None:
    assert history(values).deterministic is deterministic


def test_a_history_is_whole() -> None:
    with pytest.raises(ValueError, match=r"but got 3 pairs, 2 values and 2 rows of measures\. Make one with `History\.of`"):
        replace(history([1.0, 2.0]), told=PAIRS[:3])


def test_confirming_repeats_are_left_out_in_order() -> None:
    distinct = history([1.0, 2.0, 1.0, 5.0, 2.0]).distinct()
    np.testing.assert_array_equal(distinct.told, PAIRS[[0, 1, 3]])
    np.testing.assert_array_equal(distinct.values, [1.0, 2.0, 5.0])
    assert distinct.asked == 5


def test_repeats_of_a_noisy_simulator_all_count() -> None:
    """Wins and losses repeat by chance; one pair that gave both shows that there is noise."""
    wins = history([1.0, 0.0, 1.0, 1.0, 1.0])
    assert wins.distinct() is wins


def test_a_policy_is_spent_once_every_environment_is_known_and_sure_to_repeat() -> None:
    both = np.array([[0.1, 0.0], [0.1, 1.0], [0.5, 1.0], [0.1, 0.0]])
    np.testing.assert_array_equal(history([1.0, 2.0, 3.0, 1.0], both).spent(1, environments=2.0), [[0.1]])
    assert history([1.0, 2.0, 3.0, 1.0], both).spent(1, environments=3.0).shape == (0, 1)
    assert not len(history([1.0, 2.0, 3.0, 1.5], both).spent(1, environments=2.0))  # noise: there is more to learn
    assert not len(history([]).spent(1, environments=1.0))


@pytest.mark.parametrize("outcome", ["pending", "failed"])
def test_a_policy_of_which_nothing_was_told_is_spent_too(outcome: str) -> None:
    both = np.array([[0.1, 0.0], [0.1, 1.0], [0.5, 1.0]])
    told = history([1.0], np.array([[0.9, 0.0]]))
    asked = replace(told, pending=both) if outcome == "pending" else replace(told, failed=both)
    np.testing.assert_array_equal(asked.spent(1, environments=2.0), [[0.1]])
    assert not len(asked.spent(1, environments=3.0))
