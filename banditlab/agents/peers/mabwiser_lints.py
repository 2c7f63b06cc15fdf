"""mabwiser's LinTS as an agent."""

from __future__ import annotations

from banditlab.agents.peers.mabwiser_adapter import MABWiserAgent


class MABWiserLinTS(MABWiserAgent):
    """mabwiser's `LearningPolicy.LinTS`: Thompson sampling, a ridge regression of the bit per class.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: mabwiser's own. Class k holds A_k = l2_lambda I + sum x x' and beta_k = A_k^{-1} sum x reward over the
    rounds it was played in; the class with the highest x'b_k is played, b_k drawn from N(beta_k, alpha^2 A_k^{-1}) by
    mabwiser's generator, which is seeded from ours: probabilities are one-hot given that draw. mabwiser predicts only
    once it was fitted, so classes are uniform until the first batch is full.

    mabwiser 2.7.4 copies its generator into a class's model whenever that learns, so that the classes draw from copies
    of one stream and not from one generator. It is left as it is.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: 1.8 ms a round at d = 65, K = 10 with batch = 1: copies, checks, the inverse of A_k anew, and for each class the
    singular value decomposition that its draw begins with, which a larger batch does not save. 2 K d^2 numbers.

    Parameters
    ----------
    alpha
        How much it explores, above 0 (alpha in mabwiser, its default 1).
    l2_lambda
        The ridge, above 0 (mabwiser's default 1).
    batch
        Rounds handed over at a time, at least 1; until a batch is full nothing is learnt from it.

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

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
