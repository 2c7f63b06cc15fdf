"""A round of the adaptive boosters, every step by its formula: what the compiled steps must equal to the last bit.

Costs are made anew from the votes at every learner, edges and derivatives are gradients at the votes, weights of experts
are exponentials. Nothing is kept from step to step but the votes.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from banditlab.boosting.compiled_rounds import parts
from banditlab.boosting.expert_booster import ExpertBooster
from banditlab.boosting.losses import SHARES, gradient
from banditlab.boosting.olm import derivative
from banditlab.boosting.regression import forecast, update_kernel
from banditlab.numerics.jit import njit


def by_protocol(booster):
    """Make a booster, or its members, ask their learners one by one."""
    for one in [booster, *getattr(booster, "members", [])]:
        one._grove.forest = lambda learners, ties: None
    return booster


def directly(booster):
    """Make a booster, or its members, play by formulas."""
    by_protocol(booster)
    for one in [booster, *getattr(booster, "members", [])]:
        if isinstance(one, ExpertBooster):
            one._respond, one._absorb = partial(respond, one), partial(absorb, one)
    return booster


def gradients(loss, s):
    """Return C (K, K), row r the gradient of L^r at the votes s (K,)."""
    C = np.zeros((len(s), len(s)))
    for r, row in enumerate(C):
        gradient(loss, s, r, row)
    return C


def costs_at(loss, s):
    """Return what a learner is handed: (9), or (C.1)."""
    C = gradients(loss, s)
    return C if loss != SHARES else (C - np.diag(C)[:, None]) * (1.0 / len(s))


def respond(booster, view):
    """Lines 4 to 10 of Algorithm 2, or Algorithm 4 of the paper on FOLKLORE."""
    N, K = booster.n_learners, booster.problem.n_classes
    payload, p = np.empty(booster.payload_size), np.zeros(K)
    votes, choices, S = parts(payload, K)
    s = booster._zero
    for i, learner in enumerate(booster.learners):
        l = learner.predict(view, costs_at(booster.loss_code, s))
        if booster.loss_code == SHARES:
            shares_after(booster._regressions.states, i, s, l, S[i])
        else:
            S[i] = s
            S[i, l] += booster.alpha[i]
        votes[i], s = l, S[i]
    least, ties = booster.mistakes.min(), booster._ties.random(N)
    for i in range(N):
        best = np.flatnonzero(S[i] == S[i].max())
        choices[i] = best[min(int(ties[i] * len(best)), len(best) - 1)]
    v = [math.exp(least - mistakes) for mistakes in booster.mistakes]
    total = 0.0
    for weight in v:
        total += weight
    again = 0.0
    for choice, weight in zip(choices, v, strict=True):
        p[int(choice)] += weight / total
        again += weight / total
    return p / again, payload


def absorb(booster, view, payload, label):
    """Lines 12 to 15."""
    booster.rounds += 1
    N, K = booster.n_learners, booster.problem.n_classes
    votes, choices, S = parts(payload, K)
    weights, g = np.zeros(N), np.zeros(K)
    for i in range(N):
        l = int(votes[i])
        gradient(booster.loss_code, S[i - 1] if i > 0 else booster._zero, label, g)
        booster.edges.got[i] += g[l]
        booster.edges.best[i] += g[label]
        weights[i] = min(1.0, -g[label] / booster._tops[i])
        booster.mistakes[i] += choices[i] != label
    for i in range(N):
        s, l = S[i - 1] if i > 0 else booster._zero, int(votes[i])
        if booster.loss_code == SHARES:
            learn(booster._regressions.states, i, s, l, label)
            continue
        step = S[i, l] - s[l]
        f = derivative(booster.loss_code, booster._derivative_code(), S[i], step, l, label, g)
        rate = booster._rate / math.sqrt(booster.rounds) * math.exp(-booster._decay * (i + 1))
        booster.alpha[i] = max(-booster._limit, min(booster._limit, booster.alpha[i] - rate * f))
    for learner, w in zip(booster.learners, (weights * booster._scales).tolist(), strict=True):
        learner.update(view, label, w)


@njit(cache=False)
def at_shares(states, i, p, l, seen):
    """Return the others' share, and what regression i makes of a class l and votes whose softmax is p."""
    others = 0.0
    for k in range(p.shape[0]):
        if k != l:
            others += p[k]
    own, rest = forecast(states, i, 0.5 * math.log(p[l] / others), seen)
    return others, own, rest


@njit(cache=False)
def shares_after(states, i, p, l, out):
    """Write the softmax of the prediction of regression i into out (K,)."""
    others, own, rest = at_shares(states, i, p, l, np.zeros(8))
    K = p.shape[0]
    for k in range(K):
        out[k] = p[k] / others * rest if others > 0.0 else rest / (K - 1)
    out[l] = own


@njit(cache=False)
def learn(states, i, p, l, y):
    """Update regression i on a class l, votes whose softmax is p, and the label y."""
    seen = np.zeros(8)
    at_shares(states, i, p, l, seen)
    update_kernel(states, i, y == l, seen)


@pytest.fixture(params=[by_protocol, directly], ids=["one by one", "by formulas"])
def any_way(request):
    """Return what makes a booster play otherwise.

    The same step kernels, called for each learner that is asked itself; or no kernel of a step at all.
    """
    return request.param


@pytest.fixture
def way():
    """Return what makes a booster play by formulas."""
    return directly


@pytest.fixture(scope="session")
def regression_steps():
    """Return what predicts a regression's shares, and what updates it (see `shares_after`, `learn`)."""
    return shares_after, learn


@pytest.fixture(scope="session")
def cost_matrix():
    """Return the cost matrix of a loss at votes, by its rows."""
    return gradients
