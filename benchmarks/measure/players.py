"""The players that are measured: one line each, with the cost of a round (see `benchmarks.measure.costs`)."""

from __future__ import annotations

from benchmarks.measure import costs
from benchmarks.measure.costs import Cost, Player, halves, joint, joint_or_span, newtron_state, weights


def squares(K: int, d: int) -> float:
    """A d x d matrix per class."""
    return float(K * d * d)


TURNED = (
    "once in some m rounds the eigenvectors of a 2 m x 2 m matrix, 4 (2 m)^3 operations and more, which the floor leaves out: "
    "a sketch is for d in the hundreds"
)
"""What the floor of a sketch leaves out."""

AGENTS = [
    Player("uniform", "agents", {}, "K", lambda c: Cost(), lambda K, d: 0.0),
    Player("banditron", "agents", {"gamma": 0.1}, "K d", lambda c: costs.rows(c, 1.0 + c.hits), weights, "first"),
    Player(
        "epsilon-greedy", "agents", {}, "K d", costs.epsilon_greedy, lambda K, d: weights(K, d) * 2, "first",
    ),
    Player(
        "epsilon-greedy-direct", "agents", {}, "K d", costs.epsilon_greedy_direct,
        lambda K, d: weights(K, d) + K * d, "first",
    ),
    Player(
        "gaptron", "agents", {"gamma": 0.1, "step": "adaptive"}, "K d", costs.gaptron, weights, "first",
    ),
    Player(
        "pnewtron", "agents", {"gamma": 0.1}, "K d", costs.pnewtron, lambda K, d: weights(K, d) * 3, "first",
    ),
    Player(
        "soba-diag", "agents", {"gamma": 0.1}, "K d", costs.soba_diag, lambda K, d: weights(K, d) * 3, "first",
        watch=costs.accepted,
    ),
    Player(
        "rdue", "agents", {"gamma": 0.1, "step": "adaptive"}, "K d",
        lambda c: costs.softmax_step(c, c.hits, c.K), weights, "first",
    ),
    Player(
        "decoded-descent", "agents", {"gamma": 0.1, "step": "adaptive"}, "K d",
        lambda c: costs.softmax_step(c, c.hits, c.K), weights, "first",
    ),
    Player(
        "ovr-perceptron", "agents", {"choice": "largest"}, "K d", lambda c: costs.rows(c, 1.0 - c.hits), weights, "first"
    ),
    Player("perceptron", "agents", {}, "K d", lambda c: costs.rows(c, 2.0 * (1.0 - c.hits)), weights),
    Player(
        "randomized-decoding", "agents", {}, "K d", lambda c: costs.softmax_step(c, 1.0, c.K), weights,
    ),
    Player(
        "linucb", "agents", {}, "K d^2", lambda c: costs.per_class(c, c.K, 0.0),
        halves, "second",
    ),
    Player(
        "lints", "agents", {}, "K d^2", lambda c: costs.per_class(c, c.K, 2.0 * c.K),
        halves, "second",
    ),
    Player(
        "confidit", "agents", {}, "K d^2", lambda c: costs.per_class(c, c.K, 0.0),
        halves, "second",
    ),
    Player(
        "fastcb", "agents", {}, "K d^2", costs.inverse_gap, lambda K, d: 2.0 * halves(K, d + 1), "second",
        note="an open duel doubles a round, and on more of the streams with many classes it stays open",
        watch=costs.duel,
    ),
    Player(
        "squarecb", "agents", {}, "K d^2", costs.inverse_gap, lambda K, d: 2.0 * halves(K, d + 1), "second",
        note="an open duel doubles a round, and on more of the streams with many classes it stays open",
        watch=costs.duel,
    ),
    Player(
        "linucb", "agents", {"second_order": "sketch"}, "(K + m) d + K m^2", lambda c: costs.sketched(c, 0.0),
        costs.sketched_state, rest=TURNED,
    ),
    Player(
        "lints", "agents", {"second_order": "sketch"}, "(K + m) d + K m^2", lambda c: costs.sketched(c, 2.0 * c.K),
        costs.sketched_state, rest=TURNED,
    ),
    Player(
        "fastcb", "agents", {"second_order": "sketch"}, "(K + m) d + K m^2", costs.sketched_gap,
        lambda K, d: 2.0 * costs.sketched_state(K, d + 1), watch=costs.duel, rest=TURNED,
    ),
    Player(
        "stackcb", "agents", {}, "K d^2", costs.stacked, costs.stacked_state,
        rest="float32 counts as numbers of eight bytes here; scales taken anew, after which the rounds so far are learnt "
        "again, are not counted",
        note="at 2, 4, ..., 512 rounds all are learnt again, which weighs more where fewer are played",
    ),
    Player(
        "newtron", "agents", {"gamma": 0.1, "ball": False}, "K d^2", lambda c: costs.newtron(c, 1.0),
        newtron_state, "second",
    ),
    Player(
        "newtron", "agents", {"gamma": 0.1}, "K d^2", lambda c: costs.newtron(c, 4.0), newtron_state,
        note="where the ball binds: Lanczos steps beyond two, and K d^3 when the reference multiplier moves",
    ),
    Player(
        "soba", "agents", {"gamma": 0.1}, "K^2 d^2", costs.soba, lambda K, d: float(K * d) ** 2,
        note="more hits are accepted where more classes are to be learnt", watch=costs.accepted,
    ),
    Player(
        "obama-lite", "agents", {"gamma": 0.1}, "K^3 d^2", costs.obama,
        lambda K, d: 0.5 * K * (K - 1) * d * d + 4.0 * (K - 1) ** 2 * d,
    ),
    Player(
        "exploration", "agents", {"gamma": 0.1}, "K^2 d^2", lambda c: costs.exploration(c, 0.1), joint_or_span,
        note="in the span of the contexts learnt a round grows with them",
    ),
    Player("sampled", "agents", {}, "K^3 d^2", costs.folklore, joint_or_span),
]  # fmt: skip

FORECASTERS = [
    Player(
        "ogd", "forecasters", {}, "K d", lambda c: costs.softmax_step(c, 2.0, c.K),
        lambda K, d: K * (d + 6.0),  # six numbers a row: its running norm and scratch
    ),
    Player("aioli", "forecasters", {}, "d^2", costs.aioli, lambda K, d: float(d * d), classes=2),
    Player("folklore", "forecasters", {"norm_bound": 5.0}, "K^3 d^2", costs.folklore, joint_or_span),
    Player(
        "gaf", "forecasters", {"norm_bound": 5.0, "regularization": 0.1}, "K^3 d^2", costs.gaf,
        lambda K, d: joint_or_span(K, d) + 100.0 * K,
    ),
    Player(
        "gaf-fresh", "forecasters", {"norm_bound": 5.0, "regularization": 0.1}, "K^3 d^2", costs.gaf_primal,
        joint, note="interpreted: rounds go one at a time through Python",
        rest="rounds go one at a time through Python, which draws the nodes and calls gaf's own two kernels",
    ),
    Player(
        "ons", "forecasters", {"projection": "none"}, "K^2 d^2", costs.ons, lambda K, d: float(K * d) ** 2,
        note="both halves of the inverse are kept, read twice and written once, three times the bytes of the floor's one half",
    ),
    Player(
        "ons", "forecasters", {}, "K^2 d^2 and (K d)^3 where the ball binds", costs.ons,
        lambda K, d: 3.0 * (K * d) ** 2, note="where the ball binds: Newton steps of order (K d)^3, not counted",
        rest="the projection, which the line above goes without; where the ball binds it solves for the multipliers by Newton "
        "steps of order (|F| d)^3, |F| the rows on their spheres",
    ),
    Player(
        "ftrl", "forecasters", {}, "m K d + K^2 d^2", costs.ftrl, lambda K, d: float(K * d) ** 2,
        note="a round grows with the m distinct contexts so far; new factors, (K d)^3, are not counted",
        rest="new Cholesky factors of a Kd x Kd Hessian, of order (K d)^3, whenever the weights have moved far (some nine in "
        "the first hundred rounds on Logistic), and the Hessians that they factor, of order m K^2 d^2, neither counted",
    ),
    Player(
        "aggregating", "forecasters", {}, "N K d", costs.members, lambda K, d: 2000.0 * K * d,
        rest="two passes over the members, 10 MiB here, the second of which writes them: where no near cache holds them, "
        "products and memory come one after the other, and the floor is the larger of the two",
    ),
    Player(
        "b-grid", "forecasters", {}, "N K^3 d^2", costs.several(costs.folklore, 9), lambda K, d: 9.0 * joint(K, d),
    ),
    Player(
        "kernel-aioli", "forecasters", {}, "t d + t^2", costs.kernel_aioli, lambda K, d: 0.0, classes=2,
        note="a round grows with the rounds t so far; interpreted",
    ),
    Player(
        "fourier-aioli", "forecasters", {}, "D d + D^2", costs.fourier, lambda K, d: 1e4 + 50.0 * d, classes=2,
    ),
    Player(
        "folklore-direct", "forecasters", {}, "K^3 d^2", costs.folklore_direct, lambda K, d: float(K * d) ** 2,
        note="interpreted, in numpy's products: for study",
        rest="interpreted: rounds go one at a time through Python, a forecast by numpy's solvers in K dimensions",
    ),
    Player(
        "aioli-direct", "forecasters", {}, "d^2 + T", costs.aioli, lambda K, d: float(d * d), classes=2,
        note="interpreted: 100 gradient steps a forecast, a triangular solve",
        rest="interpreted: rounds go one at a time through Python, with 100 gradient steps in two dimensions a forecast",
    ),
    Player(
        "kernel-folklore", "forecasters", {"landmarks": 50}, "m d + K^3 m^2", costs.kernel_folklore,
        lambda K, d: joint(K, 64) + 64.0 * (d + 64.0), note="m contexts kept; interpreted but for folklore's own kernels",
        rest="kernel values and coordinates go through numpy, a round at a time; folklore's kernels play in m dimensions",
    ),
    Player(
        "fourier-folklore", "forecasters", {}, "D d + K^3 D^2", costs.fourier_folklore,
        lambda K, d: joint(K, 100) + 50.0 * d,
        rest="folklore's round in 100 coordinates, at twice its floor, and 50 cosines and sines, which numpy makes",
    ),
    Player(
        "kernel-gaf", "forecasters", {"landmarks": 50}, "m d + K^3 m^2", costs.kernel_folklore,
        lambda K, d: joint(K, 64) + 64.0 * (d + 64.0), note="m contexts kept; interpreted but for gaf's own kernels",
        rest="kernel values and coordinates go through numpy, a round at a time; gaf's kernels play in m dimensions",
    ),
]  # fmt: skip

PEERS = [
    Player("vw", "driver", {"cbify": "--epsilon 0.1"}, "", lambda c: Cost(), weights, "first"),
    Player("vw", "driver", {"cbify": "--squarecb"}, "", lambda c: Cost(), weights, "first"),
    Player("vw", "agents", {}, "", lambda c: Cost(), weights, "first"),
    Player("vw", "agents", {"exploration": "squarecb"}, "", lambda c: Cost(), weights, "first"),
    Player("river-logistic", "agents", {}, "", lambda c: Cost(), weights, "first"),
    Player("contextualbandits-sgd", "agents", {}, "", lambda c: Cost(), weights, "first"),
    Player("river-linucb", "agents", {}, "", lambda c: Cost(), squares, "second"),
    Player("contextualbandits-linucb", "agents", {}, "", lambda c: Cost(), squares, "second"),
    Player("contextualbandits-lints", "agents", {}, "", lambda c: Cost(), squares, "second"),
    Player("mabwiser-linucb", "agents", {}, "", lambda c: Cost(), squares, "second"),
    Player("mabwiser-lints", "agents", {}, "", lambda c: Cost(), squares, "second"),
    Player("coba-linucb", "agents", {}, "", lambda c: Cost(), lambda K, d: 3.0 * (K * d) ** 2, "second"),
    Player("coba-lints", "agents", {}, "", lambda c: Cost(), lambda K, d: 4.0 * (K * d) ** 2, "second"),
]
"""Other libraries: by their own driver (a whole stream in one call), or called once a round."""

OURS = AGENTS + FORECASTERS
ROWS_FIRST = ("newtron",)
"""Players that do not look ahead, but keep matrices as rows where they are large, by kernels of their own."""
TWO_FORMS = ("folklore", "gaf", "sampled", "exploration")
"""Players with a second set of kernels for large problems, `form = "dual"`."""
LEFT_OUT = {
    "boosted-exploration": "its rounds are trees of another library; measured in docs/results/boosting-speed.md",
}
"""Registered agents and forecasters that no line above measures, each with the reason."""
