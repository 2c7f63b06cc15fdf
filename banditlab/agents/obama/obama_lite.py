"""OBAMA-lite: OBAMA (Foster, Kale, Luo, Mohri and Sridharan, COLT 2018) with an affordable sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.obama import laplace, mala, net
from banditlab.agents.obama.tempered import CUT, HITS, hit_weight
from banditlab.bounds.obama import obama_gamma
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.decoding import DECODINGS, Decoding
from banditlab.numerics.distinct_rows import Distinct
from banditlab.numerics.gaussian_posterior import UNSOLVED
from banditlab.numerics.langevin import ACCEPTANCES, PROPOSALS, worst_effective_sample_size
from banditlab.players.agent import Floats, KernelAgent, RoundAgent, Trace
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of, positive, probability

SAMPLERS = ("laplace", "net", "grid", "mala")


class ObamaLite(KernelAgent):
    r"""Exponential weights on importance-weighted logistic losses, with an approximate posterior.

    Problem: bandit multiclass, adversarial stream, comparators :math:`\{\|W_k\|_2 \le B\,\text{ for all }k\}`.

    Update rule (OBAMA, :math:`\mu = \gamma`): the agent draws :math:`\hat y` from
    :math:`q_t = (1 - \mu) \mathbb{E}_{W \sim P_t}[\mathrm{softmax}(W x_t)] + \mu/K`. A coin flip of probability
    :math:`\mu` selects a uniform draw instead of a draw from the average. On a hit (a right action)
    :math:`L_t(W) = \mathrm{loss}(W x_t, y_t)/q_t(y_t)`, else :math:`L_t = 0`; :math:`P_{t+1}(W)` is proportional to
    :math:`P_t(W) \exp(-\eta L_t(W))`. With :math:`\eta = \mu/K` every factor is a tempered likelihood
    :math:`\mathrm{softmax}(W x)_y^{w_t}` with :math:`w_t = \eta/q_t(y_t)` in (0, 1]. The prior is
    :math:`N(0, (B^2/d) I)`, for which :math:`E\|W_k\|^2 = B^2`. Unlike in the paper, a decoding h is applied to the
    average before it is mixed with :math:`\mu/K`:
    :math:`q_t = (1 - \mu)\, h(\mathbb{E}[\mathrm{softmax}(W x_t)]) + \mu/K`. With `decoding = "sample"` the rule is the
    paper's.

    `sampler` selects the representation of :math:`P_t`, and `diagnostics()` returns its name:

    * "laplace": a Gaussian :math:`N(M, C)`. Each factor moves the mean by an implicit (proximal) step and the
      covariance by a Laplace step (an extended Kalman filter; exact algebra in `numerics.gaussian_posterior`). The
      average is over `samples` logit vectors :math:`M x + R n`, :math:`R R' = J C J'`. The antithetic standard normal
      nodes n are drawn once. If the classes are renumbered, the distribution of the results is the same up to this
      renumbering. The results of one run are the same only up to the Monte Carlo error.
    * "net": N = `members` matrices are drawn once from the prior, and their weights are exact. This is the aggregating
      algorithm over these N matrices.
    * "grid", for :math:`(K-1) d` at most 2: the trapezoidal rule with at most `members` nodes, in the coordinates on
      which the softmax depends (for :math:`K = 2`, :math:`d = 1` the difference of the rows), over 12 prior standard
      deviations in each direction. Its only error is that of the grid. In `diagnostics`, "resolution", the posterior's
      standard deviation divided by the spacing, should be 1 or more, and "edge", the weight on the outermost nodes,
      should be about 0. (If :math:`B R` is far below 1, many hits move the posterior beyond the grid.)
    * "mala", for :math:`K d` at most 60: `chains` persistent Langevin chains on the exact posterior, with `steps` steps
      after every hit. The average is over all chains x steps positions and is asymptotically exact. Rounds are played
      one at a time, and time and memory grow with the hits: use it for validation only.

    Every sampler has a random generator of its own, so the uniform numbers that select the actions are the same for all
    samplers.

    At :math:`\mu = 0` the learning rate is the paper's choice for small norms, :math:`\eta = e^{-2BR}/K`. Matrices of
    the ball give every class at least the probability :math:`e^{-2BR}/K`. A Gaussian extends beyond the ball; if
    :math:`q_t(y_t) < \eta`, the weight is cut to 1; `diagnostics` counts such hits. Half-log and sparsemax give a class
    with a forecast below 1/4 only the probability :math:`\mu/K`, so they need :math:`\mu` above 0.

    Guarantee: none if the posterior is approximated, and `bound` returns None. The net has a guarantee against the best
    of its members, `banditlab.bounds.obama.obama_net`: :math:`(K/\mu) \ln N + \mu (1-1/K) T`. It does not extend to the
    ball. For the exact posterior there is a guarantee in expectation on a stream fixed in advance. Let
    :math:`s^2 = B^2/d`, and let f be the decoding's largest expected number of mistakes per nat of log loss (1 for
    "sample", 0.7213 for half-log; see docs/theory/half-log.md). The expected number of mistakes is at most

    .. math::

        f \sum \mathrm{loss}(U) + f (K/\mu) [\|U\|^2/(2 s^2) + (Kd/2) \ln(1 + s^2 R^2 (1 - 1/K) \mu T/(K^2 d))] + \mu (1
        - 1/K) T.

    `banditlab.bounds.obama` computes this bound as `decoded_obama`, and as `obama_gaussian_prior` for :math:`f = 1`.
    Its constants are derived there; the paper's Theorem 6 assumes a uniform prior and gives only :math:`O(.)`.

    Cost of "laplace": :math:`K(K-1)/2` quadratic forms of size d per round, :math:`O(K^2 d^2)`, and
    :math:`O(\text{samples}\, K^2)`. A hit costs :math:`O(K^3 d^2)`; matrix products process several hits together.
    Memory: :math:`K^2 d^2/2` numbers. Cost of "net" and "grid": :math:`O(N K d)` per round; memory :math:`N K d`
    numbers. Cost of "mala": :math:`O(\text{chains}\,\text{steps}\, K d)` per round, and for a hit that number times the
    number of distinct contexts with hits.

    Parameters
    ----------
    norm_bound
        B, the row bound of the comparators.
    gamma
        Exploration rate in [0, 1] (the smoothing :math:`\mu` in the paper). "theory" makes the two terms of the
        guarantee equal and needs the horizon.
    decoding
        Decoding rule: "half-log", "sample" as in the paper, "sparsemax", "randomized", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).
    samples
        Number of logit samples in the average, an even number.
    sampler
        Representation of the posterior: "laplace", "net", "grid" or "mala".
    members
        N, the number of matrices of the net, or the largest number of nodes of the grid.
    chains, steps
        Number of Langevin chains, and of their steps after each hit.

    Raises
    ------
    UsageError
        A setting is outside its range; `gamma = 0` with :math:`e^{-2 B R}` equal to 0 in floating point; or `gamma = 0`
        with half-log or sparsemax, which give some classes probability 0.
    IncompatibleError
        The sampler is "grid" with :math:`(K-1) d` above 2, or "mala" with :math:`K d` above 60.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.

    References
    ----------
    D. J. Foster, S. Kale, H. Luo, M. Mohri, K. Sridharan. Logistic regression: the importance of being improper. COLT
    2018.
    """

    id = "obama-lite"
    group = "theory"
    summary = "importance-weighted exponential weights: Laplace posterior, or a net, a grid, Langevin chains"
    reference = "Foster, Kale, Luo, Mohri and Sridharan, COLT 2018; the samplers: ours"
    state_order = (2, 2)
    act_kernel = laplace.act_kernel
    learn_kernel = laplace.learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        decoding: Decoding = "half-log",
        samples: int = 100,
        sampler: Literal["laplace", "net", "grid", "mala"] = "laplace",
        members: int = 4000,
        chains: int = 12,
        steps: int = 20,
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = B = positive("norm_bound", number("norm_bound", norm_bound))
        self.decoding = one_of("decoding", decoding, DECODINGS)
        if gamma == "theory":
            T = problem.known_horizon("gamma = 'theory'", "give gamma as a number")
            self.gamma = obama_gamma(T, d, K, B, R, self.decoding)
        else:
            self.gamma = probability("gamma", number("gamma", gamma, "theory"))
        self.samples = at_least("samples", samples, 2)
        if samples % 2:
            raise UsageError(f"samples must be an even integer (mirrored pairs), got {samples}")
        self.sampler = one_of("sampler", sampler, SAMPLERS)
        self.members = at_least("members", members, 10)
        self.chains, self.steps = at_least("chains", chains, 1), at_least("steps", steps, 1)
        self._refuse()
        self.plays_blocks = self.sampler != "mala"
        self.state: Any = self._initial_state()

    def _refuse(self) -> None:
        K, d = self.problem.n_classes, self.problem.n_features
        if self.gamma == 0.0 and self.decoding in ("half-log", "sparsemax"):
            raise UsageError(
                f"with gamma = 0, {self.decoding} gives some classes probability 0: give gamma above 0, or "
                "decoding = 'sample'"
            )
        if self.sampler == "grid" and (K - 1) * d > 2:
            raise IncompatibleError(f"sampler = 'grid' needs (K - 1) d of at most 2, got K = {K}, d = {d}")
        if self.sampler == "mala" and K * d > 60:
            raise IncompatibleError(f"sampler = 'mala' needs K d of at most 60, got {K * d}; use 'laplace'")

    @property
    def deviation(self) -> float:
        r"""The prior's standard deviation :math:`B/\sqrt{d}`."""
        return self.norm_bound / math.sqrt(self.problem.n_features)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the bytes of the state, those of the covariance ("laplace") or of the matrices W."""
        given = cls.completed(settings)
        if given["sampler"] == "laplace":
            return super().least_bytes(problem, settings) + 4.0 * given["samples"] * problem.n_classes
        count = given["steps"] * given["chains"] if given["sampler"] == "mala" else given["members"]
        return 8.0 * count * problem.n_classes * problem.n_features

    def _initial_state(self) -> Any:
        K, d, R, B = self.problem.n_classes, self.problem.n_features, self.problem.radius, self.norm_bound
        eta = self.gamma / K if self.gamma > 0.0 else math.exp(-2.0 * B * R) / K
        rates, rule = (self.gamma, eta), DECODINGS.index(self.decoding)  # mu is gamma
        if eta == 0.0:
            raise UsageError(
                f"gamma = 0 makes the learning rate e^(-2 B R)/K, which is 0 at B R = {B * R:g}: give gamma above 0"
            )
        stream = self.rng.spawn(1)[0]
        if self.sampler == "net":
            return net.initial_state(*net.net(self.members, K, d, self.deviation, stream), *rates, rule)
        if self.sampler == "grid":
            return net.initial_state(*net.grid(self.members, K, d, self.deviation), *rates, rule)
        if self.sampler == "mala":
            self._stream, self._past = stream, Distinct(d, K)
            return mala.initial_state((self.steps, self.chains, K, d), self.deviation, R, stream, *rates, rule)
        nodes = stream.standard_normal((self.samples // 2, K))
        return laplace.initial_state(K, d, self.deviation, nodes, *rates, rule)

    # ------------------------------------------------------------------------------------------------------------- rounds

    def kernels(self) -> tuple[Any, Any]:
        """Return (act_kernel, learn_kernel) of the sampler; for "mala", `learn_kernel` is a Python method, because it
        uses the agent's generator and its stored contexts.
        """
        if self.sampler == "mala":
            return mala.act_kernel, self._run_chains
        module: Any = laplace if self.sampler == "laplace" else net
        return module.act_kernel, module.learn_kernel

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels."""
        return f"{super().kernel_owner()}.{'net' if self.sampler == 'grid' else self.sampler}"

    def _run_chains(self, state: mala.State, x: Floats, action: int, p: Floats, payload: Floats, correct: bool) -> None:
        if not correct:  # L_t = 0
            return
        self._past.count(x, action, hit_weight(state.eta, state.hits, p[action]))
        mala.run_chains(state, self._past.X, self._past.C, self._stream)

    def _play(self, X: Any, y: NDArray[np.int64], U: Floats, trace: Trace) -> None:
        play = KernelAgent._play if self.plays_blocks else RoundAgent._play  # the chains draw, round by round
        play(self, X, y, U, trace)

    # ----------------------------------------------------------------------------------------- bounds and diagnostics

    def diagnostics(self) -> dict[str, Any]:
        """Return the sampler's name, the numbers of hits and of weights cut to 1, and the sampler's own diagnostics.

        "ess" is the number of logit samples ("laplace"), 1 over the sum of the squared weights
        ("net", "grid"), or the effective sample size of the worst coordinate since the last hit ("mala"). "unsolved" is
        the number of implicit steps whose root was not found. "resolution" and "edge" are described in the class.
        "acceptance" is the fraction of accepted proposals over all rounds, and "step" is the current step in units of
        the prior's variance.
        """
        state = self.state
        found: dict[str, Any] = {"sampler": self.sampler, "hits": int(state.hits[HITS]), "cut": int(state.hits[CUT])}
        if self.sampler == "laplace":
            return found | {"ess": float(self.samples), "unsolved": int(state.posterior.tally[UNSOLVED])}
        if self.sampler == "mala":
            proposals, accepted = state.chains.tally[PROPOSALS], state.chains.tally[ACCEPTANCES]
            return found | {
                "ess": worst_effective_sample_size(state.chains.samples),
                "acceptance": float(accepted / proposals) if proposals else math.nan,
                "step": float(state.chains.step[0]),
            }
        found["ess"] = net.effective_members(state)
        if self.sampler == "grid":
            found |= {"resolution": net.resolution(state, self.deviation), "edge": net.edge(state, self.deviation)}
        return found

    def get_state(self) -> dict[str, Any]:
        """Return the state; for "mala" it includes the contexts of the hits and their weights."""
        state = super().get_state()
        return state | {"_past": self._past.arrays()} if self.sampler == "mala" else state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        super().set_state({name: value for name, value in state.items() if name != "_past"})
        if self.sampler == "mala":
            self._past.restore(state["_past"])
