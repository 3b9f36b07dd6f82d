"""Samples of the hyperparameters from their posterior, by slice sampling.

zeta     (S, P)   one row a chain; chains persist from step to step of a study
q        multivariate Student t: location mu (P,), scale C Cᵀ with C (P, P) lower triangular, NU
         degrees of freedom

Elliptical slice sampling (Murray, Adams & MacKay 2010): a move draws an ellipse through the chain's
position from a base density, and shrinks the bracket of angles until posterior/base exceeds a
level. It leaves the posterior invariant whatever the base is. Chains alternate between two kinds of
moves:

- All hyperparameters at once, from q. (A Student t is a Gaussian with a random scale; Nishihara,
  Murray & Adams 2014.) If q is closer to the posterior, a move needs fewer evaluations and goes
  further. So q starts as the Laplace approximation at a mode, and is then learnt from the chains'
  own past. Its tails let a chain in a poor mode leave for a better one.
- The noise level and a random few of the others, from their prior. With few observations, the
  posterior of the noise level has a peak and a long flat part at lower values. No unimodal q covers
  both, but the prior does. These moves also find modes that no climb led to.

A move that runs out of turns stays where it began. That too leaves the posterior invariant. The way
between two points through the same rejected angles is equally likely in both directions, however
many rejections are allowed.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.scipy.linalg import solve_triangular

from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Observations, log_posterior, log_prior
from aloq.numerics.compiled import compiled

NU = 6
# Turns allowed per move. 30 shrinks leave a bracket of about 1e-9 of the ellipse. Moves from the
# prior end sooner, because they gain little where the posterior is much sharper than the prior.
PATIENCE = 30
PRIOR_PATIENCE = 8
# Share of the other hyperparameters that move with the noise level.
COMPANY = 0.3


class Student(NamedTuple):
    """The approximation q of the posterior."""

    location: Array  # (P,)
    scale: Array  # (P, P) lower triangular

    def draw(self, key: Array, count: int) -> Array:
        """Draws from the Gaussian of the same location and scale: (count, P)."""
        return self.location + random.normal(key, (count, len(self.location))) @ self.scale.T

    def distance(self, zeta: Array) -> Array:
        """|C⁻¹ (zeta - mu)|² for rows of zeta: (S,)."""
        return jnp.sum(solve_triangular(self.scale, (zeta - self.location).T, lower=True) ** 2, axis=0)

    def log_density(self, zeta: Array) -> Array:
        """log q at rows of zeta, up to a constant: (S,)."""
        return -0.5 * (NU + zeta.shape[1]) * jnp.log1p(self.distance(zeta) / NU)


def _by_q(move: Array) -> Array:
    """Return whether a chain's move, counted from 0, draws its ellipse from q or from the prior."""
    return move % 2 == 0


class _Base(NamedTuple):
    """The densities that ellipses are drawn from."""

    structure: Structure
    q: Student

    def log_density(self, zeta: Array, move: Array) -> Array:
        """Log base density at rows of zeta, in the given moves of their chains: (S,).

        It is known up to a constant.
        """
        prior = jax.vmap(partial(log_prior, self.structure))(zeta)
        return jnp.where(_by_q(move), self.q.log_density(zeta), prior)

    def ellipse(self, zeta: Array, move: Array, normal: Array, uniform: Array) -> tuple[Array, Array]:
        """Centre and second axis of an ellipse through rows of zeta: (S, P), (S, P)."""
        size = zeta.shape[1]
        # An inverse gamma variable of shape (NU + P)/2 from the squares of NU + P normal ones.
        spread = (NU + self.q.distance(zeta)) / jnp.sum(normal[:, size:] ** 2, axis=1)
        by_q = jnp.sqrt(spread)[:, None] * (normal[:, :size] @ self.q.scale.T)
        mean, sd = (jnp.asarray(part) for part in self.structure.prior())
        moves = (uniform < COMPANY) | self.structure.named("noise")
        centre, axis = jnp.where(moves, mean, zeta), jnp.where(moves, sd * normal[:, :size], 0.0)
        chosen = _by_q(move)[:, None]
        return jnp.where(chosen, self.q.location, centre), jnp.where(chosen, by_q, axis)


class Visited(NamedTuple):
    """Sums over the positions at which moves ended."""

    moves: Array  # ()
    first: Array  # (P,)
    second: Array  # (P, P)


class _Move(NamedTuple):
    """A move of every chain: where it started, the slice, and the bracket of angles left."""

    zeta: Array  # (S, P) position
    height: Array  # (S,) log posterior there
    level: Array  # (S,) slice level
    centre: Array  # (S, P) of the ellipse; a hyperparameter that stays has its own position here, and the axis 0
    axis: Array  # (S, P) second axis of the ellipse
    angle: Array  # (S,) tried next
    low: Array  # (S,)
    high: Array  # (S,)

    def proposal(self) -> Array:
        """The point of the ellipse at the angle: (S, P)."""
        return self.centre + (self.zeta - self.centre) * jnp.cos(self.angle)[:, None] + self.axis * jnp.sin(self.angle)[:, None]

    def shrunk(self, uniform: Array) -> _Move:
        """Return the move with the bracket cut at the rejected angle, and a new angle inside it."""
        low, high = jnp.where(self.angle < 0, self.angle, self.low), jnp.where(self.angle < 0, self.high, self.angle)
        return self._replace(angle=low + (high - low) * uniform, low=low, high=high)


class _Chains(NamedTuple):
    """All chains in the middle of their moves."""

    move: _Move
    tries: Array  # (S,) turns spent on this move
    moves: Array  # (S,) moves completed; -1 while the density at the first position is unknown
    turn: Array  # ()
    visited: Visited


@compiled(static=("structure",))
def advance(
    structure: Structure, zeta: Array, q: Student, refuge: Array, data: Observations, key: Array, moves: Array
) -> tuple[Array, Array, Visited, Array]:
    """Let every chain make `moves` moves.

    Returns the chains, (S, P), the log posterior there, (S,), sums over the positions that they
    visited, and the number of turns. A turn evaluates each chain's current proposal, whichever move
    it belongs to. A chain at zero density, as after new data, restarts at `refuge`, (P,).
    """

    def posterior(z: Array) -> Array:
        return jax.vmap(lambda one: log_posterior(structure, one, data))(z)

    base = _Base(structure, q)
    count, size = zeta.shape

    def turn(s: _Chains) -> _Chains:
        proposal = s.move.proposal()
        value = posterior(proposal)
        active = s.moves < moves
        accept = active & (value - base.log_density(proposal, s.moves) > s.move.level)
        patience = jnp.where(_by_q(s.moves), PATIENCE, PRIOR_PATIENCE)
        ends = accept | (active & (s.tries + 1 >= patience))
        here = _where((s.moves < 0) & ~accept, refuge, _where(accept, proposal, s.move.zeta))
        there = jnp.where(accept, value, s.move.height)
        normal, uniform = _noise(random.fold_in(key, s.turn), count, size)
        fresh = _begin_move(base, here, there, s.moves + ends, normal, uniform)
        same = s.move._replace(zeta=here, height=there).shrunk(uniform[:, 2])
        visited = _visit(s.visited, here, ends & (s.moves >= 0))
        return _Chains(
            move=_Move(*(_where(ends, new, old) for new, old in zip(fresh, same, strict=True))),
            tries=jnp.where(ends, 0, s.tries + 1),
            moves=s.moves + ends,
            turn=s.turn + 1,
            visited=visited,
        )

    last = lax.while_loop(lambda s: jnp.any(s.moves < moves) & (s.turn < (moves + 1) * PATIENCE), turn, _arrival(zeta))
    return last.move.zeta, last.move.height, last.visited, last.turn


def _arrival(zeta: Array) -> _Chains:
    """Return chains whose first proposal is their own position.

    One piece of code then evaluates all densities.
    """
    count, size = zeta.shape
    zero = jnp.zeros(count, zeta.dtype)
    visited = Visited(jnp.zeros((), zeta.dtype), jnp.zeros(size, zeta.dtype), jnp.zeros((size, size), zeta.dtype))
    tries, unknown = jnp.zeros(count, jnp.int32), jnp.full(count, -1, jnp.int32)
    move = _Move(zeta, zero - jnp.inf, zero - jnp.inf, zeta, jnp.zeros_like(zeta), zero, zero, zero)
    return _Chains(move, tries, unknown, jnp.asarray(1), visited)


def _where(condition: Array, new: Array, old: Array) -> Array:
    return jnp.where(condition if old.ndim == 1 else condition[:, None], new, old)


def _visit(visited: Visited, zeta: Array, ends: Array) -> Visited:
    ended = zeta * ends[:, None]
    return Visited(visited.moves + jnp.sum(ends), visited.first + jnp.sum(ended, axis=0), visited.second + ended.T @ zeta)


def _noise(key: Array, count: int, size: int) -> tuple[Array, Array]:
    """All random numbers of one turn: normal (S, 2P + NU) and uniform (S, 3 + P)."""
    k_normal, k_uniform = random.split(key)
    return random.normal(k_normal, (count, 2 * size + NU)), random.uniform(k_uniform, (count, 3 + size), minval=1e-300)


def _begin_move(base: _Base, zeta: Array, height: Array, move: Array, normal: Array, uniform: Array) -> _Move:
    """Return a new ellipse, level and bracket for every chain."""
    centre, axis = base.ellipse(zeta, move, normal, uniform[:, 3:])
    level = height - base.log_density(zeta, move) + jnp.log(uniform[:, 0])
    # The first angle is uniform on the circle, and the bracket is cut there.
    high = 2 * jnp.pi * uniform[:, 1]
    return _Move(zeta, height, level, centre, axis, high, high - 2 * jnp.pi, high)
