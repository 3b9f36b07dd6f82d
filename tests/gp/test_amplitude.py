"""Kernels whose variance differs from place to place, against the same written out, and what they
are a priori.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Dense

from aloq.gp.amplitude import MOST, Amplitude, LabelAmplitude, varying
from aloq.gp.contraction import at_pairs, between_pairs
from aloq.gp.hyper import Structure
from aloq.gp.kernel import SE, Constant, Kernel, Leaf
from aloq.problem import codec
from aloq.problem.errors import ProblemError
from aloq.testing import check_kernel

PRIOR = (0.0, 1.0)


@pytest.mark.parametrize(
    "kernel", [pytest.param(Constant() * SE() * Amplitude(), marks=pytest.mark.slow), Constant() * SE("policy") * LabelAmplitude()]
)
def test_it_is_a_kernel_that_can_be_averaged(kernel: Kernel) -> None:
    check_kernel(kernel)


@pytest.mark.parametrize("numbers", [(True, True, True), (True, False, True), (True, False, False)])
def test_it_is_what_the_formula_says(numbers: tuple[bool, ...]) -> None:
    structure = Structure(varying(1, numbers, PRIOR, PRIOR), 1, numbers, warping="none")
    rng = np.random.default_rng(3)
    zeta, x, other = rng.normal(size=structure.size), rng.uniform(size=(5, 3)), rng.uniform(size=(4, 3))
    hyper, dense = structure.unpack(jnp.asarray(zeta)), Dense(structure, zeta)
    np.testing.assert_allclose(between_pairs(structure, hyper, jnp.asarray(x), jnp.asarray(other)), dense.k(x, other), rtol=1e-12)
    np.testing.assert_allclose(at_pairs(structure, hyper, jnp.asarray(x)), np.diag(dense.k(x, x)), rtol=1e-12)


@pytest.mark.parametrize("width", [0.02, 0.2, 3.0])
def test_the_size_is_the_standard_deviation_of_its_logarithm_whatever_the_width(width: float) -> None:
    leaf, rng = Amplitude((0,)), np.random.default_rng(4)
    u = jnp.linspace(0, 1, 9)[:, None]
    shape = [np.log(0.7), np.log(width)]
    draws = np.array([leaf.log_amplitude(jnp.asarray([*shape, *c]), u) for c in rng.standard_normal((1000, leaf.bumps))])
    # A standard deviation of 1000 draws is off by 2 % or so.
    np.testing.assert_allclose(draws.std(axis=0), 0.7, rtol=0.08)


def test_bumps_too_narrow_to_overlap_leave_no_hole() -> None:
    """Between two bumps the nearer one decides. Without the root there would be 0 / 0."""
    leaf = Amplitude((0,))
    values = jnp.asarray([0.0, np.log(1e-4), 1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(leaf.log_amplitude(values, jnp.asarray([[0.0], [0.1], [0.13], [1.0]])), [1, 1, 2, 5], rtol=1e-12)


def kinds(kernel: Kernel) -> list[list[type[Leaf]]]:
    return [[type(kernel.leaves[i]) for i in term] for term in kernel.terms]


def test_it_is_composed_for_the_columns_of_the_problem() -> None:
    main = [[Constant, SE], [Constant, SE]]
    assert kinds(varying(2, (True,) * 3, PRIOR, PRIOR)) == [[Constant, SE, Amplitude], *main]
    assert kinds(varying(1, (True, False), PRIOR, PRIOR)) == [[Constant, SE, LabelAmplitude], *main]
    assert kinds(varying(1, (True, False, True), PRIOR, PRIOR)) == [[Constant, SE, Amplitude, LabelAmplitude], *main]
    assert kinds(varying(1, (True,) * (2 + MOST), PRIOR, PRIOR)) == [[Constant, SE], *main]  # too many hyperparameters
    assert kinds(varying(2, (True, False), PRIOR, PRIOR)) == [[Constant, SE]]  # no environment


def test_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match=r"`bumps` must be at least 2, but it is 1\. For one amplitude everywhere, leave Amplitude out"):
        Amplitude(bumps=1)
    with pytest.raises(ProblemError, match="The prior `width` must be"):
        Amplitude(width=(0.0, -1.0))
    with pytest.raises(ProblemError, match=r"`size` must be a positive number, but it is 0\.0"):
        LabelAmplitude(size=0.0)


def test_it_survives_json() -> None:
    kernel = varying(1, (True, False, True), PRIOR, PRIOR)
    assert codec.from_json(codec.to_json(kernel)) == kernel
