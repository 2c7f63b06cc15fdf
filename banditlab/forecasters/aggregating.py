"""The aggregating forecaster (Foster, Kale, Luo, Mohri and Sridharan, COLT 2018, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from banditlab.bounds.aggregating import (
    aggregating_fine_quadrature,
    aggregating_quadrature,
    quadrature_error,
    quadrature_nodes,
)
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.distinct_rows import Distinct
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.langevin import ACCEPTANCES, PROPOSALS, Chains, advance, worst_effective_sample_size
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.log_mixture import mix, mix_linear, reweigh, smooth
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of, positive

RESOLVED = 1e-6
"""The quadrature counts as exact if its relative error at the horizon is below this."""


class Net(NamedTuple):
    """The members M (N, K, d) with log weights w (N,), whose initial values are w0 (N,).

    `slope` (N, K, d) contains the gradients of the members' summed losses. `rounds` (1,) is the number of updates, and
    `smoothed` (1,) is the cost of smoothing so far. Z (N, K) is a work array.
    """

    M: NDArray[np.float64]
    w: NDArray[np.float64]
    w0: NDArray[np.float64]
    slope: NDArray[np.float64]
    rounds: NDArray[np.int64]
    smoothed: NDArray[np.float64]
    Z: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"rounds": COUNT}


@njit
def forecast(net, x, mu, z):
    """Write the logarithm of the smoothed mixture at x (d,) into z (K,), and the members' log softmax into `net.Z`."""
    mix_linear(net.M, net.w, x, net.Z, z)
    smooth(z, mu)  # q = (1 - mu) E softmax(W x) + mu/K


@njit
def learn(net, x, y, mu, z):
    r"""Write the forecast into z (K,), then multiply every member's weight by its :math:`\mathrm{softmax}(W x)_y`."""
    mix_linear(net.M, net.w, x, net.Z, z)
    mixed = z[y]
    smooth(z, mu)
    # The cost of smoothing in this round: the loss of q minus that of the mixture.
    net.smoothed[0] += mixed - z[y]
    net.rounds[0] += 1
    N, K = net.Z.shape
    # Each member's gradient (softmax(W x) - e_y) x', for the certificate.
    for i in range(N):
        for k in range(K):
            r = math.exp(net.Z[i, k]) - (1.0 if k == y else 0.0)
            for j in range(x.shape[0]):
                net.slope[i, k, j] += r * x[j]
    reweigh(net.w, net.Z, y)  # P(W) softmax(W x)_y, normalised


@njit
def learn_block(net, X, y, mu, logits):
    """Forecast and update for n rounds, and write the logits (n, K)."""
    net, X = borrow(net), borrow(X)
    for t in range(X.shape[0]):
        learn(net, X[t], y[t], mu, logits[t])


class Aggregating(Forecaster):
    r"""Mix all logistic models with rows of norm at most B, each weighted by its likelihood for the labels so far.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule (Algorithm 1): :math:`P_1` is uniform on :math:`\{W : \|W_k\| \le B\}`. The forecast is :math:`\ln q`
    with :math:`q = (1 - \mu) \mathbb{E}_{P_t}[\mathrm{softmax}(W x_t)] + \mu/K`, and :math:`P_{t+1}(W)` is proportional
    to :math:`P_t(W)\, \mathrm{softmax}(W x_t)_{y_t}`. The loss of
    :math:`\ln \mathbb{E}_{P_t}\, \mathrm{softmax}(W x_t)` equals the mix loss
    :math:`-\ln \mathbb{E}_{P_t}\, \mathrm{softmax}(W x_t)_{y_t}`. `sampler` selects the representation of :math:`P_t`:

    * "quadrature", for :math:`d = 1` and :math:`K = 2`: forecasts depend on :math:`\theta = W_0 - W_1` only. The
      prior of :math:`\theta` is uniform on :math:`[-2 B, 2 B]`, not triangular as for two independent uniform rows.
      Gauss-Legendre nodes integrate over it.
    * "net": N matrices are drawn once from :math:`P_1`. Their posterior weights are exact.
    * "mala": persistent Langevin chains on the exact posterior, restricted to the ball by rejection. The forecast is
      approximate; `diagnostics()` returns acceptance rate and effective sample size.

    Guarantee: with exact integrals the regret is at most :math:`Kd (1 + \ln(4 B R T/(Kd))) - T \ln(1 - \mu)` (Theorem 3
    with other constants). For the quadrature this is :math:`1 + \ln(4 B R T)`, and `bound` returns it if the nodes
    provably integrate every posterior up to the horizon to 1e-6. Otherwise `bound` is :math:`-\ln(h - 2 w) + 4 B R T h`
    at the best h, with w the largest weight of a node; this bound is weak. The running certificate is the loss minus a
    lower bound on the least loss in the ball, which follows from the losses and slopes at the nodes by convexity. The
    net's regret is at most :math:`\ln N` against its best member (`regret_to_net`). A regret against the net's members
    says nothing about the ball, so the net has no bound and no certificate. "mala" has neither.

    Cost of "quadrature" and "net": :math:`O(N K d)` per round, and :math:`2 N K d` numbers. Cost of "mala", with m
    distinct contexts so far: :math:`O(\text{chains}\,\text{steps}\, m K d)` per update,
    :math:`O(\text{chains}\,\text{steps}\, K d)` per forecast, and memory that grows with m.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W.
    sampler
        "net", "quadrature" or "mala".
    smoothing
        :math:`\mu` in [0, 1/2]; "theory" is :math:`1/T`, which needs the horizon. It costs at most :math:`2 \mu` nats
        per round.
    nodes
        Number of nodes of the quadrature. With "theory", which needs the horizon, the error is provably at most 1e-6;
        the number is at least 801 and of order :math:`B R \sqrt{T}`. (In practice, 801 nodes are exact if
        :math:`B R \sqrt{T}` is below 200.)
    members
        N, the number of matrices of the net.
    chains, steps
        Number of Langevin chains, and number of steps of each chain per round. Forecasts average over all positions.

    Raises
    ------
    IncompatibleError
        "quadrature" unless :math:`d = 1` and :math:`K = 2`, or "mala" with :math:`K d > 60`.
    HorizonRequiredError
        `smoothing` or `nodes` is "theory", and the horizon is unknown.
    UsageError
        A setting is outside its range, or "net" or "mala" has no generator.

    References
    ----------
    D. Foster, S. Kale, H. Luo, M. Mohri, K. Sridharan. Logistic regression: the importance of being improper. COLT 2018.
    G. Roberts, R. Tweedie. Exponential convergence of Langevin distributions and their discrete approximations. 1996.
    """

    id = "aggregating"
    group = "theory"
    summary = "mixes all models of a ball by their likelihood, with quadrature, a random net, or Langevin chains"
    reference = "Foster, Kale, Luo, Mohri and Sridharan, COLT 2018, Algorithm 1"
    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        sampler: Literal["net", "quadrature", "mala"] = "net",
        smoothing: float | Literal["theory"] = 0.0,
        nodes: int | Literal["theory"] = 801,
        members: int = 1000,
        chains: int = 32,
        steps: int = 10,
    ) -> None:
        super().__init__(problem, rng)
        self.norm_bound = positive("norm_bound", norm_bound)
        self.sampler = one_of("sampler", sampler, ("net", "quadrature", "mala"))
        self.smoothing = self._smoothing(smoothing)
        self.nodes = self._nodes(nodes)
        self.members = at_least("members", members, 1)
        self.chains, self.steps = at_least("chains", chains, 1), at_least("steps", steps, 1)
        self._refuse()
        self.plays_blocks = sampler != "mala"  # its chains draw in every round
        self._stream = rng.spawn(1)[0] if rng is not None and sampler != "quadrature" else None
        self._past = Distinct(problem.n_features, problem.n_classes)
        self._round = 0
        self.state: Any = self._initial_chains() if sampler == "mala" else self._initial_net()

    def _smoothing(self, smoothing: float | str) -> float:
        if smoothing == "theory":
            return min(0.5, 1.0 / self.problem.known_horizon("smoothing = 'theory'", "give smoothing as a number"))
        value = number("smoothing", smoothing, "theory")
        if not 0.0 <= value <= 0.5:
            raise UsageError(f"smoothing must lie in [0, 1/2], got {value:g}")
        return value

    def _nodes(self, nodes: int | str) -> int:
        if nodes != "theory":
            return at_least("nodes", int(number("nodes", nodes, "theory")), 1)
        T = self.problem.known_horizon("nodes = 'theory'", "give nodes as a number")
        return max(801, quadrature_nodes(T, self.norm_bound, self.problem.radius, RESOLVED))

    def _refuse(self) -> None:
        K, d = self.problem.n_classes, self.problem.n_features
        if self.sampler == "quadrature" and (d, K) != (1, 2):
            raise IncompatibleError(f"sampler = 'quadrature' needs d = 1 and K = 2, got d = {d}, K = {K}")
        if self.sampler == "mala" and K * d > 60:
            raise IncompatibleError(
                f"sampler = 'mala' needs K d of at most 60, got {K * d}; use 'net' or another forecaster"
            )
        if self.sampler != "quadrature" and self.rng is None:
            raise UsageError(f"sampler = {self.sampler!r} needs a numpy Generator as rng, got None")

    def _prior(self, n: int) -> Floats:
        """Return n matrices (n, K, d) drawn uniformly from those with rows of norm at most B."""
        assert self._stream is not None
        shape = (n, self.problem.n_classes, self.problem.n_features)
        W = self._stream.standard_normal(shape)
        # A direction of the sphere, and a radius B u^{1/d}.
        W /= np.linalg.norm(W, axis=2, keepdims=True)
        return W * (self.norm_bound * self._stream.random((*shape[:2], 1)) ** (1.0 / shape[2]))

    def _initial_net(self) -> Net:
        if self.sampler == "quadrature":
            # Nodes of [-1, 1], whose weights sum to 2.
            points, weights = roots_legendre(self.nodes)
            M = np.zeros((self.nodes, 2, 1))
            M[:, 0, 0], M[:, 1, 0] = self.norm_bound * points, -self.norm_bound * points  # theta = 2 B point
            w0 = np.log(0.5 * weights)
        else:
            M = self._prior(self.members)
            w0 = np.full(self.members, -math.log(self.members))
        return Net(M, w0.copy(), w0, np.zeros_like(M), np.zeros(1, np.int64), np.zeros(1), np.zeros(M.shape[:2]))

    def _initial_chains(self) -> Chains:
        K, d, B, R = self.problem.n_classes, self.problem.n_features, self.norm_bound, self.problem.radius
        W = self._prior(self.chains)
        samples = np.stack([W] + [self._prior(self.chains) for _ in range(self.steps - 1)])
        step = np.array([min(0.1 * B**2 / d, 1.0 / R**2)])
        U, G, V = np.zeros(self.chains), np.zeros_like(W), np.zeros((K, d))
        return Chains(W, U, G, samples, step, np.zeros(2, np.int64), V, V.copy(), np.zeros(K))

    # ---------------------------------------------------------------------------------------------------- predict, update

    def predict(self, context: Floats) -> Floats:
        """Return the logarithms of the smoothed mixture's probabilities (K,) at `context` (d,)."""
        x, z = as_context(context, self.problem), np.empty(self.problem.n_classes)
        if self.sampler != "mala":
            forecast(self.state, x, self.smoothing, z)
            return z
        # The logarithm of the mean of softmax(W x) over all positions in the last round.
        Z = self.state.samples @ x
        Z = Z.reshape(-1, len(z))
        top = Z.max(axis=1, keepdims=True)
        Z = Z - top - np.log(np.exp(Z - top).sum(axis=1, keepdims=True))
        mix(np.full(len(Z), -math.log(len(Z))), Z, z)
        smooth(z, self.smoothing)
        return z

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        x = as_context(context, self.problem)
        y = as_class("the label", label, self.problem.n_classes)
        if self.sampler != "mala":
            learn(self.state, x, y, self.smoothing, np.empty(self.problem.n_classes))
            return
        # Include this round in the posterior, then make S steps of every chain.
        self._round += 1
        self._past.count(x, y)
        assert self._stream is not None
        noise = self._stream.standard_normal(self.state.samples.shape)
        u = self._stream.random(noise.shape[:2])
        advance(self.state, self._past.X, self._past.C, self.norm_bound, noise, 1.0 - u, float(self._round), 0.0)

    def _forecast_block(self, X: Floats, y: NDArray[np.int64], logits: Floats) -> None:
        if self.sampler == "mala":
            raise UsageError(
                "sampler = 'mala' does not forecast blocks, because its chains draw in every round; use predict and update"
            )
        learn_block(self.state, X, y, self.smoothing, logits)

    # ------------------------------------------------------------------------------------------- bounds and diagnostics

    def regret_to_net(self) -> float:
        """Return the loss so far minus that of the best net member or node; NaN for "mala".

        Without smoothing, the regret to a member is at most the negative logarithm of its prior weight, ln N for the
        net.
        """
        if self.sampler == "mala":
            return math.nan
        return float(np.max(self.state.w - self.state.w0) + self.state.smoothed[0])

    def diagnostics(self) -> dict[str, float]:
        """Return the acceptance rate over all rounds, the step size, and the effective sample size in the last round.

        The effective sample size is the least over the coordinates of W minus its mean row, on which forecasts depend.
        The result is empty for "quadrature" and "net".
        """
        if self.sampler != "mala":
            return {}
        chains: Chains = self.state
        size = worst_effective_sample_size(chains.samples)
        rate = chains.tally[ACCEPTANCES] / max(1, chains.tally[PROPOSALS])
        return {"acceptance": float(rate), "step": float(chains.step[0]), "effective_sample_size": size}

    def bound(self, rounds: float) -> float | None:
        """Return the quadrature's regret bound after `rounds` rounds, in nats; None for "net" and "mala"."""
        if self.sampler != "quadrature":
            return None
        B, R, T = self.norm_bound, self.problem.radius, self.problem.horizon
        if T is not None and rounds <= T and quadrature_error(T, B, R, self.nodes) <= RESOLVED:
            return aggregating_fine_quadrature(rounds, B, R, self.nodes, self.smoothing)
        return aggregating_quadrature(rounds, B, R, math.exp(float(self.state.w0.max())), self.smoothing)

    def certificate(self) -> float:
        """Return a bound on the regret so far, in nats, against rows of norm at most B; NaN for "net" and "mala"."""
        if self.sampler != "quadrature":
            return math.nan
        net: Net = self.state
        theta = net.M[:, 0, 0] - net.M[:, 1, 0]
        # The least loss over theta in [-2 B, 2 B] is at a node, outside the nodes, or between two nodes.
        regret = net.w - net.w0  # the mixture's loss minus each node's
        slope = net.slope[:, 0, 0]
        ends = 2.0 * self.norm_bound * np.array([-1.0, 1.0])
        beyond = regret[[0, -1]] - slope[[0, -1]] * (ends - theta[[0, -1]])
        gap, rise = np.diff(theta), np.diff(slope)
        # Between two nodes a convex function lies above both tangents, whose maximum is least where they cross, or at a
        # node.
        cross = np.divide(np.diff(regret) + slope[1:] * gap, rise, out=np.zeros_like(gap), where=rise > 0.0)
        inner = regret[:-1] - slope[:-1] * np.clip(cross, 0.0, gap)
        possible = float(max(regret.max(), beyond.max(), inner.max(initial=-math.inf)) + net.smoothed[0])
        bound = self.bound(int(net.rounds[0]))
        return possible if bound is None else min(possible, bound)  # both are valid

    # ------------------------------------------------------------------------------------------------------------- state

    def limits(self) -> Limits:
        """Return the allowed ranges of the counts."""
        return {"_round": COUNT}

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: members, nodes or positions of the chains, each (K, d)."""
        given = cls.completed(settings)
        if given["sampler"] == "mala":
            count = given["steps"] * given["chains"]
        else:
            count = given["members"] if given["sampler"] == "net" else 1
            count = count if given["nodes"] == "theory" or given["sampler"] == "net" else given["nodes"]
        return 16.0 * count * problem.n_classes * problem.n_features

    def get_state(self) -> dict[str, Any]:
        """Return the state; for "mala" it includes the distinct contexts and their counts."""
        return {
            "rng": self.rng,
            "stream": self._stream,
            "round": self._round,
            "state": self.state,
            "past": self._past.arrays(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `get_state` of a player with the same settings returned."""
        mine = {"rng": "rng", "stream": "_stream", "round": "_round", "state": "state"}
        super().set_state({attribute: state[name] for name, attribute in mine.items()})
        self._past = Distinct(self.problem.n_features, self.problem.n_classes)
        self._past.restore(state["past"])
