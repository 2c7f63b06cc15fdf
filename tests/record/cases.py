"""What is recorded, as plain data: streams, and which players meet them with which settings. No module is imported here.

A stream's name may end in "?" (the horizon is hidden from the player) and in "#n" (another seed). The first case of a
player is also saved half-way, loaded and continued.
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]
Case = tuple[str, Settings]

LOGISTIC = "banditlab/Logistic-v0"
THREE: Settings = {"n_features": 6, "n_classes": 3, "norm_bound": 5.0, "noise": 0.1}
TWO: Settings = {"n_features": 5, "n_classes": 2, "norm_bound": 5.0}
SPARSE: Settings = {"n_features": 300, "n_classes": 4, "nonzeros": 20}

STREAMS: dict[str, tuple[str, Settings, int]] = {
    "one": (LOGISTIC, {"n_features": 1, "n_classes": 2, "norm_bound": 2.0}, 150),
    "two": (LOGISTIC, TWO, 200),
    "three": (LOGISTIC, THREE, 200),
    "short": (LOGISTIC, THREE, 60),
    "brief": (LOGISTIC, {"n_features": 8, "n_classes": 5, "contexts": "gaussian", "radius": 2.0}, 60),
    "five": (
        LOGISTIC,
        {"n_features": 8, "n_classes": 5, "contexts": "gaussian", "radius": 2.0, "norm_bound": 3.0},
        150,
    ),
    "ten": ("banditlab/Digits-v0", {}, 100),
    "large": (LOGISTIC, {"n_features": 256, "n_classes": 10}, 80),
    "sparse": ("banditlab/Sparse-v0", SPARSE, 150),
    "adversary": ("banditlab/Adversary-v0", {"n_features": 2, "n_cells": 4}, 150),
}
"""Environment, its settings, rounds. "large" is where players look ahead within a block."""

DRAWN: Settings = {"decoding": "sample"}
HALF_LOG: Settings = {"decoding": "half-log"}
OGD: Settings = {"forecaster": "ogd", "gamma": 0.1}
TREES: Settings = {"weak_learner": "hoeffding-tree", "n_learners": 3}
TWO_TREES: Settings = {"weak_learner": "hoeffding-tree", "n_learners": 2}
MODELS: Settings = {"weak_learner": "forecaster", "n_learners": 3}
SIMULATED: Settings = {"weak_learner": "simulated", "n_learners": 4, "edge": 0.2}

AGENTS: dict[str, list[Case]] = {
    "uniform": [("three", {}), ("ten?", {}), ("sparse", {})],
    "beta-ts": [("three", {}), ("ten?", {"per": [10, 20]}), ("sparse", {"per": [0, 99]})],
    "banditron": [
        ("three", {}),
        ("two#5", {"gamma": 0.2}),
        ("ten", {"gamma": 0.1}),
        ("sparse", {"gamma": 0.1}),
        ("adversary", {}),
    ],
    "exploration": [
        ("three", DRAWN),
        ("three?", {**DRAWN, "gamma": "anytime", "regularization": 1.0}),
        ("ten", {**DRAWN, **OGD, "norm_bound": 5.0}),
        ("two", {**DRAWN, "forecaster": "aioli", "gamma": 0.2}),
        ("five", {**DRAWN, "forecaster": "ons", "gamma": 0.1}),
        ("five#2", {**DRAWN, "forecaster": "gaf", "gamma": 0.1, "norm_bound": 3.0}),
        ("sparse", {**DRAWN, **OGD}),
        ("sparse#3", {**DRAWN, "gamma": 0.1, "form": "dual"}),
        ("three", HALF_LOG),
        ("three?", {**HALF_LOG, "gamma": "anytime", "regularization": 1.0}),
        ("ten", {**HALF_LOG, **OGD, "norm_bound": 5.0}),
    ],
    "sampled": [
        ("three", DRAWN),
        ("two", {**DRAWN, "forecaster": "aioli"}),
        ("ten#4", {**DRAWN, "forecaster": "ogd", "step": 0.5}),
        ("three", HALF_LOG),
        ("ten#4", {"forecaster": "ogd", "decoding": "randomized"}),
    ],
    "apple-tasting": [("two", {}), ("two", {"forecaster": "ogd", "sharpness": 20.0})],
    "label-efficient": [("three", {**DRAWN, "query_rate": 0.3})],
    "newtron": [
        ("three", {}),
        ("five#2", {"gamma": 0.1, "alpha": 5.0, "norm_bound": 3.0}),
        ("ten?", {"gamma": 0.1, "ball": False, "beta": 0.01}),
    ],
    "gaptron": [
        ("three", {}),
        ("five", {"loss": "hinge", "norm_bound": 3.0}),
        ("two", {"loss": "smooth-hinge", "gamma": 0.2}),
        ("three#2", {"step": "wide", "gamma": 0.1}),
        ("ten?", {"step": "adaptive", "gamma": 0.05, "norm_bound": 10.0}),
        ("sparse", {"step": "adaptive", "gamma": 0.1}),
        ("five#7", {"step": 0.3, "gamma": 0.1, "project": False}),
        ("five#2", {**HALF_LOG, "norm_bound": 3.0}),
    ],
    "obama-lite": [
        ("three", DRAWN),
        ("three?", {**DRAWN, "gamma": 0.1, "norm_bound": 5.0, "samples": 40}),
        ("ten", {**DRAWN, "gamma": 0.1, "samples": 20}),
        ("two", {**DRAWN, "sampler": "net", "gamma": 0.1, "members": 200}),
        ("one", {**DRAWN, "sampler": "grid", "gamma": 0.1}),
        ("two#3", {**DRAWN, "sampler": "mala", "gamma": 0.1, "chains": 4, "steps": 4}),
        ("three", HALF_LOG),
        ("two", {**HALF_LOG, "sampler": "net", "gamma": 0.1, "members": 200}),
    ],
    "fastcb": [
        ("three", {}),
        ("two?", {"sharpness": 10.0, "growth": 0.3}),
        ("five#2", {"curvature": "tight", "intercept": 0.0}),
        ("ten", {}),
        ("ten#2", {"challenger": 0.0, "regularization": 1.0}),
        ("three#3", {"oracle": "logistic"}),
        ("five", {"oracle": "b-grid", "grid_size": 3}),
        ("large", {}),
        ("five", {"second_order": "diagonal"}),
        ("five#2", {"second_order": "sketch", "sketch_size": 5}),
        ("ten", {"second_order": "sketch"}),
    ],
    "stackcb": [
        ("three", {}),
        ("two", {}),
        ("two?", {"sharpness": 3.0, "changes": False, "complement": False}),
        ("ten", {}),
        ("five#2", {"blocks": 2, "features": 32}),
        ("five", {"blocks": 2, "features": 32, "second_order": "diagonal"}),
    ],
    "squarecb": [
        ("three", {}),
        ("five#2", {"norm_bound": 2.0, "virtual_weight": 1.0}),
        ("ten", {"sharpness": 50.0}),
        ("three#3", {"oracle": "logistic", "step": 0.2}),
        ("five", {"oracle": "b-grid", "grid_size": 3}),
        ("large", {}),
    ],
    "linucb": [("three", {}), ("five", {"confidence": 0.3, "regularization": 1e-3}), ("ten?", {}), ("large", {})],
    "lints": [
        ("three", {}),
        ("five", {"deviation": 0.5}),
        ("ten?", {"regularization": 0.1}),
        ("large", {}),
        ("five#2", {"second_order": "sketch", "sketch_size": 5}),
    ],
    "confidit": [("three", {}), ("five", {"alpha": 0.5, "eta": 1.0}), ("ten?", {}), ("large", {})],
    "epsilon-greedy": [("three", {}), ("ten?", {"gamma": 0.05}), ("five", {"learning_rate": 0.3}), ("sparse", {})],
    "epsilon-greedy-direct": [
        ("three", {}),
        ("ten?", {"gamma": 0.1}),
        ("five", {"learning_rate": 0.3}),
        ("sparse", {}),
    ],
    "pnewtron": [
        ("three", {}),
        ("five", {"norm_bound": "paper", "exploit": "argmax"}),
        ("ten?", {"norm_bound": 2.0, "alpha": 5.0}),
        ("sparse", {"gamma": 0.1}),
    ],
    "soba": [("three", {}), ("five", {"gamma": "adaptive"}), ("ten?", {"gamma": 0.1, "ridge": 0.1})],
    "soba-diag": [("three", {}), ("five", {"gamma": "adaptive"}), ("ten?", {"ridge": 0.1}), ("sparse", {"gamma": 0.1})],
    "rdue": [
        ("three", {}),
        ("five", {"step": "adaptive", "norm_bound": 10.0}),
        ("ten?", {"gamma": 0.1, "step": "adaptive", "project": False}),
        ("sparse", {"gamma": 0.1}),
        ("five#2", HALF_LOG),
    ],
    "decoded-descent": [
        ("three", {}),
        ("five", {"step": "adaptive", "gamma": 0.1, "norm_bound": 10.0}),
        ("ten?", {"gamma": 0.1, "decoding": "randomized"}),
        ("sparse", {"gamma": 0.1, "decoding": "gap"}),
    ],
    "ovr-perceptron": [
        ("three", {}),
        ("five", {"choice": "largest"}),
        ("ten?", {"corrects": "all"}),
        ("sparse", {"choice": "largest", "corrects": "all"}),
    ],
    "perceptron": [("three", {}), ("ten?", {}), ("sparse", {})],
    "randomized-decoding": [
        ("three", {}),
        ("ten?", {"step": 0.1}),
        ("five", {"norm_bound": 3.0}),
        ("five#2", HALF_LOG),
    ],
    "boosted-exploration": [
        ("three", MODELS),
        ("five", {**TREES, "booster": "oza", "gamma": 0.2}),
        ("three#2", {**TWO_TREES, "booster": "best-single"}),
    ],
    "vw": [
        ("short", {}),
        ("brief", {"exploration": "squarecb", "sharpness": 50.0}),
        ("short#3", {"cost_type": "dr", "gamma": 0.1}),
        ("short#2", {"exploration": "cover", "policies": 3}),
    ],
    "river-logistic": [("short", {}), ("brief", {"learning_rate": 0.1, "l2": 0.01})],
    "river-linucb": [("short", {}), ("brief", {"alpha": 0.3, "beta": 2.0})],
    "mabwiser-linucb": [("short", {}), ("brief", {"alpha": 0.3, "batch": 10})],
    "mabwiser-lints": [("short", {}), ("brief", {"alpha": 0.3, "batch": 10})],
    "contextualbandits-linucb": [("short", {}), ("brief", {"alpha": 0.3, "batch": 10})],
    "contextualbandits-lints": [("short", {}), ("brief", {"deviation": 0.3, "batch": 10})],
    "contextualbandits-sgd": [("short", {"batch": 20}), ("brief", {"gamma": 0.1, "batch": 25})],
    "coba-linucb": [("short", {}), ("brief", {"alpha": 0.3})],
    "coba-lints": [("short", {}), ("brief", {"variance": 0.1})],
}

FORECASTERS: dict[str, list[Case]] = {
    "ogd": [("three", {}), ("two#5", {"norm_bound": 5.0}), ("ten?", {"step": 0.3}), ("sparse", {"norm_bound": 5.0})],
    "aioli": [
        ("two", {}),
        ("two#2", {"curvature": "tight", "norm_bound": 5.0}),
        ("one?", {"regularization": 0.1, "virtual_weight": 2.0}),
    ],
    "folklore": [
        ("three", {}),
        ("five#2", {"curvature": "tight", "norm_bound": 3.0}),
        ("two", {"curvature": "printed", "linear_term": "printed"}),
        ("ten", {"regularization": 0.1, "form": "primal"}),
        ("three#3", {"form": "dual", "norm_bound": 5.0}),
        ("sparse", {"form": "dual"}),
    ],
    "ons": [
        ("three", {}),
        ("five#2", {"norm_bound": 3.0, "regularization": 1.0, "step": 2.0}),
        ("three#3", {"projection": "none"}),
    ],
    "ftrl": [("three", {}), ("two", {"regularization": "theory", "norm_bound": 5.0}), ("five#2", {"norm_bound": 3.0})],
    "aggregating": [
        ("two", {"members": 200}),
        ("three#2", {"members": 100, "norm_bound": 3.0, "smoothing": 0.01}),
        ("one", {"sampler": "quadrature", "norm_bound": 5.0}),
        ("one#2", {"sampler": "quadrature", "smoothing": "theory", "nodes": "theory"}),
        ("two#3", {"sampler": "mala", "chains": 4, "steps": 3}),
    ],
    "b-grid": [
        ("three", {}),
        ("two", {"member": "aioli", "norm_bound": 5.0, "curvature": "tight"}),
        ("five#2", {"size": 4, "ratio": 3.0, "smallest": 0.5}),
    ],
    "kernel-aioli": [
        ("two", {}),
        ("two#2", {"kernel": "linear", "curvature": "tight"}),
        ("two#3", {"kernel": "polynomial", "degree": 3, "regularization": 0.5}),
    ],
    "fourier-aioli": [("two", {"features": 30}), ("one#2", {"features": 10, "bandwidth": 0.5, "regularization": 0.1})],
    "gaf": [
        ("three", {}),
        ("five#2", {"nodes": "cubature", "norm_bound": 3.0, "curvature": "tight"}),
        ("three#3", {"nodes": "gauss-hermite", "smoothing": "theory"}),
        ("two", {"covariance": "printed", "linear_term": "printed", "smoothing": 0.01, "samples": 20}),
        ("three#4", {"form": "dual", "regularization": 0.5}),
        ("sparse", {"form": "dual", "samples": 20}),
    ],
    "gaf-fresh": [("three", {"samples": 20}), ("five#2", {"samples": 10, "norm_bound": 3.0, "smoothing": "theory"})],
    "folklore-direct": [
        ("three", {}),
        ("five#2", {"solver": "gradient", "norm_bound": 3.0}),
        ("two", {"linear_term": "after"}),
    ],
    "aioli-direct": [("two", {}), ("two#2", {"steps": 10, "norm_bound": 5.0})],
    "kernel-folklore": [
        ("three", {}),
        ("five#2", {"kernel": "polynomial", "curvature": "tight", "landmarks": 12}),
        ("two", {"kernel": "linear", "norm_bound": 5.0}),
    ],
    "fourier-folklore": [
        ("three", {"features": 20}),
        ("two#2", {"features": 10, "bandwidth": 0.5, "regularization": 0.1}),
    ],
    "kernel-gaf": [("three", {"samples": 20}), ("five#2", {"nodes": "cubature", "landmarks": 12, "norm_bound": 3.0})],
}

BOOSTERS: dict[str, list[Case]] = {
    "adaboost-olm": [
        ("three", MODELS),
        ("three#2", SIMULATED),
        ("five", TREES),
        ("three#3", TWO_TREES),
        ("five#2", {**MODELS, "loss": "exponential", "derivative": "printed"}),
        ("two", {**MODELS, "loss": "square-hinge", "derivative": "coded", "weight_scale": "random"}),
    ],
    "adaboost-olm++": [
        ("three", MODELS),
        ("three#2", SIMULATED),
        ("five", TREES),
        ("three#3", TWO_TREES),
        ("two", {**MODELS, "regression": "aioli", "clip": 0.1, "forecaster": "folklore"}),
    ],
    "adaboost-ol-ova": [("three", MODELS), ("five", {**TREES, "derivative": "printed"}), ("three#3", TWO_TREES)],
    "adaova": [("three", MODELS), ("five", {**TREES, "loss": "exponential"}), ("three#3", TWO_TREES)],
    "oza": [
        ("three", MODELS),
        ("three#2", SIMULATED),
        ("five", TREES),
        ("three#3", TWO_TREES),
        ("five#2", {**MODELS, "sampling": "weight", "largest_weight": 5.0}),
    ],
    "best-single": [
        ("three", MODELS),
        ("three#2", {**SIMULATED, "spread": 0.1}),
        ("five", {**TREES, "tuning_seed": 1, "weight_scale": "random"}),
        ("three#3", {**TWO_TREES, "tuning_seed": 1}),
    ],
    "online-mbbm": [
        ("three", MODELS),
        ("three#2", {"weak_learner": "simulated", "n_learners": 4, "weak_learner.edge": 0.3, "excess": 2.0}),
        ("three#4", {"weak_learner": "simulated", "n_learners": 4, "behaviour": "adversarial"}),
        ("five", {**TREES, "potentials": "monte-carlo", "draws": 20, "weight_bound": "trivial"}),
        ("three#3", {**TWO_TREES, "potentials": "remembered"}),
        ("three#5", {**TREES, "cost_rows": "raw", "splits": "coded", "spread": "coded", "prior": 1.0}),
    ],
}

PLAYERS: dict[str, dict[str, list[Case]]] = {"agents": AGENTS, "forecasters": FORECASTERS, "boosters": BOOSTERS}

ESTIMATORS: dict[str, list[Case]] = {
    "ogd": [("five", {"norm_bound": 5.0}), ("ten", {"norm_bound": 10.0, "passes": 2, "scaling": "radius"})],
    "aioli": [("two", {}), ("two", {"average": "sample", "samples": 3})],
    "folklore": [
        ("three", {}),
        ("five", {"average": "sample", "samples": 3, "norm_bound": 5.0}),
        ("three", {"norm_bound": 10.0, "passes": 3, "settings": {"regularization": 1e-3}}),
    ],
    "ons": [("three", {"norm_bound": 5.0})],
    "ftrl": [("three", {"norm_bound": 5.0})],
    "aggregating": [("two", {"norm_bound": 3.0, "settings": {"members": 100}})],
    "b-grid": [("three", {"norm_bound": 10.0, "scaling": "none", "fit_intercept": False})],
    "kernel-aioli": [("two", {"norm_bound": 5.0})],
    "fourier-aioli": [("two", {"norm_bound": 5.0, "settings": {"features": 20}})],
    "gaf": [("three", {"norm_bound": 5.0}), ("five", {"norm_bound": 5.0, "settings": {"samples": 20}})],
    "gaf-fresh": [("three", {"norm_bound": 5.0, "settings": {"samples": 10}})],
    "folklore-direct": [("three", {"norm_bound": 5.0})],
    "aioli-direct": [("two", {"norm_bound": 5.0})],
    "kernel-folklore": [("three", {"norm_bound": 5.0})],
    "fourier-folklore": [("three", {"norm_bound": 5.0, "settings": {"features": 20}})],
    "kernel-gaf": [("three", {"norm_bound": 5.0, "settings": {"samples": 20}})],
}

COMPARATORS: list[tuple[str, float]] = [
    ("one", 1.0),
    ("two", 0.5),
    ("two", 5.0),
    ("three", 1.0),
    ("three", 20.0),
    ("five", 3.0),
    ("ten", 2.0),
    ("sparse", 1.0),
    ("large", 1.0),
]

SOLVED: dict[str, tuple[str, float, dict[str, float]]] = {
    "spheres": ("planted", 1.0, {"m": 60, "d": 4, "K": 5, "norm": 60.0}),
    "inside": ("planted", 300.0, {"m": 60, "d": 3, "K": 3, "norm": 2.0}),
    "both": ("planted", 6.0, {"m": 80, "d": 4, "K": 5, "norm": 8.0}),
    "separable": ("planted", 30.0, {"m": 30, "d": 6, "K": 4, "norm": 1e6}),
    "one part": ("planted", 3.0, {"m": 600, "d": 2, "K": 2, "norm": 4.0}),
    "two parts": ("planted", 3.0, {"m": 4200, "d": 2, "K": 2, "norm": 4.0}),
    "parts inside": ("planted", 50.0, {"m": 4200, "d": 2, "K": 2, "norm": 4.0}),
    "interior": ("badly scaled", 1e3, {"m": 5, "d": 5, "K": 10}),
    "frobenius small": ("frobenius", 0.3, {"m": 60, "d": 3, "K": 4, "norm": 5.0}),
    "frobenius": ("frobenius", 5.0, {"m": 60, "d": 3, "K": 4, "norm": 20.0}),
    "frobenius large": ("frobenius", 500.0, {"m": 60, "d": 3, "K": 4, "norm": 2.0}),
    "frobenius separable": ("frobenius", 20.0, {"m": 12, "d": 3, "K": 3, "norm": 1e6}),
}
"""Problems made here, each of which a branch of the comparators' solvers is for: kind, norm bound, sizes."""

ENVIRONMENTS: dict[str, list[Settings]] = {
    LOGISTIC: [
        {},
        {"n_features": 3, "n_classes": 2, "contexts": "gaussian", "radius": 2.0},
        {"n_classes": 10, "noise": 0.2},
    ],
    "banditlab/Digits-v0": [{}, {"scaling": "minmax", "intercept": False}, {"normalize": False}],
    "banditlab/Sparse-v0": [{}, {"n_features": 200, "nonzeros": 10, "n_classes": 3, "noise": 0.1, "exponent": 1.5}],
    "banditlab/SynSep-v0": [{}],
    "banditlab/SynNonSep-v0": [{}, {"noise_rate": 0.2, "noise": "any"}],
    "banditlab/LowerBound-v0": [{}, {"n": 100, "chi": -1, "epsilon": 0.1}],
    "banditlab/Adversary-v0": [{}, {"n_features": 2, "n_classes": 2, "n_cells": 4, "radius": 2.0}],
    "banditlab/Table-v0": [
        {"path": "small.csv", "label": "kind"},
        {"path": "small.csv", "label": "kind", "scaling": "none", "normalize": False, "drop_columns": ["width"]},
        {"path": "small.libsvm"},
    ],
    "banditlab/OpenML-v0": [{"data_id": 11}, {"data_id": 36, "scaling": "none", "intercept": False}],
    "lab/Drift-v0": [{}, {"n_features": 3, "n_classes": 2, "period": 100}],
    "lab/HardAxes-v0": [{}],
    "lab/HardMulticlass-v0": [{}, {"n_classes": 5, "chi": -1}],
    "lab/SynSepSmall-v0": [{}, {"noise_rate": 0.1}],
}
"""Relative paths are those of files that the record writes for itself."""
UNRECORDED = {"banditlab/Gymnasium-v0": "its numbers are another package's, whose version is part of a run's identity"}

LAB: dict[str, dict[str, list[Case]]] = {
    "agents": {"lab-linucb": [("three", {}), ("five", {"regularization": 1.0, "confidence": 0.3})]}
}

OPENML = "banditlab/OpenML-v0"
_BOTH = [{"id": LOGISTIC, **THREE}, {"id": "banditlab/Digits-v0"}]
SWEEPS: dict[str, Settings] = {
    "two-streams": {
        "rounds": 150,
        "norm_bounds": [1.0, 5.0],
        "environment": _BOTH,
        "agent": [
            {"id": "banditron", "grid": {"gamma": [0.05, 0.2]}},
            {"id": "gaptron", "step": "adaptive", "gamma": 0.1, "norm_bound": 2.0},
            {"id": "perceptron"},
        ],
        "forecaster": [{"id": "ogd", "norm_bound": 5.0}],
    },
    "hidden-horizon": {
        "horizon_known": False,
        "base_seed": 3,
        "environment": [{"id": LOGISTIC, **THREE}],
        "agent": [{"id": "banditron"}, {"id": "rdue", "gamma": 0.1}, {"id": "gaptron"}, {"id": "uniform"}],
    },
    "answers-back": {
        "rounds": 120,
        "norm_bounds": [2.0],
        "environment": [{"id": "banditlab/Adversary-v0", "n_features": 2, "n_cells": 4}],
        "agent": [{"id": "banditron", "gamma": 0.1}, {"id": "perceptron"}],
    },
    "sparse-rows": {
        "rounds": 150,
        "norm_bounds": [1.0],
        "environment": [{"id": "banditlab/Sparse-v0", **SPARSE}],
        "agent": [{"id": "banditron"}, {"id": "soba-diag"}, {"id": "epsilon-greedy"}],
    },
    "own-table": {
        "rounds": 120,
        "norm_bounds": [1.0],
        "environment": [{"id": "banditlab/Table-v0", "path": "small.csv", "label": "kind"}],
        "agent": [{"id": "banditron"}, {"id": "uniform"}],
    },
}
"""Sweeps beside the one that every player has, see `swept_alone`."""

LAB_SWEEP: Settings = {
    "name": "lab",
    "rounds": 100,
    "repetitions": 2,
    "checkpoints": [50],
    "norm_bounds": [1.0],
    "environment": [{"id": "lab/Drift-v0"}, {"id": "lab/SynSepSmall-v0"}],
    "agent": [{"id": "lab-linucb"}, {"id": "banditron"}],
}
"""What `banditlab run --lab` plays, in a separate process: this one's registry is not to know the lab."""


def swept_alone(kind: str, id_: str) -> Settings:
    """Return the sweep of one player: its first case, two repetitions and another base seed."""
    stream, settings = PLAYERS[kind][id_][0]
    env, env_settings, rounds = STREAMS[stream]
    told = {"weak_learner": "forecaster", "n_learners": 2} if kind == "boosters" else {}
    return {
        "rounds": min(rounds, 120),
        "base_seed": 11,
        "repetitions": 2,
        "environment": [{"id": env, **env_settings}],
        kind[:-1]: [{"id": id_, **settings, **told}],
    }
