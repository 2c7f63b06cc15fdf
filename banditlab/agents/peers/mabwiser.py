"""mabwiser's linear policies as agents."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.peers.adapter import BatchPeerAgent, internal_seed, one_hot
from banditlab.distributions import library
from banditlab.players.agent import Floats
from banditlab.players.saved import restored, within
from banditlab.problem import Problem
from banditlab.validation import positive

ARRAYS = ("A", "A_inv", "Xty", "beta")


class MABWiserAgent(BatchPeerAgent):
    """A `mabwiser.mab.MAB` with one ridge regression per class, which predicts the bit. It is updated with `batch`
    rounds at a time.

    Until the first batch is full, mabwiser cannot predict, and the agent draws classes uniformly.
    """

    requires = ("mabwiser",)
    policy: ClassVar[str]
    """The name of the policy in `mabwiser.mab.LearningPolicy`."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        alpha: float = 1.0,
        l2_lambda: float = 1.0,
        batch: int = 1,
    ) -> None:
        super().__init__(problem, rng, batch=batch)
        self.alpha = positive("alpha", alpha)
        self.l2_lambda = positive("l2_lambda", l2_lambda)
        mab = library("mabwiser.mab", self.id)
        policy = getattr(mab.LearningPolicy, self.policy)(alpha=self.alpha, l2_lambda=self.l2_lambda)
        self._mab = mab.MAB(list(range(problem.n_classes)), policy, seed=internal_seed(self.rng))

    def _distribution(self, x: Floats) -> Floats:
        K = self.problem.n_classes
        if not self._mab._is_initial_fit:
            return np.full(K, 1.0 / K)
        return one_hot(self._mab.predict(x[None]), K)

    def _pass_batch(self, contexts: Floats, actions: NDArray[np.int64], rewards: Floats) -> None:
        self._mab.partial_fit(actions, rewards, contexts)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generators, the arrays of every class, and the pending rounds."""
        inside = self._mab._imp
        models = [inside.arm_to_model[k] for k in inside.arms] if self._mab._is_initial_fit else []
        return {
            "rng": self.rng,
            "mab_rng": inside.rng.rng,
            # mabwiser copies its generator into a class's model at each update of the class
            "own_rng": {str(k): m.rng.rng for k, m in enumerate(models) if m.rng is not inside.rng},
            "arrays": [{name: getattr(model, name) for name in ARRAYS} for model in models],
            "waiting": self._get_waiting(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        super().set_state({"rng": state["rng"]})
        inside, K = self._mab._imp, self.problem.n_classes
        within(len(state["arrays"]), "the number of state.arrays", 0, K, K)
        inside.rng.rng = restored(inside.rng.rng, state["mab_rng"], "state.mab_rng")
        self._mab._is_initial_fit = bool(state["arrays"])
        for k, arrays in enumerate(state["arrays"]):
            model = inside.arm_to_model[k]
            inside.num_features = self.problem.n_features
            model.init(inside.num_features)
            own = {name: getattr(model, name) for name in ARRAYS}
            vars(model).update(restored(own, {name: arrays[name] for name in ARRAYS}, f"state.arrays.{k}"))
            model.rng = inside.rng
            if str(k) in state["own_rng"]:
                model.rng = type(inside.rng)(0)
                model.rng.rng = restored(model.rng.rng, state["own_rng"][str(k)], f"state.own_rng.{k}")
        self._set_waiting(state["waiting"])


class MABWiserLinUCB(MABWiserAgent):
    r"""mabwiser's `LearningPolicy.LinUCB`: a ridge regression per class, which predicts the bit, with upper confidence
    bounds.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: mabwiser's own. Class k has :math:`A_k = \mathrm{l2\_lambda}\, I + \sum x x'` and
    :math:`\beta_k = A_k^{-1} \sum x\,\text{reward}` over the rounds in which it was played. The agent plays the class
    with the highest :math:`x'\beta_k + \alpha \sqrt{x'A_k^{-1} x}`, the first one on ties. Nothing is drawn, so
    probabilities are one-hot. mabwiser predicts only after a fit, so the agent draws classes uniformly until the first
    batch is full. For a class that was never played, mabwiser uses :math:`\mathrm{l2\_lambda}\, I` in place of
    :math:`A_k^{-1}`.

    Guarantee: none; `bound` returns None.

    Cost: 1.3 ms per round at :math:`d = 65`, :math:`K = 10` with `batch = 1`, mostly for copies, checks and a new
    inverse of :math:`A_k`; with `batch = 50` it is a twentieth of that. Memory: :math:`2 K d^2` numbers.

    Parameters
    ----------
    alpha
        Amount of exploration, above 0 (:math:`\alpha` in mabwiser, whose default is 1).
    l2_lambda
        The ridge, above 0 (mabwiser's default 1).
    batch
        Rounds passed to the library at a time, at least 1; there is no update until a batch is full.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. Schapire. A contextual-bandit approach to personalized news article recommendation.
    WWW 2010.
    E. Strong, B. Kleynhans, S. Kadioglu. MABWiser: a parallelizable contextual multi-armed bandit library for Python.
    ICTAI 2019.
    """

    id = "mabwiser-linucb"
    expected_kind = "unconditional"
    policy = "LinUCB"
    summary = "mabwiser: LinUCB, one ridge regression per class"
    reference = "Li, Chu, Langford and Schapire, WWW 2010; mabwiser: Strong, Kleynhans and Kadioglu, ICTAI 2019"


class MABWiserLinTS(MABWiserAgent):
    r"""mabwiser's `LearningPolicy.LinTS`: Thompson sampling with a ridge regression per class, which predicts the bit.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: mabwiser's own. Class k has :math:`A_k = \mathrm{l2\_lambda}\, I + \sum x x'` and
    :math:`\beta_k = A_k^{-1} \sum x\,\text{reward}` over the rounds in which it was played. mabwiser's generator, which
    is seeded from the agent's generator, draws :math:`b_k` from :math:`N(\beta_k, \alpha^2 A_k^{-1})`, and the agent
    plays the class with the highest :math:`x'b_k`. Probabilities are one-hot given that draw. mabwiser predicts only
    after a fit, so the agent draws classes uniformly until the first batch is full.

    mabwiser 2.7.4 copies its generator into a class's model at each update of the class. The classes therefore draw
    from copies of one stream and not from one generator. The adapter does not change that.

    Guarantee: none; `bound` returns None.

    Cost: 1.8 ms per round at :math:`d = 65`, :math:`K = 10` with `batch = 1`. It is spent on copies, checks, a new
    inverse of :math:`A_k`, and for each class a singular value decomposition before its draw. A larger batch does not
    reduce the number of decompositions. Memory: :math:`2 K d^2` numbers.

    Parameters
    ----------
    alpha
        Amount of exploration, above 0 (:math:`\alpha` in mabwiser, whose default is 1).
    l2_lambda
        The ridge, above 0 (mabwiser's default 1).
    batch
        Rounds passed to the library at a time, at least 1; there is no update until a batch is full.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013.
    E. Strong, B. Kleynhans, S. Kadioglu. MABWiser: a parallelizable contextual multi-armed bandit library for Python.
    ICTAI 2019.
    """

    id = "mabwiser-lints"
    expected_kind = "conditional"
    policy = "LinTS"
    summary = "mabwiser: LinTS, Thompson sampling with one ridge regression per class"
    reference = "Agrawal and Goyal, ICML 2013; mabwiser: Strong, Kleynhans and Kadioglu, ICTAI 2019"
