"""The synthetic environments follow the laws they state: exact counts, and chi-square tests at fixed seeds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, chisquare, kstest

from banditlab.envs import Adversary, Logistic, LowerBound, Sparse, SynNonSep, SynSep
from banditlab.errors import UsageError
from banditlab.losses import softmax

LEVEL = 1e-3  # of every test below; the seeds are fixed, so a failure is a change of the law or of the stream


def stream(env, rounds, seed=0):
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    return X, y


# ------------------------------------------------------------------------------------------------------------- Logistic


@pytest.mark.parametrize("contexts", ["sphere", "gaussian"])
@pytest.mark.parametrize(("K", "d", "radius"), [(2, 1, 1.0), (3, 4, 2.0), (7, 20, 0.5)])
def test_logistic_labels_follow_the_planted_softmax(contexts, K, d, radius):
    env = Logistic(n_features=d, n_classes=K, norm_bound=3.0, contexts=contexts, radius=radius)
    X, y = stream(env, 40_000)
    W = env.weights()
    assert W.shape == (K, d)
    assert np.allclose(np.linalg.norm(W, axis=1), 3.0, rtol=1e-12)
    P = softmax(X @ W.T)
    # Rounds sorted by the probability of class k fall into 20 groups; counts against the sum of probabilities.
    for k in range(K):
        groups = np.array_split(np.argsort(P[:, k]), 20)
        got = np.array([(y[g] == k).sum() for g in groups])
        mean = np.array([P[g, k].sum() for g in groups])
        variance = np.array([(P[g, k] * (1 - P[g, k])).sum() for g in groups])
        assert chi2.sf(((got - mean) ** 2 / variance).sum(), 20) > LEVEL / K


def test_logistic_noise_replaces_by_another_class_uniformly():
    clean, noisy = Logistic(), Logistic(noise=0.3)
    X, y = stream(clean, 30_000)
    X_noisy, y_noisy = stream(noisy, 30_000)
    assert np.array_equal(X, X_noisy)  # the noise has a stream of its own
    changed = y != y_noisy
    assert binomtest(int(changed.sum()), len(y), 0.3).pvalue > LEVEL
    offsets = np.bincount((y_noisy - y)[changed] % 5, minlength=5)
    assert offsets[0] == 0
    assert chisquare(offsets[1:]).pvalue > LEVEL


def test_logistic_noise_one_never_keeps_the_label():
    _, y = stream(Logistic(), 2000)
    _, y_noisy = stream(Logistic(noise=1.0), 2000)
    assert not (y == y_noisy).any()


def test_logistic_contexts():
    X, _ = stream(Logistic(n_features=3, radius=2.0), 20_000)
    np.testing.assert_allclose(2.0 - np.linalg.norm(X, axis=1), 2e-12, rtol=0.01)  # just below R
    # On the sphere in R^3 every coordinate is uniform (Archimedes).
    assert kstest((X[:, 1] / 2.0 + 1) / 2, "uniform").pvalue > LEVEL
    X, _ = stream(Logistic(n_features=3, radius=2.0, contexts="gaussian"), 20_000)
    norms = np.linalg.norm(X, axis=1)
    inside = norms < 2.0 * (1 - 1e-9)
    # ||x||^2 d / R^2 is chi-square with d degrees before the shortening.
    assert binomtest(int(inside.sum()), len(X), chi2.cdf(3, 3)).pvalue > LEVEL
    scaled = norms[inside] ** 2 * 3 / 4
    assert kstest(scaled, lambda q: chi2.cdf(q, 3) / chi2.cdf(3, 3)).pvalue > LEVEL


def test_every_logistic_episode_has_its_own_weights():
    env = Logistic()
    env.reset(seed=0)
    first = env.weights()
    assert np.array_equal(first, env.weights())
    env.reset()
    assert not np.allclose(first, env.weights())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"radius": math.inf}, "radius must be a number above 0"),
        ({"noise": 1.5}, r"noise must lie in \[0, 1\]"),
        ({"contexts": "cube"}, "contexts must be one of 'sphere', 'gaussian'"),
    ],
)
def test_logistic_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        Logistic(**settings)


# ---------------------------------------------------------------------------------------------------- SynSep, SynNonSep


def test_synsep_counts_are_exact():
    env = SynSep()
    X, y = stream(env, 20_000)
    bits = env.prototypes()
    n_on = bits.sum(axis=1)
    assert bits.shape == (9, 120)
    assert ((n_on >= 20) & (n_on <= 40)).all()
    assert set(np.unique(X)) == {0.0, 1.0}
    assert (X[:, 120:].sum(axis=1) == 20).all()
    assert (X[:, :120].sum(axis=1) == n_on[y] - 5).all()
    assert (X[:, :120] <= bits[y]).all()  # switched off, never on
    squares = (X * X).sum(axis=1)
    assert squares.min() >= 35
    assert squares.max() <= 55
    assert env.problem.radius == math.sqrt(55)
    assert (env.problem.n_features, env.problem.n_classes) == (400, 9)


def test_synsep_draws_are_uniform():
    env = SynSep()
    X, y = stream(env, 45_000)
    bits = env.prototypes()
    assert chisquare(np.bincount(y)).pvalue > LEVEL
    # Each of the 280 noise features is on with probability 20/280. The counts are negatively correlated (their sum is
    # fixed), which scales the statistic by 280/279 * (1 - 20/280).
    n = len(X)
    on = X[:, 120:].sum(axis=0)
    statistic = ((on - n * 20 / 280) ** 2).sum() / (n * 20 / 280 * (1 - 20 / 280)) * 279 / 280
    assert LEVEL < chi2.sf(statistic, 279) < 1 - LEVEL
    for k in range(9):  # each on-bit of a class is switched off with probability 5/s
        own = X[y == k][:, np.flatnonzero(bits[k])]
        s, m = own.shape[1], len(own)
        off = (own == 0).sum(axis=0)
        statistic = ((off - m * 5 / s) ** 2).sum() / (m * 5 / s * (1 - 5 / s)) * (s - 1) / s
        assert LEVEL / 9 < chi2.sf(statistic, s - 1) < 1 - LEVEL / 9


def test_synsep_pairs_are_uniform_too():
    """Floyd's sampling gives uniform subsets, not only uniform single places: neighbours are on together as often."""
    X, _ = stream(SynSep(), 45_000)
    noise = X[:, 120:]
    together = (noise[:, :-1] * noise[:, 1:]).sum()
    expected = len(X) * 279 * (20 * 19) / (280 * 279)
    assert abs(together - expected) < 4 * math.sqrt(expected)
    last = (noise[:, 278] * noise[:, 279]).sum()  # the places Floyd treats specially
    expected = len(X) * (20 * 19) / (280 * 279)
    assert abs(last - expected) < 4 * math.sqrt(expected)


def test_synsep_prototype_sizes_are_uniform():
    env = SynSep()
    sizes = []
    for seed in range(120):
        env.reset(seed=seed)
        sizes.append(env.prototypes().sum(axis=1))
    counts = np.bincount(np.concatenate(sizes).astype(int), minlength=41)[20:]
    assert len(counts) == 21
    assert chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("noise", ["other", "any"])
def test_synnonsep_noise(noise):
    X, y = stream(SynSep(), 20_000)
    X_noisy, y_noisy = stream(SynNonSep(noise=noise), 20_000)
    assert np.array_equal(X, X_noisy)
    changed = y != y_noisy
    rate = 0.05 if noise == "other" else 0.05 * 8 / 9
    assert binomtest(int(changed.sum()), len(y), rate).pvalue > LEVEL
    offsets = np.bincount((y_noisy - y)[changed] % 9, minlength=9)
    assert chisquare(offsets[1:]).pvalue > LEVEL


def test_synsep_is_separable_in_practice():
    """A multiclass perceptron makes 17 to 25 mistakes in a million rounds; all of them early."""
    X, y = stream(SynSep(), 20_000, seed=3)
    W = np.zeros((9, 400))
    mistakes = 0
    for x, label in zip(X, y):
        guess = int(np.argmax(W @ x))
        if guess != label:
            mistakes += 1
            W[label] += x
            W[guess] -= x
    assert mistakes <= 40


def test_synnonsep_bad_settings():
    with pytest.raises(UsageError, match=r"noise_rate must lie in \[0, 1\]"):
        SynNonSep(noise_rate=-0.1)
    with pytest.raises(UsageError, match="noise must be one of 'other', 'any'"):
        SynNonSep(noise="some")


# ----------------------------------------------------------------------------------------------------------- LowerBound


@pytest.mark.parametrize("chi", [-1, 1])
@pytest.mark.parametrize("n", [100, 100_000])
def test_lower_bound_law(chi, n):
    env = LowerBound(n=n, chi=chi)
    B = math.log(n)
    X, y = stream(env, 200_000)
    assert (env.problem.n_features, env.problem.n_classes, env.problem.radius) == (1, 2, 1.0)
    # Class 0 is the label +1.
    assert np.allclose(X[y == 0], 1 - 0.1 / (2 * B), rtol=1e-15)
    assert np.allclose(X[y == 1], 0.1 / B, rtol=1e-15)
    assert binomtest(int((y == 0).sum()), len(y), 0.1 / (2 * B) + chi * 0.01 / B).pvalue > LEVEL
    assert env.norm_bound == B
    assert LowerBound(n=n, chi=-1, epsilon=0.25).p_positive == 0.0


def test_lower_bound_n_is_not_the_horizon():
    short, long = LowerBound(n=1000, horizon=10), LowerBound(n=1000, horizon=500)
    assert np.array_equal(stream(short, 10)[1], stream(long, 500)[1][:10])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 1}, "n must be at least 2"),
        ({"chi": 0}, "chi must be -1 or 1"),
        ({"epsilon": 0.0}, "epsilon must be a number above 0"),
        ({"epsilon": 1.0, "n": 3}, "too large for n = 3"),
    ],
)
def test_lower_bound_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        LowerBound(**settings)


# ------------------------------------------------------------------------------------------------------------ Adversary


def play(env, policy, seed=0):
    context, _ = env.reset(seed=seed)
    contexts, right, done = [], [], False
    while not done:
        contexts.append(context)
        context, reward, done, _, _ = env.step(policy(context))
        right.append(reward)
    return np.array(contexts), np.array(right), env.labels()


def test_adversary_beats_every_constant_policy():
    env = Adversary(rho=1.0, horizon=500)
    for action in range(3):
        _, right, labels = play(env, lambda _, a=action: a)
        # In each cell the first label is class 0, when nothing is played yet; from then on a class that is avoided.
        assert right.sum() <= 8 * (action == 0)
        assert (labels != action).mean() > 0.95


def test_adversary_label_depends_on_earlier_actions_only():
    env, twin = Adversary(rho=1.0, horizon=50), Adversary(rho=1.0, horizon=50)
    env.reset(seed=4)
    twin.reset(seed=4)
    for t in range(20):
        env.step(t % 3)
        twin.step(t % 3)
    env.step(0)
    twin.step(1)  # another action in this round
    assert env.label() == twin.label()


def test_adversary_answers_to_actions_but_shares_contexts():
    env = Adversary(rho=0.5, horizon=2000)
    X0, _, y0 = play(env, lambda _: 0)
    X1, _, y1 = play(env, lambda _: 1)
    assert np.array_equal(X0, X1)
    assert (y0 != y1).mean() > 0.1
    assert not hasattr(env, "blocks")
    assert not env.oblivious
    assert np.linalg.norm(X0, axis=1).max() <= 1.0


def test_adversary_without_interruptions_is_the_planted_model():
    env = Adversary(rho=0.0, horizon=20_000, norm_bound=3.0)
    X, _, y = play(env, lambda _: 0)
    P = softmax(X @ env._W.T)
    groups = np.array_split(np.argsort(P[:, 1]), 20)
    z = [((y[g] == 1).sum() - P[g, 1].sum()) ** 2 / (P[g, 1] * (1 - P[g, 1])).sum() for g in groups]
    assert chi2.sf(sum(z), 20) > LEVEL


def test_adversary_interrupts_at_its_rate():
    # Always playing class 0 makes the adversary answer class 1 after each cell's first round; K = 2, so labels of the
    # planted model are 1 half of the time on average over seeds; the difference to rho = 0 is rho / 2.
    rates = []
    for rho in (0.0, 0.2, 0.6):
        env = Adversary(rho=rho, n_classes=2, n_features=2, horizon=4000)
        base = Adversary(rho=0.0, n_classes=2, n_features=2, horizon=4000)
        _, _, y = play(env, lambda _: 0, seed=1)
        _, _, y_base = play(base, lambda _: 0, seed=1)
        zeros = y_base == 0
        rates.append((y[zeros] == 1).mean())
    assert rates[0] == 0.0
    assert abs(rates[1] - 0.2) < 0.05
    assert abs(rates[2] - 0.6) < 0.05
    assert all(a < b for a, b in pairwise(rates))


def test_adversary_forgets_between_episodes():
    env = Adversary(rho=1.0, horizon=300)
    _, _, first = play(env, lambda _: 2, seed=6)
    _, _, again = play(env, lambda _: 2, seed=6)
    assert np.array_equal(first, again)


def test_adversary_bad_settings():
    with pytest.raises(UsageError, match=r"rho must lie in \[0, 1\]"):
        Adversary(rho=2.0)
    with pytest.raises(UsageError, match="n_cells must be at least 1"):
        Adversary(n_cells=0)


# -------------------------------------------------------------------------------------------------------------- sparse


def documents(rounds=4000, seed=0, **settings):
    env = Sparse(**settings, horizon=rounds)
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    return env, X, y


def test_documents_have_so_many_words_and_unit_norm():
    env, X, y = documents(n_features=5000, nonzeros=30, radius=2.0)
    assert X.format == "csr"
    assert (np.diff(X.indptr) == 30).all()
    assert (X.data > 0).all()
    assert X.has_canonical_format
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    assert norms.max() <= 2.0
    assert norms.min() >= 2.0 * (1 - 1e-9)
    np.testing.assert_allclose(np.bincount(y) / len(y), 0.25, atol=0.03)
    assert env.row_bytes * len(y) == X.data.nbytes + X.indices.nbytes + y.nbytes


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.5])
def test_words_follow_the_power_law(exponent):
    env, X, _ = documents(20_000, n_features=4000, n_classes=4, nonzeros=25, exponent=exponent)
    counts = np.bincount(X.indices, minlength=4000)[env._words(env._streams()).column]
    per_rank = counts.reshape(-1, 4).sum(axis=1) / 20_000
    law = (np.arange(1000) + 0.5 + 25.0) ** -exponent  # frequency of a rank, to be compared in tens
    law *= 25 / law.sum()
    np.testing.assert_allclose(per_rank.reshape(-1, 10).sum(axis=1), law.reshape(-1, 10).sum(axis=1), rtol=0.12)
    assert per_rank.max() <= 1.0


def test_planted_words_tell_the_label():
    for topical, least, most in ((0.0, 0.7, 0.8), (0.3, 0.0, 0.03), (1.0, 0.0, 0.0)):
        env, X, y = documents(n_features=20_000, nonzeros=80, topical=topical)
        own = env.word_classes()[:, None] == np.arange(4)
        wrong = np.argmax(X @ own.astype(float), axis=1) != y
        assert least <= wrong.mean() <= most
    env, X, y = documents(n_features=20_000, nonzeros=80, topical=1.0, noise=0.2)
    wrong = np.argmax(X @ (env.word_classes()[:, None] == np.arange(4)).astype(float), axis=1) != y
    assert 0.17 <= wrong.mean() <= 0.23


def test_columns_left_over_stay_empty_and_the_fullest_rows_are_possible():
    assert documents(50, n_features=2, n_classes=2, nonzeros=1)[1].nnz == 50
    env, X, _ = documents(500, n_features=43, n_classes=4, nonzeros=10)
    assert (np.diff(X.indptr) == 10).all()
    assert X.has_canonical_format
    assert (env.word_classes() == -1).sum() == 3
    assert not np.isin(np.flatnonzero(env.word_classes() == -1), X.indices).any()
    with pytest.raises(UsageError, match="n_features must be at least n_classes \\* nonzeros = 40, got 39"):
        Sparse(n_features=39, n_classes=4, nonzeros=10)
