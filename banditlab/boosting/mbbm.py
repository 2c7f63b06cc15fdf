"""OnlineMBBM: boost-by-majority with several classes (Jung, Goetz and Tewari, NIPS 2017)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from banditlab.boosting.booster import Booster
from banditlab.boosting.edges import Edges
from banditlab.boosting.potentials import DrawnPotentials, ExactPotentials, Potentials, SampledPotentials
from banditlab.boosting.remembered import RememberedPotentials
from banditlab.bounds.boosting_mbbm import mbbm_weight
from banditlab.players.agent import Floats
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of, positive, probability

SHARE, LEAST_WEIGHT = 0.1, 1e-10
"""In the paper's code: the factor on the weights that other boosters draw, and the smallest weight of an example."""


class OnlineMBBM(Booster):
    r"""Online boost-by-majority for the multiclass 0-1 loss, with potentials as costs.

    Problem: online multiclass classification, adversarial stream; the label is revealed after each round. The agent
    serves as a reference and is never ranked with agents that observe one bit.

    Update rule (Algorithm 1): let :math:`\phi_m^r(s)` be the probability that the label r is not the only leader after
    m more votes are added to the vote counts s. Each vote is r with probability :math:`(1 - \gamma)/k + \gamma`, and
    any other class with probability :math:`(1 - \gamma)/k`. Before learner i votes on :math:`s = s^{i-1}`, its costs
    are :math:`C(r, l) = \phi_{N-i}^r(s + e_l) - \phi_{N-i}^r(s + e_r)` (Equation (4) minus the diagonal). It receives
    :math:`D(r, l) = C(r, l) / \sum_l C(r, l)` (Equation (5); a row of zeros remains zero). The action is the class with
    most votes; ties are broken uniformly. Learner i is then updated with the label y and the weight
    :math:`w^i / w^{i^*}` in [0, 1], where :math:`w^i = \sum_l C(y, l)` and :math:`w^{i^*}` is a bound on it.

    Guarantee (Theorem 2): assume that each learner satisfies the online weak learning condition with edge
    :math:`\gamma` and excess loss S, with probability :math:`1 - \delta` each. Then
    :math:`M \le \phi_N(0) T + S \sum_i w^{i^*}` with probability :math:`1 - N \delta`, where ties count as mistakes. By
    Lemma 9, :math:`\phi_N(0) \le (k-1) \exp(-\gamma^2 N/2)`. The bound is "mbbm_mistakes" in `banditlab.bounds`. S
    depends on the learners and is not known, so `bound` returns None. The theorem covers neither sampled nor remembered
    potentials (whose costs may be negative), nor raw costs.

    Cost: for one label, exact potentials take :math:`O(k N^4)` multiplications in the worst case: 18 ms per round at
    :math:`N = 100`, :math:`k = 8`, and 55 ms for the costs of all labels. The cost is lower if vote counts recur,
    because potentials are stored. Sampled potentials take :math:`O(\text{draws}\, k N)` per label, and remembered ones
    about 10 µs for each new state. The cost of the weak learners is extra. Memory: that of the weak learners, plus up
    to 10 MB for exact potentials, :math:`N k\, \text{draws}` integers for sampled ones, or up to 32 MB for remembered
    ones.

    Parameters
    ----------
    edge
        :math:`\gamma` in the paper, in (0, 1]: the assumed edge of each weak learner over a uniform guess.
    n_learners
        N in the paper, the number of weak learners.
    potentials
        "exact"; "monte-carlo", the mean over `draws` draws that are made in every round; or "remembered", drawn once
        for each state. "remembered" reproduces the code of the paper's authors, including its smallest example weight
        1e-10 and its error (see `RememberedPotentials`).
    draws
        Number of draws, 100 in the paper's experiments.
    weight_bound
        :math:`w^{i^*}` in the paper: "lemma-10", or "trivial", which is :math:`k-1` and never smaller.
    cost_rows
        "normalized", D as in Algorithm 1; "raw", C itself, as in the paper's code.
    weight_scale
        Factor of all weights. "random" draws one in [0.5, 20] for each learner, as the paper's code does for its trees
        (with the trivial bound). With weights of at most 1, trees stay small on short streams. On `balance-scale` (625
        rows, 100 trees, edge 0.1) the accuracy was 0.62 by default, 0.71 with the code's weights, and 0.76 with its
        weights and raw costs; the paper reports 0.77 (each a mean over 2 or 3 orders of the rows).
    weak_learner
        Id of the weak learners.
    tuning_seed
        Seed of the trees' random settings and of "random" weights. The seed 1 gives the values in the code of Jung,
        Goetz and Tewari. Without a seed, every run draws new values.
    weak_settings
        Settings of the weak learners, by name. If the booster has a setting of the same name, write for example
        `weak_learner.edge`.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is invalid.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Algorithm 1.
    """

    id = "online-mbbm"
    summary = "boost-by-majority: votes whose costs are potentials"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Algorithm 1"

    state_constants = ("_largest",)

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        edge: float = 0.1,
        n_learners: int = 100,
        potentials: Literal["exact", "monte-carlo", "remembered"] = "exact",
        draws: int = 100,
        weight_bound: Literal["lemma-10", "trivial"] = "lemma-10",
        cost_rows: Literal["normalized", "raw"] = "normalized",
        weight_scale: float | Literal["random"] = 1.0,
        weak_learner: str = "hoeffding-tree",
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, tuning_seed)
        N, k = self.n_learners, problem.n_classes
        self.edge = positive("edge", probability("edge", edge))
        self.potentials = one_of("potentials", potentials, ("exact", "monte-carlo", "remembered"))
        self.draws = at_least("draws", draws, 1)
        self.weight_bound = one_of("weight_bound", weight_bound, ("lemma-10", "trivial"))
        self.cost_rows = one_of("cost_rows", cost_rows, ("normalized", "raw"))
        self.weight_scale = weight_scale if weight_scale == "random" else positive("weight_scale", weight_scale)
        self.payload_size = N + 1  # the votes, and the seed of the round's draws
        (self._seeds,) = self.rng.spawn(1)
        self._seed = int(self._seeds.integers(2**53)) if potentials == "remembered" else 0
        drawn = SHARE * self._tuning.drawn_scales(self._seeds)
        self._scales = drawn if weight_scale == "random" else np.full(N, self.weight_scale)
        self._phi = self._potentials()
        self._recall()
        self.edges = Edges.zero(N)
        trivial = self.weight_bound == "trivial"
        self._largest = [k - 1.0 if trivial else mbbm_weight(k, N - i, self.edge) for i in range(1, N + 1)]

    def _potentials(self) -> Potentials:
        N, k = self.n_learners, self.problem.n_classes
        if self.potentials == "exact":
            return ExactPotentials(N, k, self.edge)
        kind = SampledPotentials if self.potentials == "monte-carlo" else RememberedPotentials
        return kind(N, k, self.edge, self.draws)

    @property
    def error_rate(self) -> float:
        r"""The exact :math:`\phi_N(0)`, Theorem 2's asymptotic mistake rate."""
        k = self.problem.n_classes
        return ExactPotentials(self.n_learners, k, self.edge)(self.n_learners, np.zeros(k, dtype=np.int64), 0)

    @property
    def weight_bounds(self) -> Floats:
        """The estimates :math:`w^{i^*}` (N,)."""
        return np.array(self._largest)

    def diagnostics(self) -> dict[str, Any]:
        r"""Return each learner's empirical edge :math:`\gamma_i`.

        :math:`\gamma_i` solves :math:`\sum_t w D(y, l) = ((1 - \gamma_i)/k) \sum_t w`.
        """
        return {f"edge.{i}": float(g) for i, g in enumerate(self.edges.measured(), 1)}

    # ---------------------------------------------------------------------------------------------------- Algorithm 1

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        payload, s = np.empty(self.payload_size), np.zeros(self.problem.n_classes, dtype=np.int64)
        payload[-1] = self._seed or self._seeds.integers(2**53)
        self._redraw(payload)
        for i, learner in enumerate(self.learners):
            costs = self._costs(i, s) if getattr(learner, "reads_costs", True) else None
            l = learner.predict(view, costs)
            payload[i] = l
            s[l] += 1
        p = (s == s.max()).astype(float)
        return p / p.sum(), payload

    def costs(self, i: int, votes: Any) -> Floats:
        """Return the costs (k, k) of learner i (0 to :math:`N-1`) after the votes (k,) of the learners before it.

        Exact rows have a zero diagonal and no negative entry; if they are normalized, they sum to 1 or to 0.
        """
        self._recall()
        return self._costs(i, votes)

    def _costs(self, i: int, votes: Any) -> Floats:
        k, C = self.problem.n_classes, self._phi.matrix(self.n_learners - i - 1, votes)
        if self.cost_rows == "raw":
            return C
        w = C.sum(axis=1, keepdims=True)
        return np.divide(C, w, out=np.zeros((k, k)), where=w > 0.0)  # Equation (5)

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        self._redraw(payload)
        N, k, least = self.n_learners, self.problem.n_classes, LEAST_WEIGHT if self._seed else 0.0
        s = np.zeros(k, dtype=np.int64)
        for i, learner in enumerate(self.learners):
            row, l = self._phi.costs(N - i - 1, s, label), int(payload[i])
            w = float(row.sum())
            s[l] += 1
            self.edges.got[i] += w - k * float(row[l])
            self.edges.best[i] += w
            # sampled potentials may exceed the bound of the exact ones
            learner.update(view, label, max(least, float(self._scales[i]) * min(1.0, w / self._largest[i])))

    def _recall(self) -> None:
        """Pass the seed to the remembered potentials, because their copies and pickles do not contain it."""
        if isinstance(self._phi, RememberedPotentials):
            self._phi.redraw(self._seed)

    def _redraw(self, payload: Floats) -> None:
        """Repeat the draws of the round that returned `payload`; other rounds may have been played since."""
        if isinstance(self._phi, DrawnPotentials):
            self._phi.redraw(int(payload[-1]))
