"""Kernels that compose: which slots of zeta each has, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Dense
from jax import Array

from aloq.gp.contraction import WeightedNodes, between_pairs, embedding, environment_parts, policy_parts, warped_nodes
from aloq.gp.kernel import SE, Constant, Kernel, Leaf, Matern52, Parameter, Product, Sum
from aloq.methods.model import Model
from aloq.problem import codec
from aloq.problem.errors import ProblemError

MAIN_EFFECTS = Constant((1.0, 0.1)) * SE() + Constant((2.0, 0.2)) * Matern52("policy", (3.0, 0.3)) + Constant() * SE("environment")


def test_each_leaf_has_slots_of_its_own_in_the_order_of_the_tree() -> None:
    structure = Model(kernel=MAIN_EFFECTS).structure(2, (True, False, True))
    names = [parameter.name for parameter in structure.parameters]
    kernel = ["variance", *["length_scale"] * 3, "variance", *["length_scale"] * 2, "variance", "length_scale"]
    assert names == [*kernel, "alpha", "alpha", "beta", "beta", "noise"]
    mean, sd = structure.prior()
    assert mean[[0, 4, 5, 6]].tolist() == [1.0, 2.0, 3.0, 3.0]
    assert sd[[0, 4, 5, 6]].tolist() == [0.1, 0.2, 0.3, 0.3]
    assert [placed.columns for placed in structure.leaves] == [(), (0, 1, 2), (), (0, 1), (), (2,)]
    assert structure.named("noise").tolist() == [False] * 13 + [True]


def test_a_product_of_sums_is_multiplied_out_and_shares_the_leaves() -> None:
    kernel = (Constant() + SE("policy")) * (SE("environment") + Constant())
    assert len(kernel.leaves) == 4
    assert kernel.terms == ((0, 2), (0, 3), (1, 2), (1, 3))


def test_a_product_multiplied_out_is_the_product(rng: np.random.Generator) -> None:
    """(a + k_1) · k_2 by its terms, against the same by hand."""
    structure = Model(kernel=(Constant() + Matern52("policy")) * SE(), warp="none").structure(1, (True, True))
    zeta = rng.normal(size=structure.size)
    x, other = rng.uniform(size=(4, 2)), rng.uniform(size=(5, 2))
    found = between_pairs(structure, structure.unpack(jnp.asarray(zeta)), jnp.asarray(x), jnp.asarray(other))
    gap = np.abs(x[:, None] - other[None])
    s = np.sqrt(5) * gap[..., 0] / np.exp(zeta[1])
    by_hand = (np.exp(zeta[0]) + (1 + s + s**2 / 3) * np.exp(-s)) * np.exp(-0.5 * np.sum((gap / np.exp(zeta[2:4])) ** 2, axis=-1))
    np.testing.assert_allclose(found, by_hand, rtol=1e-13)
    np.testing.assert_allclose(Dense(structure, zeta).k(x, other), by_hand, rtol=1e-13)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_parts_of_a_term_multiply_to_the_term(rng: np.random.Generator) -> None:
    """k(x, x') = Σ_t policy part · environment part, whichever way the columns are split."""
    structure = Model(kernel=MAIN_EFFECTS).structure(2, (True, False, True, True))
    hyper = structure.unpack(jnp.asarray(rng.normal(size=structure.size)))
    u, v = jnp.asarray(rng.uniform(size=(3, 4))), jnp.asarray(rng.uniform(size=(6, 4)))
    policy = policy_parts(structure, hyper, u[:, :2], v[:, :2])
    both = environment_parts(structure, hyper, u[:, 2:], v[:, 2:], (2, 3))
    single = [environment_parts(structure, hyper, u[:, [c]], v[:, [c]], (c,)) for c in (2, 3)]
    whole = between_pairs(structure, hyper, u, v)
    np.testing.assert_allclose(jnp.sum(policy * both, axis=0), whole, rtol=1e-13)
    np.testing.assert_allclose(jnp.sum(policy * single[0] * single[1], axis=0), whole, rtol=1e-13)


@pytest.mark.parametrize("kernel", [SE(), Matern52((0, 2)), MAIN_EFFECTS, Product((Constant(), Sum((SE(), Constant()))))])
def test_kernels_survive_json(kernel: Kernel) -> None:
    assert codec.from_json(codec.to_json(kernel)) == kernel
    model = Model(kernel=kernel, warp="none")
    assert codec.from_json(codec.to_json(model)) == model
    assert hash(codec.from_json(codec.to_json(model))) == hash(model)


def test_a_named_kernel_is_written_as_before() -> None:
    """Journals of version 0.1.0 hold the name."""
    assert codec.to_json(Model())["kernel"] == "se"
    assert Model().structure(1, (True,)).kernel == Constant() * SE()


def test_the_shortest_length_scale_of_a_column_is_reported() -> None:
    structure = Model(kernel=Constant() * SE() + SE("policy"), warp="none").structure(1, (True, True))
    zeta = jnp.log(jnp.array([1.0, 0.5, 0.3, 0.2, 1.0]))  # variance, two length scales, that of the policy, noise
    np.testing.assert_allclose(structure.length_scales(zeta), [0.2, 0.3])


@codec.register
@dataclass(frozen=True)
class Radial(Leaf):
    """A kernel of the distance in all its columns, which is no product over them."""

    columns: tuple[int, ...] | str = "environment"

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return (Parameter("radius", 0.0, 1.0),)

    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        return 1 / (1 + jnp.sum((u[:, None] - v[None]) ** 2, axis=-1) / jnp.exp(values[0]) ** 2)


def test_a_kernel_that_is_no_product_serves_one_joint_variable_and_no_two_independent_ones() -> None:
    structure = Model(kernel=Constant() * SE("policy") * Radial()).structure(1, (True, True, True))
    hyper = structure.unpack(jnp.zeros(structure.size))
    nodes, weights = jnp.array([[0.1, 0.2], [0.9, 0.4]]), jnp.array([0.25, 0.75])
    joint = (WeightedNodes((1, 2), nodes, weights),)
    warped = warped_nodes(structure, hyper, joint)
    found = embedding(structure, hyper, joint, warped, warped[0])
    square = np.sum((np.asarray(warped[0])[:, None] - np.asarray(warped[0])[None]) ** 2, axis=-1)
    np.testing.assert_allclose(found[0], (1 / (1 + square)) @ np.asarray(weights), rtol=1e-13)
    apart = tuple(WeightedNodes((1 + c,), nodes[:, [c]], weights) for c in range(2))
    with pytest.raises(ProblemError, match="Radial cannot be split by columns, but its columns belong to"):
        embedding(structure, hyper, apart, warped_nodes(structure, hyper, apart), warped[0])


def test_kernel_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match=r"`columns` must be one of .*, but it is 'polcy'\. Did you mean 'policy'\?"):
        SE("polcy")
    with pytest.raises(ProblemError, match=r"`columns` must be different numbers of at least 0, but they are \(1, 1\)"):
        Matern52((1, 1))
    with pytest.raises(ProblemError, match=r"SE has the columns \(0, 7\), but the problem has the columns 0 to 1"):
        _ = Model(kernel=SE((0, 7))).structure(1, (True, True)).leaves
    with pytest.raises(ProblemError, match="Sum must have one kernel or more as parts"):
        Sum(())
    with pytest.raises(ProblemError, match="Product must have one kernel or more as parts"):
        Product((SE(), "se"))  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="The prior `variance` must be"):
        Constant((0.0, -1.0))
