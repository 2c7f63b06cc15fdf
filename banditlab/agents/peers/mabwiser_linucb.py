"""mabwiser's LinUCB as an agent."""

from __future__ import annotations

from banditlab.agents.peers.mabwiser_adapter import MABWiserAgent


class MABWiserLinUCB(MABWiserAgent):
    """mabwiser's `LearningPolicy.LinUCB`: a ridge regression of the bit per class, the highest upper bound wins.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: mabwiser's own. Class k holds A_k = l2_lambda I + sum x x' and beta_k = A_k^{-1} sum x reward over the
    rounds it was played in; the class with the highest x'beta_k + alpha sqrt(x'A_k^{-1} x) is played, the first of
    equals. Nothing is drawn: probabilities are one-hot. mabwiser predicts only once it was fitted, so classes are
    uniform until the first batch is full; a class not yet played has l2_lambda I for its A_k^{-1}.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: 1.3 ms a round at d = 65, K = 10 with batch = 1, mostly copies, checks and the inverse of A_k anew; with batch =
    50 a twentieth of it. 2 K d^2 numbers.

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
